package main

import (
	"context"
	"encoding/json"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	ac "github.com/pelotech/open-terrain/apis/ot/v1alpha1/applyconfiguration/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/bench/bare"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writeStatus writes the whole status for a phase. A job is written by one goroutine at a time.
func (f *floor) writeStatus(ctx context.Context, j *job, phase otv1alpha1.Phase) error {
	advance(j.image, phase)
	if f.merge {
		patch, err := json.Marshal(map[string]any{"status": j.image.Status})
		if err != nil {
			return err
		}
		target := &otv1alpha1.VMDiskImage{ObjectMeta: metav1.ObjectMeta{Name: j.image.Name, Namespace: j.image.Namespace}}
		return f.client.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, patch))
	}
	raw, err := json.Marshal(j.image.Status)
	if err != nil {
		return err
	}
	status := &ac.VMDiskImageStatusApplyConfiguration{}
	if err := json.Unmarshal(raw, status); err != nil {
		return err
	}
	apply := ac.VMDiskImage(j.image.Name, j.image.Namespace).WithStatus(status)
	if err := f.client.Status().Apply(ctx, apply, client.FieldOwner(bare.Agent), client.ForceOwnership); err != nil {
		return fmt.Errorf("status %s of %s: %w", phase, j.image.Name, err)
	}
	return nil
}

// advance makes the status say what the API promises for a phase, in the operator's words.
func advance(image *otv1alpha1.VMDiskImage, phase otv1alpha1.Phase) {
	st, now := &image.Status, metav1.Now()
	st.Phase, st.ObservedGeneration, st.Revision = phase, image.Generation, otv1alpha1.RevisionOf(image)
	synced, snapshot := metav1.ConditionFalse, metav1.ConditionFalse
	reasonSynced, reasonSnapshot := string(phase), otv1alpha1.ReasonNotSynced
	switch phase {
	case otv1alpha1.PhaseQueued:
		st.QueuedAt, st.Message = &now, "Waiting for a slot"
	case otv1alpha1.PhaseSyncing:
		st.StartedAt, st.Attempts, st.Progress, st.Message = &now, 1, "N/A", "Attempt 1 of 3 is under way"
	case otv1alpha1.PhaseSucceeded:
		child := otv1alpha1.ChildName(image.Name, st.Revision)
		synced, snapshot = metav1.ConditionTrue, metav1.ConditionTrue
		reasonSynced, reasonSnapshot = otv1alpha1.ReasonSynced, otv1alpha1.ReasonSnapshotReady
		st.CompletedAt, st.Progress, st.Message = &now, "100.0%", "The snapshot is ready to be cloned"
		st.Artifact = &otv1alpha1.Artifact{Revision: st.Revision, DataVolume: child, Snapshot: child, CompletedAt: now}
	}
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: image.Generation, LastTransitionTime: now,
		}
	}
	st.Conditions = []metav1.Condition{
		condition(otv1alpha1.ConditionReady, snapshot, reasonSynced, st.Message),
		condition(otv1alpha1.ConditionSynced, synced, reasonSynced, st.Message),
		condition(otv1alpha1.ConditionSnapshotReady, snapshot, reasonSnapshot, st.Message),
		condition(otv1alpha1.ConditionStalled, metav1.ConditionFalse, otv1alpha1.ReasonProgressing, ""),
	}
}

func childMeta(image *otv1alpha1.VMDiskImage) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: otv1alpha1.ChildName(image.Name, image.Status.Revision), Namespace: image.Namespace,
		Labels:          map[string]string{otv1alpha1.LabelImage: string(image.UID)},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(image, otv1alpha1.SchemeGroupVersion.WithKind("VMDiskImage"))},
	}
}

func dataVolume(image *otv1alpha1.VMDiskImage) *cdiv1.DataVolume {
	meta := childMeta(image)
	meta.Annotations = map[string]string{
		"cdi.kubevirt.io/storage.bind.immediate.requested": "true",
		// The chart's policy wants to know the slot. The floor has none, and no Lease that could object.
		otv1alpha1.AnnotationSlot: "none", otv1alpha1.AnnotationHolder: "none",
	}
	return &cdiv1.DataVolume{ObjectMeta: meta, Spec: cdiv1.DataVolumeSpec{
		Source: &cdiv1.DataVolumeSource{HTTP: &cdiv1.DataVolumeSourceHTTP{URL: image.Spec.URL}},
		Storage: &cdiv1.StorageSpec{Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: image.Spec.DiskSize},
		}},
		ContentType: cdiv1.DataVolumeKubeVirt, PriorityClassName: otv1alpha1.ImportPriorityClass,
	}}
}

func volumeSnapshot(image *otv1alpha1.VMDiskImage) *snapshotv1.VolumeSnapshot {
	meta := childMeta(image)
	return &snapshotv1.VolumeSnapshot{ObjectMeta: meta, Spec: snapshotv1.VolumeSnapshotSpec{
		Source:                  snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &meta.Name},
		VolumeSnapshotClassName: &image.Spec.SnapshotClass,
	}}
}
