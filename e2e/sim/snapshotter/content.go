package snapshotter

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// makeContent creates the snapshot's content, or finds it.
func (s *Simulator) makeContent(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot, class *snapshotv1.VolumeSnapshotClass, claim *corev1.PersistentVolumeClaim) (*snapshotv1.VolumeSnapshotContent, error) {
	content := &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: contentName(snapshot.UID)},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			VolumeSnapshotRef: corev1.ObjectReference{
				APIVersion: snapshotv1.SchemeGroupVersion.String(), Kind: "VolumeSnapshot",
				Namespace: snapshot.Namespace, Name: snapshot.Name, UID: snapshot.UID, ResourceVersion: snapshot.ResourceVersion,
			},
			Source:                  snapshotv1.VolumeSnapshotContentSource{VolumeHandle: &claim.Spec.VolumeName},
			VolumeSnapshotClassName: &class.Name, DeletionPolicy: class.DeletionPolicy, Driver: class.Driver, SourceVolumeMode: claim.Spec.VolumeMode,
		},
	}
	if !s.options.Instant {
		content.Finalizers = []string{contentBound}
	}
	err := s.client.Create(ctx, content)
	if apierrors.IsAlreadyExists(err) {
		err = s.client.Get(ctx, client.ObjectKeyFromObject(content), content)
	}
	return content, err
}

// deleteOrphan deletes a content whose snapshot is gone, where no finalizer has kept the snapshot until that was done.
func (s *Simulator) deleteOrphan(ctx context.Context, name string) error {
	var content snapshotv1.VolumeSnapshotContent
	if err := s.client.Get(ctx, types.NamespacedName{Name: name}, &content); err != nil {
		return client.IgnoreNotFound(err)
	}
	if content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentRetain || len(content.Finalizers) > 0 {
		return nil // the real ones never delete a content without its snapshot's deletion
	}
	ref := content.Spec.VolumeSnapshotRef
	var snapshot snapshotv1.VolumeSnapshot
	err := s.client.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, &snapshot)
	if client.IgnoreNotFound(err) != nil || (err == nil && snapshot.UID == ref.UID) {
		return err
	}
	return client.IgnoreNotFound(s.client.Delete(ctx, &content))
}

// write replaces the snapshot's status where it differs: that of the very snapshot that was looked at, and not of one that came
// after it under its name. Its version tells them apart; a UID in the patch of a status is ignored.
func (s *Simulator) write(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot, status *snapshotv1.VolumeSnapshotStatus) error {
	if snapshot.Status != nil && status.Error == nil && status.CreationTime == nil {
		status.Error = snapshot.Status.Error // the last error stays until something works
	}
	if equality.Semantic.DeepEqual(snapshot.Status, status) {
		return nil
	}
	before := snapshot.DeepCopy()
	snapshot.Status = status
	return s.client.Status().Patch(ctx, snapshot, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// showFailure writes an error into the status unless it is there already.
func (s *Simulator) showFailure(ctx context.Context, key types.NamespacedName, f failure) error {
	var snapshot snapshotv1.VolumeSnapshot
	if err := s.client.Get(ctx, key, &snapshot); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := snapshot.DeepCopy()
	if snapshot.Status == nil {
		snapshot.Status = &snapshotv1.VolumeSnapshotStatus{}
	}
	if e := snapshot.Status.Error; e != nil && e.Message != nil && *e.Message == f.message {
		return nil
	}
	now := metav1.Now()
	snapshot.Status.Error = &snapshotv1.VolumeSnapshotError{Time: &now, Message: &f.message}
	if f.notReady {
		no := false
		snapshot.Status.ReadyToUse = &no
	}
	return s.client.Status().Patch(ctx, &snapshot, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
