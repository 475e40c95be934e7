package status

import (
	"fmt"
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
)

// Event is what people are told about a transition.
type Event struct {
	Warning      bool
	Reason       string
	Action, Note string
}

// The most that the API server takes.
const maxNote = 1000

// EventOf is the event of a transition from one status to the next, if it deserves one: the start and the end of an
// attempt, and the snapshot.
func EventOf(before, after *v1alpha1.VMDiskImageStatus) (Event, bool) {
	failed := isNew(before.LastFailure, after.LastFailure)
	switch {
	case isNew(before.LastLoss, after.LastLoss):
		return Event{Warning: true, Reason: "Lost", Action: "Heal", Note: clip(lossNote(after))}, true
	case after.Phase == v1alpha1.PhaseFailed && (before.Phase != v1alpha1.PhaseFailed || failed && sourceRefused(after)):
		return Event{Warning: true, Reason: "Failed", Action: "Sync", Note: clip(after.Message)}, true
	case failed:
		return Event{Warning: true, Reason: "AttemptFailed", Action: "Sync", Note: clip(after.Message)}, true
	case strings.Contains(after.Message, wouldPrune) && after.Message != before.Message:
		return Event{Reason: "WouldPrune", Action: "Prune", Note: clip(after.Message)}, true
	case after.Phase != before.Phase:
		return phaseEvent(after)
	}
	return Event{}, false
}

func phaseEvent(after *v1alpha1.VMDiskImageStatus) (Event, bool) {
	switch after.Phase {
	case v1alpha1.PhaseSyncing:
		return Event{Reason: "Syncing", Action: "Sync", Note: fmt.Sprintf("Attempt %d has a slot and begins", after.Attempts)}, true
	case v1alpha1.PhaseSucceeded:
		return Event{Reason: "Succeeded", Action: "Snapshot", Note: "The snapshot " + after.Artifact.Snapshot + " is ready to be cloned"}, true
	}
	return Event{}, false
}

// isNew says that there is something now, and that it is not what was there before.
func isNew[T comparable](before, after *T) bool {
	return after != nil && (before == nil || *before != *after)
}

func lossNote(st *v1alpha1.VMDiskImageStatus) string {
	what := fmt.Sprintf("%s %s was lost; ", st.LastLoss.Kind, st.LastLoss.Name)
	switch {
	case st.Phase == v1alpha1.PhaseSnapshotting:
		return what + "the snapshot is taken again from the volume"
	case st.Artifact != nil:
		return what + "the image is synced again, and its snapshot can be cloned meanwhile"
	}
	return what + "the image is synced again"
}

func clip(note string) string {
	if len(note) <= maxNote {
		return note
	}
	return strings.ToValidUTF8(note[:maxNote], "")
}
