package desired

import (
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Image is the image as the template describes it, or nil without a template. It has no owner: other virtual machines may
// use it as well. In another namespace it admits the virtual machine's, unless the template says whom it admits.
func Image(vm *v1alpha1.VirtualMachine) *v1alpha1.VMDiskImage {
	if vm.Spec.VMDiskImageTemplate == nil {
		return nil
	}
	key := vm.ImageKey()
	image := &v1alpha1.VMDiskImage{
		ObjectMeta: metav1.ObjectMeta{
			Name:        key.Name,
			Namespace:   key.Namespace,
			Annotations: map[string]string{v1alpha1.AnnotationRequestedBy: vm.Namespace + "/" + vm.Name},
		},
		Spec: *vm.Spec.VMDiskImageTemplate.DeepCopy(),
	}
	if key.Namespace != vm.Namespace && image.Spec.AllowedNamespaces == nil {
		image.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{
			From:     v1alpha1.NamespacesFromSelector,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: vm.Namespace}},
		}
	}
	return image
}
