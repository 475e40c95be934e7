package plan

import (
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// refusalRetry is when a VolumeSnapshot that the API server refused is tried again.
const refusalRetry = 30 * time.Second

// snapshotting waits for the snapshot of a volume that is complete. Trouble here never costs a download: the
// volume is kept, and the snapshot controller goes on trying by itself.
func snapshotting(s Snapshot, set Settings, now time.Time) Decision {
	report := unchanged(s, Snapshotting)
	d := Decision{Report: report, ReleaseSlot: s.Slot != ""}
	vs := s.VolumeSnapshot
	switch {
	case !volumeReady(s) && s.Image.Status.CompletedAt != nil:
		return resync(s, lostVolume(s, now))
	case !volumeReady(s):
		return fail(s, set, now, v1alpha1.FailureUnknown, "its volume was deleted or lost before there was a snapshot of it")
	case s.Refusal != "":
		d.Report.Waits, d.WakeAt = clip(s.Refusal), now.Add(refusalRetry) // a quota that is raised is no event of ours
	case vs == nil:
		d.Actions, d.Report.Quiet = []Action{CreateSnapshot}, true
	case orphan(s, vs):
		d.Report.Waits = fmt.Sprintf("the VolumeSnapshot %s of a deleted image of the same name must go first", vs.Name)
	case !owned(s, vs):
		d.Report.Waits = fmt.Sprintf("a VolumeSnapshot %s exists that does not belong to this image: delete or rename it", vs.Name)
	case vs.DeletionTimestamp != nil:
		d.Report.Waits = fmt.Sprintf("the VolumeSnapshot %s that was lost must go first", vs.Name)
	case wornOut(s):
		d.Actions, d.Report.Quiet = []Action{DeleteSnapshot}, true
	case snapshotReady(s):
		return succeed(s, d, now)
	default:
		d.Report.Waits = snapshotTrouble(vs)
	}
	return overdueSnapshot(s, set, now, d)
}

// overdueSnapshot says Failed when there is no snapshot within the attemptTimeout of the volume's completion.
func overdueSnapshot(s Snapshot, set Settings, now time.Time, d Decision) Decision {
	synced := meta.FindStatusCondition(s.Image.Status.Conditions, v1alpha1.ConditionSynced)
	begin := synced.LastTransitionTime.Time
	if loss := s.Image.Status.LastLoss; loss != nil {
		begin = latest(begin, loss.Time.Time) // it is being made again
	}
	end := begin.Add(set.Policy.AttemptTimeout)
	if now.Before(end) {
		d.WakeAt = earliest(d.WakeAt, end)
		return d
	}
	if meta.IsStatusConditionTrue(s.Image.Status.Conditions, v1alpha1.ConditionStalled) {
		return d
	}
	message := fmt.Sprintf("the volume is complete, but there is no snapshot of it within the attemptTimeout of %s", set.Policy.AttemptTimeout)
	if d.Report.Waits != "" {
		message += ": " + d.Report.Waits
	}
	d.Report.Failure = &v1alpha1.Failure{Time: metav1.NewTime(now), Reason: v1alpha1.FailureTimedOut, Message: clip(message)}
	return d
}

// snapshotReady is readyToUse, and bound both ways.
func snapshotReady(s Snapshot) bool {
	status, content := s.VolumeSnapshot.Status, s.Content
	return status != nil && ptr.Deref(status.ReadyToUse, false) && s.VolumeSnapshot.DeletionTimestamp == nil &&
		content != nil && ptr.Deref(status.BoundVolumeSnapshotContentName, "") == content.Name &&
		content.Spec.VolumeSnapshotRef.UID == s.VolumeSnapshot.UID
}

func snapshotTrouble(vs *snapshotv1.VolumeSnapshot) string {
	if vs.Status == nil || vs.Status.Error == nil {
		return ""
	}
	return clip(ptr.Deref(vs.Status.Error.Message, ""))
}

// wornOut says that the VolumeSnapshot is the one that was lost, or lost its content.
func wornOut(s Snapshot) bool {
	loss := s.Image.Status.LastLoss
	return loss != nil && loss.SnapshotUID != "" && loss.SnapshotUID == s.VolumeSnapshot.UID
}

// succeed reports the artifact. What came before it goes with the next look, which follows at once where there is any.
func succeed(s Snapshot, d Decision, now time.Time) Decision {
	d.Report.Stage, d.Report.Artifact = Succeeded, artifact(s, now)
	if len(s.Others) > 0 || d.Report.Artifact.DataVolume == "" {
		d.WakeAt = now
	}
	return d
}

// artifact is what there is of the status' revision; the one that is known already, when it is there again.
func artifact(s Snapshot, now time.Time) *v1alpha1.Artifact {
	if known := s.Image.Status.Artifact; known != nil && known.Revision == s.Image.Status.Revision {
		return known
	}
	a := &v1alpha1.Artifact{
		Revision: s.Image.Status.Revision, Snapshot: s.VolumeSnapshot.Name, CompletedAt: metav1.NewTime(now),
	}
	if keepsVolume(s) && s.DataVolume != nil {
		a.DataVolume = s.DataVolume.Name
	}
	if size := s.VolumeSnapshot.Status.RestoreSize; size != nil {
		a.RestoreSize = new(size.DeepCopy())
	}
	return a
}

func keepsVolume(s Snapshot) bool {
	return s.Image.Spec.VolumePolicy != v1alpha1.VolumeDeleteAfterSnapshot
}
