package datasync

import (
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/status"
)

// The most that the API server takes.
const maxNote = 1000

// EventOf is the event of a transition: one for each change of the phase, but for the first.
func EventOf(before, after *v1alpha1.DataSyncStatus) (status.Event, bool) {
	if after.Phase == before.Phase || before.Phase == "" && after.Phase == v1alpha1.DataSyncQueued {
		return status.Event{}, false
	}
	return status.Event{
		Warning: after.Phase == v1alpha1.DataSyncFailed, Reason: string(after.Phase), Action: "Sync", Note: clip(after.Message, maxNote),
	}, true
}
