package controller

import (
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CacheOptions keep in memory what the operator works with, and no more: children by our label (CDI copies a DataVolume's
// labels to its claim, KubeVirt those of a machine's template to its instance), and of namespaces the labels. Secrets are not
// among them. A label only decides what is seen: what is ours is decided by the owner's UID.
func CacheOptions() (cache.Options, error) {
	ours, err := labels.NewRequirement(v1alpha1.LabelVirtualMachineUID, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, err
	}
	selector := labels.NewSelector().Add(*ours)
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&cdiv1.DataVolume{}:             {Label: selector},
			&corev1.PersistentVolumeClaim{}: {Label: selector, Transform: stripClaim},
			&corev1.Namespace{}:             {Transform: stripNamespace},
			kubevirt(machineKind):           {Label: selector, Transform: stripMachine},
			kubevirt(instanceKind):          {Label: selector, Transform: stripInstance},
		},
	}, nil
}

// kubevirt is an object of a kind of KubeVirt, without its types: they would be a large dependency for a few fields.
func kubevirt(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

// stripClaim keeps of a claim whether it is there and bound.
func stripClaim(obj any) (any, error) {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok {
		return obj, nil
	}
	claim.ManagedFields, claim.Annotations, claim.Spec = nil, nil, corev1.PersistentVolumeClaimSpec{}
	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: claim.Status.Phase}
	return claim, nil
}

// stripNamespace keeps of a namespace its labels.
func stripNamespace(obj any) (any, error) {
	if namespace, ok := obj.(metav1.Object); ok {
		namespace.SetManagedFields(nil)
		namespace.SetAnnotations(nil)
	}
	return obj, nil
}

// stripMachine keeps of KubeVirt's machine all but what the plan never reads of its status.
func stripMachine(obj any) (any, error) {
	machine, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	machine.SetManagedFields(nil)
	keep(machine.Object, "apiVersion", "kind", "metadata", "spec", "status")
	if status, ok := machine.Object["status"].(map[string]any); ok {
		keep(status, "printableStatus", "conditions", "startFailure")
	}
	return machine, nil
}

// stripInstance keeps of an instance whose it is, how it fares, and its addresses.
func stripInstance(obj any) (any, error) {
	instance, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	instance.SetManagedFields(nil)
	instance.SetAnnotations(nil)
	keep(instance.Object, "apiVersion", "kind", "metadata", "status")
	if status, ok := instance.Object["status"].(map[string]any); ok {
		keep(status, "phase", "interfaces")
	}
	return instance, nil
}

// keep deletes all other fields.
func keep(object map[string]any, names ...string) {
	kept := map[string]bool{}
	for _, name := range names {
		kept[name] = true
	}
	for name := range object {
		if !kept[name] {
			delete(object, name)
		}
	}
}
