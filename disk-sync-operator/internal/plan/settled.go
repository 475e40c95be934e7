package plan

import (
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
)

// settled looks after an image that has succeeded: what was lost is made again, and what is not needed goes.
func settled(s Snapshot, now time.Time) Decision {
	if loss, lost := lossOf(s, now); lost {
		return heal(s, loss)
	}
	if s.Image.Status.Artifact == nil { // a status that somebody else has changed
		return succeed(s, Decision{Report: unchanged(s, Succeeded)}, now)
	}
	d := Decision{Report: unchanged(s, Succeeded), ReleaseSlot: s.Slot != ""}
	return volumePolicy(s, d, now)
}

// volumePolicy keeps the volume or deletes it, as the spec says now. The artifact says so first: a volume that it does
// not name is not missed.
func volumePolicy(s Snapshot, d Decision, now time.Time) Decision {
	named := s.Image.Status.Artifact.DataVolume
	switch {
	case named == "" && keepsVolume(s) && hasVolume(s):
		d.Report.Artifact = withVolume(s, s.DataVolume.Name)
	case named == "":
		return dropVolume(s, d)
	case !keepsVolume(s):
		d.Report.Artifact, d.WakeAt = withVolume(s, ""), now
	}
	return d
}

// dropVolume deletes the volume that the artifact does not name, once nothing is being cloned from it.
func dropVolume(s Snapshot, d Decision) Decision {
	switch mine := s.DataVolume != nil && owned(s, s.DataVolume) && s.DataVolume.DeletionTimestamp == nil; {
	case mine && s.Clone != "":
		d.Report.Held = s.Clone
	case mine:
		d.Actions = append(d.Actions, DeleteDataVolume)
	}
	return d
}

func withVolume(s Snapshot, name string) *v1alpha1.Artifact {
	a := s.Image.Status.Artifact.DeepCopy()
	a.DataVolume = name
	return a
}
