package snapshotter

import (
	"context"
	"slices"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Finalizers of snapshots and contents, and the mark on a content whose snapshot is being deleted.
const (
	asSource         = "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection"
	whileBound       = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection"
	contentBound     = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"
	annBeingDeleted  = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted"
	messageNoContent = "VolumeSnapshotContent is missing"
)

// protect puts a finalizer on a snapshot that stays.
func (s *Simulator) protect(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot, finalizer string) error {
	if s.options.Instant || snapshot.DeletionTimestamp != nil || slices.Contains(snapshot.Finalizers, finalizer) {
		return nil
	}
	before := snapshot.DeepCopy()
	controllerutil.AddFinalizer(snapshot, finalizer)
	// A list of finalizers is replaced as a whole: only if nobody else has changed it.
	return s.client.Patch(ctx, snapshot, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// checkContent fails for a ready snapshot that has lost its content.
func (s *Simulator) checkContent(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) error {
	if snapshot.Status.BoundVolumeSnapshotContentName == nil {
		return nil
	}
	var content snapshotv1.VolumeSnapshotContent
	err := s.client.Get(ctx, types.NamespacedName{Name: *snapshot.Status.BoundVolumeSnapshotContentName}, &content)
	if apierrors.IsNotFound(err) {
		return failure{notReady: true, message: messageNoContent}
	}
	return err
}

// release lets a snapshot go that is being deleted: with its content, unless that is to be retained, and not while a claim
// is being restored from it.
func (s *Simulator) release(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) (time.Duration, error) {
	if !slices.Contains(snapshot.Finalizers, asSource) && !slices.Contains(snapshot.Finalizers, whileBound) {
		return 0, nil
	}
	content := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: contentName(snapshot.UID)}}
	err := s.client.Get(ctx, client.ObjectKeyFromObject(content), content)
	if client.IgnoreNotFound(err) != nil {
		return 0, err
	}
	if err == nil {
		restoring, err := s.restoring(ctx, snapshot)
		if restoring || err != nil {
			return s.options.Backoff, err
		}
		if err := s.releaseContent(ctx, content); err != nil {
			return 0, err
		}
	}
	before := snapshot.DeepCopy()
	controllerutil.RemoveFinalizer(snapshot, asSource)
	controllerutil.RemoveFinalizer(snapshot, whileBound)
	return 0, client.IgnoreNotFound(s.client.Patch(ctx, snapshot, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// restoring tells whether a claim that is Pending is restored from the snapshot.
func (s *Simulator) restoring(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) (bool, error) {
	var claims corev1.PersistentVolumeClaimList
	err := s.client.List(ctx, &claims, client.InNamespace(snapshot.Namespace))
	return slices.ContainsFunc(claims.Items, func(c corev1.PersistentVolumeClaim) bool {
		from := c.Spec.DataSource
		return from != nil && from.Kind == "VolumeSnapshot" && from.Name == snapshot.Name && c.Status.Phase == corev1.ClaimPending
	}), err
}

// releaseContent deletes the content of a snapshot that is being deleted, or leaves it without one.
func (s *Simulator) releaseContent(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) error {
	before := content.DeepCopy()
	metav1.SetMetaDataAnnotation(&content.ObjectMeta, annBeingDeleted, "yes")
	if content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete || content.DeletionTimestamp != nil {
		controllerutil.RemoveFinalizer(content, contentBound)
	}
	if err := s.client.Patch(ctx, content, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return client.IgnoreNotFound(err)
	}
	if content.Spec.DeletionPolicy != snapshotv1.VolumeSnapshotContentDelete {
		return nil
	}
	return client.IgnoreNotFound(s.client.Delete(ctx, content))
}
