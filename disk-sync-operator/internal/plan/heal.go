package plan

import (
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// lossOf says what somebody else has deleted or broken of an image that had succeeded.
func lossOf(s Snapshot, now time.Time) (*v1alpha1.Loss, bool) {
	switch {
	case !hasSnapshot(s) || dying(s.Content):
		return lostSnapshot(s, now), true
	case s.Image.Status.Artifact != nil && s.Image.Status.Artifact.DataVolume != "" && !hasVolume(s):
		return lostVolume(s, now), true
	}
	return nil, false
}

// serving looks after the artifact while another revision is being made. When its snapshot is lost, there is nothing to
// clone until the other one is ready.
func serving(s Snapshot, d Decision, now time.Time) Decision {
	known := s.Image.Status.Artifact
	if known == nil || known.Revision == s.Image.Status.Revision || d.Report.Artifact != nil || usable(s.Others, known.Snapshot) {
		return d
	}
	d.Report.Unready = true
	d.Report.Loss = &v1alpha1.Loss{Time: metav1.NewTime(now), Kind: v1alpha1.LostSnapshot, Name: known.Snapshot}
	return d
}

func usable(others []Child, snapshot string) bool {
	for _, other := range others {
		vs, is := other.Object.(*snapshotv1.VolumeSnapshot)
		if is && vs.Name == snapshot {
			return vs.DeletionTimestamp == nil && vs.Status != nil && ptr.Deref(vs.Status.ReadyToUse, false)
		}
	}
	return false
}

func lostSnapshot(s Snapshot, now time.Time) *v1alpha1.Loss {
	name := v1alpha1.ChildName(s.Image.Name, s.Image.Status.Revision)
	loss := &v1alpha1.Loss{Time: metav1.NewTime(now), Kind: v1alpha1.LostSnapshot, Name: name}
	vs := s.VolumeSnapshot
	if vs == nil || !owned(s, vs) {
		return loss
	}
	loss.SnapshotUID = vs.UID
	if vs.DeletionTimestamp == nil && vs.Status != nil && vs.Status.BoundVolumeSnapshotContentName != nil {
		loss.Kind, loss.Name = v1alpha1.LostContent, *vs.Status.BoundVolumeSnapshotContentName
	}
	return loss
}

// lostVolume is the DataVolume, if that is gone or going, and the claim otherwise: CDI makes a lost claim again, and
// downloads once more, so that the DataVolume has not Succeeded any longer.
func lostVolume(s Snapshot, now time.Time) *v1alpha1.Loss {
	loss := &v1alpha1.Loss{
		Time: metav1.NewTime(now), Kind: v1alpha1.LostClaim,
		Name: v1alpha1.ChildName(s.Image.Name, s.Image.Status.Revision),
	}
	if s.DataVolume == nil || !owned(s, s.DataVolume) || s.DataVolume.DeletionTimestamp != nil {
		loss.Kind = v1alpha1.LostDataVolume
	}
	return loss
}

// heal makes again what was lost: the snapshot alone, if there is a volume to take it of; otherwise it takes a sync.
func heal(s Snapshot, loss *v1alpha1.Loss) Decision {
	if !hasVolume(s) {
		return resync(s, loss)
	}
	d := Decision{Report: unchanged(s, Snapshotting), ReleaseSlot: s.Slot != ""}
	d.Report.Loss, d.Report.Unready = loss, true
	switch vs := s.VolumeSnapshot; {
	case vs == nil:
		d.Actions = []Action{CreateSnapshot}
	case owned(s, vs) && vs.DeletionTimestamp == nil:
		d.Actions = []Action{DeleteSnapshot}
	case !owned(s, vs): // nothing will tell of somebody else's snapshot
		d.WakeAt = loss.Time.Time
	}
	return d
}

// resync sends the image to the tail of the queue, with attempts of its own. The artifact stays as long as its snapshot
// can be cloned. What is left of the volume goes: CDI may be downloading into it again, without a slot.
func resync(s Snapshot, loss *v1alpha1.Loss) Decision {
	next := s.Image.DeepCopy()
	next.Status.Losses++
	d := Decision{ReleaseSlot: s.Slot != "", Report: Report{
		Stage: Queued, Revision: v1alpha1.RevisionOf(next), Ticket: s.Tail, Ahead: s.Ahead,
		Loss: loss, Resync: true, Unready: !hasSnapshot(s) || dying(s.Content),
	}}
	if s.DataVolume != nil && owned(s, s.DataVolume) && s.DataVolume.DeletionTimestamp == nil {
		d.Actions = []Action{DeleteDataVolume}
	}
	return d
}

func dying(obj metav1.Object) bool {
	return obj.GetDeletionTimestamp() != nil
}
