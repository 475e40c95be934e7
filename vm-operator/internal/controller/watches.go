package controller

import (
	"context"
	"maps"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// machineSources are the events that a VirtualMachine is looked at for: a change of what is wanted, of what it needs of its
// image and its namespace, and of its children. Its own status writes are none.
func machineSources(mgr manager.Manager) []source.Source {
	c := mgr.GetCache()
	return []source.Source{
		source.Kind(c, &v1alpha1.VirtualMachine{}, &handler.TypedEnqueueRequestForObject[*v1alpha1.VirtualMachine]{}, wanted),
		source.Kind(c, &v1alpha1.VMDiskImage{}, handler.TypedEnqueueRequestsFromMapFunc(usersOf(c)), changed(viewOfImage)),
		source.Kind(c, namespaceMetadata(), handler.TypedEnqueueRequestsFromMapFunc(guestsOf(c, keyOf)), relabelled),
		source.Kind(c, &cdiv1.DataVolume{}, handler.TypedEnqueueRequestsFromMapFunc(madeForVM[*cdiv1.DataVolume]), notOurMaking(hasPhase), changedDisk),
		source.Kind(c, &corev1.PersistentVolumeClaim{}, handler.TypedEnqueueRequestsFromMapFunc(madeForVM[*corev1.PersistentVolumeClaim]), changed(viewOfClaim)),
		source.Kind(c, kubevirt(machineKind), handler.TypedEnqueueRequestsFromMapFunc(madeForVM[*unstructured.Unstructured]),
			notOurMaking(hasStatus), changedContent),
		source.Kind(c, kubevirt(instanceKind), handler.TypedEnqueueRequestsFromMapFunc(madeForVM[*unstructured.Unstructured]), changedContent),
	}
}

// claimSources are the events that the references of an image are looked at for: users that come and go, and whatever decides
// about who may be one.
func claimSources(mgr manager.Manager) []source.Source {
	c := mgr.GetCache()
	return []source.Source{
		source.Kind(c, &v1alpha1.VMDiskImage{}, &handler.TypedEnqueueRequestForObject[*v1alpha1.VMDiskImage]{}, changedUse),
		source.Kind(c, &v1alpha1.VirtualMachine{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(_ context.Context, vm *v1alpha1.VirtualMachine) []reconcile.Request {
				return []reconcile.Request{{NamespacedName: vm.ImageKey()}}
			}), comesOrGoes),
		source.Kind(c, namespaceMetadata(), handler.TypedEnqueueRequestsFromMapFunc(guestsOf(c, (*v1alpha1.VirtualMachine).ImageKey)), relabelled),
	}
}

func namespaceMetadata() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}

// wanted are the changes of a VirtualMachine that are not ours. Its labels are those of the guest's pod.
var wanted = predicate.TypedFuncs[*v1alpha1.VirtualMachine]{
	UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.VirtualMachine]) bool {
		return e.ObjectOld.UID != e.ObjectNew.UID || e.ObjectOld.Generation != e.ObjectNew.Generation ||
			e.ObjectOld.DeletionTimestamp.IsZero() != e.ObjectNew.DeletionTimestamp.IsZero() ||
			!maps.Equal(e.ObjectOld.Labels, e.ObjectNew.Labels)
	},
}

// comesOrGoes are the changes of VirtualMachines that make another count.
var comesOrGoes = predicate.TypedFuncs[*v1alpha1.VirtualMachine]{
	UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.VirtualMachine]) bool {
		return e.ObjectOld.UID != e.ObjectNew.UID || e.ObjectOld.ImageKey() != e.ObjectNew.ImageKey()
	},
}

// relabelled are the changes of a namespace that may decide who may use an image. A namespace that comes or goes does so
// before its first and after its last VirtualMachine, but the caches may tell it the other way round.
var relabelled = predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
	UpdateFunc: func(e event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool {
		return !maps.Equal(e.ObjectOld.Labels, e.ObjectNew.Labels)
	},
}

// changed passes the updates that show in a view of the object.
func changed[T client.Object, V comparable](viewOf func(T) V) predicate.TypedFuncs[T] {
	return predicate.TypedFuncs[T]{UpdateFunc: func(e event.TypedUpdateEvent[T]) bool {
		return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || viewOf(e.ObjectOld) != viewOf(e.ObjectNew)
	}}
}

// madeForVM goes from a child to its VirtualMachine.
func madeForVM[T client.Object](_ context.Context, child T) []reconcile.Request {
	if key, ok := vmOf(child); ok {
		return []reconcile.Request{{NamespacedName: key}}
	}
	return nil
}

// usersOf goes from an image to the VirtualMachines that refer to it.
func usersOf(reader client.Reader) func(context.Context, *v1alpha1.VMDiskImage) []reconcile.Request {
	return func(ctx context.Context, image *v1alpha1.VMDiskImage) []reconcile.Request {
		return requestsFor(ctx, reader, keyOf, client.MatchingFields{vmImage: client.ObjectKeyFromObject(image).String()})
	}
}

// guestsOf goes from a namespace to its VirtualMachines that refer to images of other namespaces.
func guestsOf(reader client.Reader, key vmKey) func(context.Context, *metav1.PartialObjectMetadata) []reconcile.Request {
	return func(ctx context.Context, namespace *metav1.PartialObjectMetadata) []reconcile.Request {
		abroad := func(vm *v1alpha1.VirtualMachine) (k namespacedName) {
			if vm.ImageKey().Namespace == vm.Namespace {
				return k
			}
			return key(vm)
		}
		return requestsFor(ctx, reader, abroad, client.InNamespace(namespace.Name))
	}
}
