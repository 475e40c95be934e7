package main

import (
	"maps"
	"slices"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var vm = set{
	operator: "vm-operator", options: vmOptions,
	kinds: []client.Object{
		&otv1alpha1.VirtualMachine{}, &otv1alpha1.VMDiskImage{}, &cdiv1.DataVolume{}, &corev1.PersistentVolumeClaim{},
		namespaceMetadata(), kubevirt("VirtualMachine"), kubevirt("VirtualMachineInstance"),
	},
	indexes: []index{
		{&otv1alpha1.VirtualMachine{}, "spec.vmDiskImageRef", func(o client.Object) []string {
			return []string{o.(*otv1alpha1.VirtualMachine).ImageKey().String()}
		}},
		{&cdiv1.DataVolume{}, "virtualmachine", func(o client.Object) []string {
			if owner := metav1.GetControllerOf(o); owner != nil {
				return []string{o.GetNamespace() + "/" + owner.Name}
			}
			return nil
		}},
	},
}

// vmOptions are the vm-operator's CacheOptions.
func vmOptions() (cache.Options, error) {
	scheme := apiruntime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{clientgoscheme.AddToScheme, otv1alpha1.AddToScheme, cdiv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return cache.Options{}, err
		}
	}
	ours, err := labels.NewRequirement(otv1alpha1.LabelVirtualMachineUID, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, err
	}
	selector := labels.NewSelector().Add(*ours)
	return cache.Options{
		Scheme:           scheme,
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&cdiv1.DataVolume{}:                {Label: selector},
			&corev1.PersistentVolumeClaim{}:    {Label: selector, Transform: stripClaim},
			&corev1.Namespace{}:                {Transform: stripNamespace},
			kubevirt("VirtualMachine"):         {Label: selector, Transform: stripMachine},
			kubevirt("VirtualMachineInstance"): {Label: selector, Transform: stripInstance},
		},
	}, nil
}

func kubevirt(kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("kubevirt.io/v1")
	object.SetKind(kind)
	return object
}

func namespaceMetadata() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}

func stripClaim(obj any) (any, error) {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok {
		return obj, nil
	}
	claim.ManagedFields, claim.Annotations, claim.Spec = nil, nil, corev1.PersistentVolumeClaimSpec{}
	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: claim.Status.Phase}
	return claim, nil
}

func stripNamespace(obj any) (any, error) {
	if namespace, ok := obj.(metav1.Object); ok {
		namespace.SetManagedFields(nil)
		namespace.SetAnnotations(nil)
	}
	return obj, nil
}

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

func keep(object map[string]any, names ...string) {
	maps.DeleteFunc(object, func(name string, _ any) bool { return !slices.Contains(names, name) })
}
