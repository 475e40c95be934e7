package controller

import (
	"context"
	"fmt"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// imageSources are the events that an image is looked at for: a change of what is wanted or of who uses it, and any change of
// its children. Its own status writes are none, and a new image is admission's first.
func imageSources(mgr manager.Manager, a *Admission) []source.Source {
	c, reader := mgr.GetCache(), mgr.GetCache()
	wanted := predicate.TypedFuncs[*v1alpha1.VMDiskImage]{
		CreateFunc: func(e event.TypedCreateEvent[*v1alpha1.VMDiskImage]) bool {
			return plan.StageOf(&e.Object.Status) != plan.New
		},
		UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.VMDiskImage]) bool {
			return e.ObjectOld.Generation != e.ObjectNew.Generation ||
				e.ObjectOld.Annotations[v1alpha1.AnnotationSyncRequestedAt] != e.ObjectNew.Annotations[v1alpha1.AnnotationSyncRequestedAt] ||
				e.ObjectOld.Annotations[v1alpha1.AnnotationDryRun] != e.ObjectNew.Annotations[v1alpha1.AnnotationDryRun] ||
				useChanged(e.ObjectOld, e.ObjectNew)
		},
	}
	return []source.Source{
		source.Kind(c, &v1alpha1.VMDiskImage{}, &handler.TypedEnqueueRequestForObject[*v1alpha1.VMDiskImage]{}, wanted),
		source.Kind(c, &cdiv1.DataVolume{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(_ context.Context, dv *cdiv1.DataVolume) []reconcile.Request { return requestFor(dv) })),
		source.TypedKind[*cdiv1.DataVolume, reconcile.Request](c, &cdiv1.DataVolume{}, clonesDone(reader)),
		source.Kind(c, &snapshotv1.VolumeSnapshot{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(_ context.Context, vs *snapshotv1.VolumeSnapshot) []reconcile.Request { return requestFor(vs) }), notJustMade),
		source.Kind(c, &snapshotv1.VolumeSnapshotContent{}, handler.TypedEnqueueRequestsFromMapFunc(ofContent(reader))),
		source.Kind(c, &corev1.PersistentVolumeClaim{}, handler.TypedEnqueueRequestsFromMapFunc(ofClaim(reader, a)), boundOrGoing),
		source.Kind(c, &corev1.Pod{}, handler.TypedEnqueueRequestsFromMapFunc(ofImporter(reader, a))),
	}
}

// useChanged are the changes that decide about finalizer and expiry. A new image is admission's first, whoever claims it.
func useChanged(before, after *v1alpha1.VMDiskImage) bool {
	if plan.StageOf(&after.Status) == plan.New {
		return false
	}
	going := after.DeletionTimestamp != nil
	return going != (before.DeletionTimestamp != nil) ||
		plan.InUse(before) != plan.InUse(after) || plan.Protected(before) != plan.Protected(after) ||
		(going || !plan.InUse(after)) && !equality.Semantic.DeepEqual(before.Status.References, after.Status.References)
}

// notJustMade leaves out the creation of a VolumeSnapshot, which nothing follows from until it has a status.
var notJustMade = predicate.TypedFuncs[*snapshotv1.VolumeSnapshot]{
	CreateFunc: func(e event.TypedCreateEvent[*snapshotv1.VolumeSnapshot]) bool {
		return e.IsInInitialList || e.Object.Status != nil
	},
}

// boundOrGoing are the changes of a claim that decide something.
var boundOrGoing = predicate.TypedFuncs[*corev1.PersistentVolumeClaim]{
	CreateFunc: func(e event.TypedCreateEvent[*corev1.PersistentVolumeClaim]) bool {
		return e.IsInInitialList || e.Object.Status.Phase != corev1.ClaimPending
	},
	UpdateFunc: func(e event.TypedUpdateEvent[*corev1.PersistentVolumeClaim]) bool {
		return e.ObjectOld.Status.Phase != e.ObjectNew.Status.Phase || e.ObjectOld.DeletionTimestamp.IsZero() != e.ObjectNew.DeletionTimestamp.IsZero()
	},
}

// requestFor is the image that controls the object, by its name: whether it is the same image is for the plan to say.
func requestFor(obj metav1.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(obj)
	if owner == nil || owner.Kind != "VMDiskImage" || !strings.HasPrefix(owner.APIVersion, v1alpha1.GroupName+"/") {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: owner.Name}}}
}

// ofClaim goes from a claim to the DataVolume of the same name, and on to the image. Without the DataVolume it is what an
// ended attempt left: somebody waits for it to go before a slot is given up.
func ofClaim(reader client.Reader, a *Admission) func(context.Context, *corev1.PersistentVolumeClaim) []reconcile.Request {
	return func(ctx context.Context, claim *corev1.PersistentVolumeClaim) []reconcile.Request {
		dv := &cdiv1.DataVolume{}
		if err := reader.Get(ctx, client.ObjectKeyFromObject(claim), dv); err != nil {
			return a.holdersIn(claim.Namespace)
		}
		return requestFor(dv)
	}
}

// claimUID indexes claims by their UID, which is part of the name of the populator's claim.
const claimUID = "metadata.uid"

