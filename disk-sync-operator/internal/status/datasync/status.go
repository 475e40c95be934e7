// Package datasync puts a decision about a DataSync into words: a pure function to the whole status.
package datasync

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	ac "github.com/pelotech/open-terrain/apis/ot/v1alpha1/applyconfiguration/ot/v1alpha1"
	plan "github.com/pelotech/open-terrain/disk-sync-operator/internal/plan/datasync"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The longest message of an entry, and of the whole. A hundred entries stay well below what the API server takes.
const (
	maxEntryMessage = 512
	maxMessage      = 1024
)

// Of is the status that the decision asks for. Transition times move only with the condition's status.
func Of(dataSync *v1alpha1.DataSync, d plan.Decision, now metav1.Time) v1alpha1.DataSyncStatus {
	st := *dataSync.Status.DeepCopy()
	st.ObservedGeneration = dataSync.Generation
	st.Entries, st.Counts = entries(d), counts(d)
	st.Ready = fmt.Sprintf("%d/%d", st.Counts.Succeeded, st.Counts.Total)
	st.Phase = phase(d, st.Counts)
	st.Message = clip(message(&st), maxMessage)
	for _, c := range conditions(&st, d) {
		setCondition(&st.Conditions, c, dataSync.Generation, now)
	}
	return st
}

func entries(d plan.Decision) []v1alpha1.DataSyncEntry {
	all := make([]v1alpha1.DataSyncEntry, 0, len(d.Entries))
	for _, e := range d.Entries {
		all = append(all, v1alpha1.DataSyncEntry{Name: e.Name, Image: e.Image, Phase: e.Phase, Message: clip(e.Message, maxEntryMessage)})
	}
	return all
}

func counts(d plan.Decision) *v1alpha1.DataSyncCounts {
	c := &v1alpha1.DataSyncCounts{Total: int32(len(d.Entries))} //nolint:gosec // a hundred at most
	for _, e := range d.Entries {
		switch e.Phase {
		case v1alpha1.PhaseQueued:
			c.Queued++
		case v1alpha1.PhaseSyncing:
			c.Syncing++
		case v1alpha1.PhaseSnapshotting:
			c.Snapshotting++
		case v1alpha1.PhaseSucceeded:
			c.Succeeded++
		case v1alpha1.PhaseFailed:
			c.Failed++
		}
	}
	return c
}

// phase is a function of where the entries stand, without memory.
func phase(d plan.Decision, c *v1alpha1.DataSyncCounts) v1alpha1.DataSyncPhase {
	switch {
	case c.Failed > 0:
		return v1alpha1.DataSyncFailed
	case c.Succeeded == c.Total:
		return v1alpha1.DataSyncSucceeded
	}
	for _, e := range d.Entries {
		if e.Started || e.Phase != v1alpha1.PhaseQueued {
			return v1alpha1.DataSyncSyncing
		}
	}
	return v1alpha1.DataSyncQueued
}

func message(st *v1alpha1.DataSyncStatus) string {
	switch st.Phase {
	case v1alpha1.DataSyncFailed:
		var failed []string
		for _, e := range st.Entries {
			if e.Phase == v1alpha1.PhaseFailed {
				failed = append(failed, e.Name+": "+e.Message)
			}
		}
		return fmt.Sprintf("%d of %d entries failed: %s", st.Counts.Failed, st.Counts.Total, strings.Join(failed, "; "))
	case v1alpha1.DataSyncSucceeded:
		return fmt.Sprintf("All images are ready to be cloned: %s", st.Ready)
	case v1alpha1.DataSyncQueued:
		return "Waiting for a slot: no image has begun"
	}
	return "Images that are ready to be cloned: " + st.Ready
}

func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-3], "") + "..."
}

// Configuration is the server-side apply of a status, bound to the object that it was made from. Status and its apply
// configuration have the same JSON, so that no field can be forgotten here.
func Configuration(dataSync *v1alpha1.DataSync, st v1alpha1.DataSyncStatus) (*ac.DataSyncApplyConfiguration, error) {
	raw, err := json.Marshal(st)
	if err != nil {
		return nil, fmt.Errorf("encode the status: %w", err)
	}
	own := &ac.DataSyncStatusApplyConfiguration{}
	if err := json.Unmarshal(raw, own); err != nil {
		return nil, fmt.Errorf("decode the status: %w", err)
	}
	return ac.DataSync(dataSync.Name, dataSync.Namespace).
		WithUID(dataSync.UID).WithResourceVersion(dataSync.ResourceVersion).WithStatus(own), nil
}
