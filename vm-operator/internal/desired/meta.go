package desired

import (
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "vm-operator"
)

// owned names a child that the virtual machine controls.
func owned(vm *v1alpha1.VirtualMachine, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:            name,
		Namespace:       vm.Namespace,
		Labels:          labelsOf(vm),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(vm, v1alpha1.SchemeGroupVersion.WithKind("VirtualMachine"))},
	}
}

func labelsOf(vm *v1alpha1.VirtualMachine) map[string]string {
	return map[string]string{
		labelManagedBy:                  managedBy,
		v1alpha1.LabelVirtualMachine:    vm.Name,
		v1alpha1.LabelVirtualMachineUID: string(vm.UID),
	}
}