func indexClaims(ctx context.Context, mgr manager.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.PersistentVolumeClaim{}, claimUID, func(obj client.Object) []string {
		return []string{string(obj.GetUID())}
	})
	if err != nil {
		return fmt.Errorf("index the claims: %w", err)
	}
	return nil
}

// ofImporter goes from an importer pod to the claim that it fills, and on to the image; a pod without a claim is what an
// ended attempt left.
func ofImporter(reader client.Reader, a *Admission) func(context.Context, *corev1.Pod) []reconcile.Request {
	return func(ctx context.Context, pod *corev1.Pod) []reconcile.Request {
		claims, err := claimsOf(ctx, reader, pod)
		if err != nil || len(claims) == 0 {
			return a.holdersIn(pod.Namespace)
		}
		return ofClaim(reader, a)(ctx, &claims[0])
	}
}

// ofContent goes from a snapshot's content to the snapshot, and on to the image.
func ofContent(reader client.Reader) func(context.Context, *snapshotv1.VolumeSnapshotContent) []reconcile.Request {
	return func(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) []reconcile.Request {
		ref, vs := content.Spec.VolumeSnapshotRef, &snapshotv1.VolumeSnapshot{}
		if err := reader.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, vs); err != nil {
			return nil
		}
		if vs.Status == nil || !ptr.Deref(vs.Status.ReadyToUse, false) {
			return nil // its becoming ready, or not being so any longer, is an event
		}
		return requestFor(vs)
	}
}

// clonesDone are the ends of clones, which former children wait for.
func clonesDone(reader client.Reader) handler.TypedFuncs[*cdiv1.DataVolume, reconcile.Request] {
	add := func(ctx context.Context, dv *cdiv1.DataVolume, q requests) {
		for _, request := range ofSource(ctx, reader, dv) {
			q.Add(request)
		}
	}
	return handler.TypedFuncs[*cdiv1.DataVolume, reconcile.Request]{
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*cdiv1.DataVolume], q requests) {
			if cloning(e.ObjectOld) && !cloning(e.ObjectNew) {
				add(ctx, e.ObjectNew, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*cdiv1.DataVolume], q requests) {
			if cloning(e.Object) {
				add(ctx, e.Object, q)
			}
		},
	}
}

// ofSource goes from a clone to what it is cloned from, and on to the image.
func ofSource(ctx context.Context, reader client.Reader, dv *cdiv1.DataVolume) []reconcile.Request {
	var from client.Object
	var key types.NamespacedName
	switch source := dv.Spec.Source; {
	case source != nil && source.Snapshot != nil:
		from, key = &snapshotv1.VolumeSnapshot{}, types.NamespacedName{Namespace: source.Snapshot.Namespace, Name: source.Snapshot.Name}
	case source != nil && source.PVC != nil: // a DataVolume and its claim have one name
		from, key = &cdiv1.DataVolume{}, types.NamespacedName{Namespace: source.PVC.Namespace, Name: source.PVC.Name}
	default:
		return nil
	}
	if err := reader.Get(ctx, key, from); err != nil {
		return nil // nothing of ours waits for it
	}
	return requestFor(from)
}

// admissionSources keep the queue and the slots up to date; a round is asked for where it could change something.
func admissionSources(mgr manager.Manager, a *Admission) []source.Source {
	images := handler.TypedFuncs[*v1alpha1.VMDiskImage, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*v1alpha1.VMDiskImage], _ requests) {
			a.imageSeen(e.Object)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*v1alpha1.VMDiskImage], _ requests) {
			a.imageSeen(e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*v1alpha1.VMDiskImage], _ requests) {
			a.imageGone(e.Object)
		},
	}
	leases := handler.TypedFuncs[*coordinationv1.Lease, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*coordinationv1.Lease], _ requests) {
			a.leaseSeen(e.Object)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*coordinationv1.Lease], _ requests) {
			a.leaseSeen(e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*coordinationv1.Lease], _ requests) {
			a.leaseGone(e.Object)
		},
	}
	return []source.Source{
		source.TypedKind[*v1alpha1.VMDiskImage, reconcile.Request](mgr.GetCache(), &v1alpha1.VMDiskImage{}, images),
		source.TypedKind[*coordinationv1.Lease, reconcile.Request](mgr.GetCache(), &coordinationv1.Lease{}, leases),
	}
}

func policySources(mgr manager.Manager) []source.Source {
	return []source.Source{source.Kind(mgr.GetCache(), &corev1.ConfigMap{}, &handler.TypedEnqueueRequestForObject[*corev1.ConfigMap]{})}
}

// servedSources hold a controller back until the kinds of CDI and of the snapshotter are served. Otherwise its errors would
// put its keys off for up to a quarter of an hour.
func servedSources(mgr manager.Manager) []source.Source {
	c := mgr.GetCache()
	return []source.Source{
		source.Kind(c, &cdiv1.DataVolume{}, handler.TypedFuncs[*cdiv1.DataVolume, reconcile.Request]{}),
		source.Kind(c, &snapshotv1.VolumeSnapshot{}, handler.TypedFuncs[*snapshotv1.VolumeSnapshot, reconcile.Request]{}),
		source.Kind(c, &snapshotv1.VolumeSnapshotContent{}, handler.TypedFuncs[*snapshotv1.VolumeSnapshotContent, reconcile.Request]{}),
	}
}
