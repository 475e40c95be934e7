package arm

import (
	"context"
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const imageNamespace = "bench-images"

func goldenName(prefix string, i int) string { return fmt.Sprintf("%s-%03d", prefix, i) }

// prepare makes images as the disk-sync-operator leaves them: Succeeded, with their snapshot. It is the bench's own client that
// does it, and the finalizer that a claimed image gets is there from the beginning: no other operator shares the
// machine, and none is waited for.
func (machines) prepare(ctx context.Context, l *Lab, prefix string, objects int) error {
	for i := range min(l.Load.Images, objects) {
		image := &otv1alpha1.VMDiskImage{
			ObjectMeta: metav1.ObjectMeta{Namespace: imageNamespace, Name: goldenName(prefix, i), Finalizers: []string{otv1alpha1.FinalizerProtection}},
			Spec:       imageSpec(),
		}
		image.Spec.AllowedNamespaces = &otv1alpha1.AllowedNamespaces{From: otv1alpha1.NamespacesFromAll}
		if err := l.client.Create(ctx, image); err != nil {
			return err
		}
		if err := l.shoot(ctx, image); err != nil {
			return err
		}
		image.Status = succeeded(image)
		if err := l.client.Status().Update(ctx, image); err != nil {
			return err
		}
	}
	return nil
}

// shoot makes the image's snapshot. Nobody plays the snapshotter.
func (l *Lab) shoot(ctx context.Context, image *otv1alpha1.VMDiskImage) error {
	name := otv1alpha1.ChildName(image.Name, otv1alpha1.RevisionOf(image))
	snapshot := &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: image.Namespace, Name: name},
		Spec: snapshotv1.VolumeSnapshotSpec{
			Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &name}, VolumeSnapshotClassName: &image.Spec.SnapshotClass,
		},
	}
	if err := l.client.Create(ctx, snapshot); err != nil {
		return err
	}
	snapshot.Status = &snapshotv1.VolumeSnapshotStatus{
		BoundVolumeSnapshotContentName: new("snapcontent-" + name), ReadyToUse: new(true), RestoreSize: new(image.Spec.DiskSize.DeepCopy()),
	}
	return l.client.Status().Update(ctx, snapshot)
}

func succeeded(image *otv1alpha1.VMDiskImage) otv1alpha1.VMDiskImageStatus {
	now, revision := metav1.NewTime(time.Now()), otv1alpha1.RevisionOf(image)
	child := otv1alpha1.ChildName(image.Name, revision)
	st := otv1alpha1.VMDiskImageStatus{
		Phase: otv1alpha1.PhaseSucceeded, Message: "The snapshot is ready to be cloned", ObservedGeneration: image.Generation,
		Revision: revision, Ticket: 1, QueuedAt: &now, StartedAt: &now, CompletedAt: &now, Attempts: 1, Progress: "100.0%",
		Artifact: &otv1alpha1.Artifact{Revision: revision, DataVolume: child, Snapshot: child, RestoreSize: new(image.Spec.DiskSize.DeepCopy()), CompletedAt: now},
	}
	for kind, reason := range map[string]string{
		otv1alpha1.ConditionReady: otv1alpha1.ReasonSynced, otv1alpha1.ConditionSynced: otv1alpha1.ReasonSynced,
		otv1alpha1.ConditionSnapshotReady: otv1alpha1.ReasonSnapshotReady,
	} {
		st.Conditions = append(st.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: st.Message, ObservedGeneration: image.Generation, LastTransitionTime: now,
		})
	}
	return st
}
