package controller

import (
	"context"
	"maps"
	"slices"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type namespacedName = types.NamespacedName

// vmKey is a key that follows from a VirtualMachine; an empty one is none.
type vmKey func(*v1alpha1.VirtualMachine) namespacedName

func keyOf(vm *v1alpha1.VirtualMachine) namespacedName { return client.ObjectKeyFromObject(vm) }

// requestsFor are the keys of the VirtualMachines that are listed, each once.
func requestsFor(ctx context.Context, reader client.Reader, key vmKey, which ...client.ListOption) []reconcile.Request {
	vms := &v1alpha1.VirtualMachineList{}
	if err := reader.List(ctx, vms, append(which, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil // before the index is there: see indexes
	}
	seen := map[namespacedName]bool{{}: true}
	var requests []reconcile.Request
	for i := range vms.Items {
		if k := key(&vms.Items[i]); !seen[k] {
			seen[k] = true
			requests = append(requests, reconcile.Request{NamespacedName: k})
		}
	}
	return requests
}

// imageView is what a VirtualMachine sees of its image: not its progress, and not who else uses it.
type imageView struct {
	generation                         int64
	phase                              v1alpha1.Phase
	message, revision, snapshot        string
	ready, going, referenced, defended bool
}

func viewOfImage(image *v1alpha1.VMDiskImage) imageView {
	v := imageView{
		generation: image.Generation, phase: image.Status.Phase, ready: image.IsReady(), going: image.DeletionTimestamp != nil,
		referenced: image.Status.References != nil && image.Status.References.Count > 0,
		defended:   slices.Contains(image.Finalizers, v1alpha1.FinalizerProtection),
	}
	if artifact := image.Status.Artifact; artifact != nil {
		v.revision, v.snapshot = artifact.Revision, artifact.Snapshot
	}
	if image.Status.Phase == v1alpha1.PhaseQueued || image.Status.Phase == v1alpha1.PhaseFailed {
		v.message = image.Status.Message
	}
	return v
}

// changedUse are the changes of an image that decide about its references: who may use it, and what others made of them.
var changedUse = predicate.TypedFuncs[*v1alpha1.VMDiskImage]{
	UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.VMDiskImage]) bool {
		return e.ObjectOld.UID != e.ObjectNew.UID || e.ObjectOld.Generation != e.ObjectNew.Generation ||
			e.ObjectOld.DeletionTimestamp.IsZero() != e.ObjectNew.DeletionTimestamp.IsZero() ||
			!equality.Semantic.DeepEqual(e.ObjectOld.Status.References, e.ObjectNew.Status.References)
	},
}

// changedDisk leaves out the changes of a DataVolume that nothing follows from: its progress, above all.
var changedDisk = predicate.TypedFuncs[*cdiv1.DataVolume]{
	UpdateFunc: func(e event.TypedUpdateEvent[*cdiv1.DataVolume]) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return before.UID != after.UID || before.Status.Phase != after.Status.Phase ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			!slices.Equal(before.Finalizers, after.Finalizers) ||
			!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
			!equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) ||
			!slices.EqualFunc(before.Status.Conditions, after.Status.Conditions, sameCondition)
	},
}

func sameCondition(a, b cdiv1.DataVolumeCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// notOurMaking leaves out the creation of what the operator has just made: nothing follows from it until somebody else has
// seen it, too. What was there when the operator started counts.
func notOurMaking[T client.Object](seen func(T) bool) predicate.TypedFuncs[T] {
	return predicate.TypedFuncs[T]{CreateFunc: func(e event.TypedCreateEvent[T]) bool {
		return e.IsInInitialList || seen(e.Object)
	}}
}

func hasPhase(disk *cdiv1.DataVolume) bool {
	return disk.Status.Phase != "" || disk.DeletionTimestamp != nil
}

func hasStatus(machine *unstructured.Unstructured) bool {
	return machine.Object["status"] != nil || machine.GetDeletionTimestamp() != nil
}

// changedContent leaves out the updates of which nothing is left in the cache: what nobody here reads.
var changedContent = predicate.TypedFuncs[*unstructured.Unstructured]{
	UpdateFunc: func(e event.TypedUpdateEvent[*unstructured.Unstructured]) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return before.GetUID() != after.GetUID() || !equality.Semantic.DeepEqual(contentOf(before), contentOf(after))
	},
}

// contentOf is the object without its version.
func contentOf(obj *unstructured.Unstructured) map[string]any {
	content := maps.Clone(obj.Object)
	if metadata, ok := content["metadata"].(map[string]any); ok {
		bare := maps.Clone(metadata)
		delete(bare, "resourceVersion")
		delete(bare, "generation")
		content["metadata"] = bare
	}
	return content
}

// claimView is what a VirtualMachine sees of its disk's claim.
type claimView struct {
	phase corev1.PersistentVolumeClaimPhase
	going bool
}

func viewOfClaim(claim *corev1.PersistentVolumeClaim) claimView {
	return claimView{claim.Status.Phase, claim.DeletionTimestamp != nil}
}
