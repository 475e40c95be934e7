package objects

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// Names and words of clones.
const (
	AnnDataSourceNamespace = AnnGroup + "/dataSourceNamespace"
	LabelOwnedByUID        = AnnGroup + "/OwnedByUID"
	VolumeCloneSource      = "VolumeCloneSource"
	SnapshotGroup          = "snapshot.storage.k8s.io"
	SnapshotKind           = "VolumeSnapshot"

	ReasonCloneScheduled        = "CloneScheduled"
	ReasonCloneWithoutSource    = "CloneWithoutSource"
	ReasonCloneValidationFailed = "CloneValidationFailed"
	ReasonPopulatorRunning      = "Populator is running"
	MessageCloneComplete        = "Clone Complete"
)

// CloneClaim is the claim of a DataVolume that clones; size is the source's, which is taken where the DataVolume names none.
func CloneClaim(dv *cdiv1.DataVolume, size resource.Quantity, sourceNamespace string) *corev1.PersistentVolumeClaim {
	claim := Claim(dv)
	group := cdiv1.SchemeGroupVersion.Group
	claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: &group, Kind: VolumeCloneSource, Name: "volume-clone-source-" + string(dv.UID)}
	if claim.Spec.Resources.Requests.Storage().IsZero() {
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: size}
	}
	if sourceNamespace != dv.Namespace {
		claim.Annotations[AnnDataSourceNamespace] = sourceNamespace
	}
	return claim
}

// RestoreClaim is the claim in the source's namespace that a snapshot is restored into. Its owner is named by a label.
func RestoreClaim(target *corev1.PersistentVolumeClaim, namespace, snapshot string, size resource.Quantity) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "tmp-pvc-" + string(target.UID),
			Labels: map[string]string{"app": "containerized-data-importer", "velero.io/exclude-from-backup": "true", LabelOwnedByUID: string(target.UID)},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: target.Spec.AccessModes, StorageClassName: target.Spec.StorageClassName, VolumeMode: target.Spec.VolumeMode,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
		},
	}
	if snapshot != "" {
		group := SnapshotGroup
		claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: &group, Kind: SnapshotKind, Name: snapshot}
	}
	return claim
}

// ScheduledStatus is the status of a DataVolume that is going to clone from another namespace, before it has a claim.
func ScheduledStatus(old cdiv1.DataVolumeStatus, message string, now metav1.Time) cdiv1.DataVolumeStatus {
	next := RefusedStatus(old, ReasonCloneScheduled, message, now)
	next.Phase = cdiv1.CloneScheduled
	return next
}

// CloneStatus is the status of a DataVolume that clones, in a phase.
func CloneStatus(old cdiv1.DataVolumeStatus, phase cdiv1.DataVolumePhase, claim *View, now metav1.Time) cdiv1.DataVolumeStatus {
	next := *old.DeepCopy()
	next.Phase, next.ClaimName, next.Progress = phase, claim.Name, ProgressUnknown
	if phase == cdiv1.Succeeded {
		next.Progress = ProgressDone
	}
	c := conditions{list: next.Conditions, now: now}
	c.derive(phase, claim, "", "")
	next.Conditions = c.list
	return next
}
