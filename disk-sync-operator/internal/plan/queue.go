package plan

import (
	"fmt"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
)

// enter takes in a revision that was not known before: into the queue, or past it when a slot is there already.
func enter(s Snapshot, now time.Time) Decision {
	revision := v1alpha1.RevisionOf(s.Image)
	report := Report{Stage: Queued, Revision: revision, Ticket: ticketOf(s.Image), Ahead: s.Ahead}
	if s.Slot == "" {
		d := Decision{Report: report}
		if has(s.Others, v1alpha1.ChildName(s.Image.Name, revision)) {
			d.WakeAt = now // the spec went back: perhaps there is nothing to do
		}
		return d
	}
	return start(s, report)
}

// queued waits for a slot.
func queued(s Snapshot, now time.Time) Decision {
	report := unchanged(s, Queued)
	known := s.Image.Status.Artifact
	switch {
	case hasSnapshot(s):
		return succeed(s, Decision{Report: report, ReleaseSlot: s.Slot != ""}, now)
	case known != nil && known.Revision == report.Revision:
		return heal(s, lostSnapshot(s, now)) // the spec went back to it, and it is not what it was
	case hasVolume(s):
		report.Stage = Snapshotting
		return Decision{Report: report, ReleaseSlot: s.Slot != "", WakeAt: now}
	case s.Slot == "":
		return cleanUp(s, Decision{Report: report})
	}
	return start(s, report)
}

// hasSnapshot says that the revision can be cloned already: the spec went back to one that had succeeded.
func hasSnapshot(s Snapshot) bool {
	return s.VolumeSnapshot != nil && owned(s, s.VolumeSnapshot) && snapshotReady(s)
}

// hasVolume says that the revision is downloaded already, and only the snapshot is missing.
func hasVolume(s Snapshot) bool {
	return volumeReady(s) && owned(s, s.DataVolume) && s.DataVolume.DeletionTimestamp == nil
}

// start begins the next attempt, unless a former DataVolume is in its way.
func start(s Snapshot, report Report) Decision {
	if s.DataVolume != nil && owned(s, s.DataVolume) {
		return cleanUp(s, Decision{Report: unchanged(s, Queued)})
	}
	report.Stage, report.Starts, report.AttemptUID = Syncing, true, ""
	report.Attempt++
	d := Decision{Report: report}
	if s.DataVolume == nil {
		d.Actions = []Action{CreateDataVolume}
	}
	return d
}

// supersede ends what is under way for a revision that the spec asks for no longer; then the new one enters. The
// artifact stays, and a slot that its sync still holds is given up first: the new revision waits for its turn.
func supersede(s Snapshot, stage Stage, now time.Time) Decision {
	artifact := s.Image.Status.Artifact
	kept := artifact != nil && artifact.Revision == s.Image.Status.Revision
	switch {
	case kept && s.Slot != "":
		return Decision{Report: unchanged(s, stage), ReleaseSlot: true}
	case kept, s.Slot == "" && !remains(s):
		return enter(s, now)
	}
	report := unchanged(s, stage)
	if s.DataVolume != nil && owned(s, s.DataVolume) {
		report.AttemptUID = s.DataVolume.UID // the attempt has had its download, should the spec go back
	}
	// Nothing began yet under a slot that a queued image has just got.
	return cleanUp(s, Decision{Report: report, Ended: s.Slot != "" && stage != Queued})
}

// remains says that there are children of the image which have to go, or are going.
func remains(s Snapshot) bool {
	return (s.DataVolume != nil && owned(s, s.DataVolume)) ||
		(s.VolumeSnapshot != nil && owned(s, s.VolumeSnapshot) && s.VolumeSnapshot.DeletionTimestamp == nil)
}

// backingOff waits until nothing is left of the failed attempt and its time has come; then the image goes to the
// tail of the queue.
func backingOff(s Snapshot, set Settings, now time.Time) Decision {
	report := unchanged(s, BackingOff)
	at := s.Image.Status.NextAttemptTime.Time
	switch {
	case s.Slot != "" || (s.DataVolume != nil && owned(s, s.DataVolume)):
		ended := s.Slot != ""
		if now.Before(at) {
			return cleanUp(s, Decision{Report: report, Ended: ended, WakeAt: at})
		}
		if s.DataVolume != nil {
			report.Waits = fmt.Sprintf("the next one waits until the DataVolume %s, its claim and its pods are gone", s.DataVolume.Name)
		}
		return cleanUp(s, Decision{Report: report, Ended: ended})
	case now.Before(at):
		return Decision{Report: report, WakeAt: at}
	case int(report.Attempt) >= set.Policy.MaxAttempts():
		report.Stage = Failed // the policy's retryLimit was lowered meanwhile
		return Decision{Report: report}
	}
	report.Stage, report.Ticket, report.Ahead = Queued, s.Tail, s.Ahead
	return Decision{Report: report}
}

// cleanUp deletes what an ended attempt left, and gives up the slot once the DataVolume is gone. That the slot's going
// waits for claim and pods, too, is for the controller: it asks them when it gives the slot up.
func cleanUp(s Snapshot, d Decision) Decision {
	mine := s.DataVolume != nil && owned(s, s.DataVolume)
	switch {
	case mine && s.DataVolume.DeletionTimestamp == nil:
		d.Actions = append(d.Actions, DeleteDataVolume)
	case !mine:
		d.ReleaseSlot = s.Slot != ""
	}
	if s.VolumeSnapshot != nil && owned(s, s.VolumeSnapshot) && s.VolumeSnapshot.DeletionTimestamp == nil {
		d.Actions = append(d.Actions, DeleteSnapshot)
	}
	return d
}
