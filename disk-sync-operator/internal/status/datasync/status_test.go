package datasync_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	plan "github.com/pelotech/open-terrain/disk-sync-operator/internal/plan/datasync"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/status"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/status/datasync"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	now   = metav1.NewTime(time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC))
	later = metav1.NewTime(now.Add(time.Minute))

	queued    = plan.Entry{Name: "q", Image: "lab-q", Phase: v1alpha1.PhaseQueued, Message: "2 were ahead"}
	retried   = plan.Entry{Name: "r", Image: "lab-r", Phase: v1alpha1.PhaseQueued, Message: "Attempt 1 of 3 failed", Started: true}
	syncing   = plan.Entry{Name: "s", Image: "lab-s", Phase: v1alpha1.PhaseSyncing, Started: true}
	snapping  = plan.Entry{Name: "n", Image: "lab-n", Phase: v1alpha1.PhaseSnapshotting, Started: true}
	succeeded = plan.Entry{Name: "ok", Image: "lab-ok", Phase: v1alpha1.PhaseSucceeded, Started: true}
	failed    = plan.Entry{Name: "f", Image: "lab-f", Phase: v1alpha1.PhaseFailed, Message: "got 404"}
)

func decided(entries ...plan.Entry) plan.Decision { return plan.Decision{Entries: entries} }

func TestWords(t *testing.T) {
	const unblocked, progressing = "False NothingBlocked", "False Progressing"
	cases := map[string]struct {
		decision plan.Decision
		phase    v1alpha1.DataSyncPhase
		ready    string
		message  string
		want     []string // Ready, Stalled, DeletionBlocked
	}{
		"none has begun":      {decided(queued, queued), v1alpha1.DataSyncQueued, "0/2", "Waiting for a slot: no image has begun", []string{"False Queued", progressing, unblocked}},
		"one syncs":           {decided(queued, syncing), v1alpha1.DataSyncSyncing, "0/2", "Images that are ready to be cloned: 0/2", []string{"False Syncing", progressing, unblocked}},
		"one waits to retry":  {decided(queued, retried), v1alpha1.DataSyncSyncing, "0/2", "Images that are ready to be cloned: 0/2", []string{"False Syncing", progressing, unblocked}},
		"one snapshots":       {decided(snapping), v1alpha1.DataSyncSyncing, "0/1", "Images that are ready to be cloned: 0/1", []string{"False Syncing", progressing, unblocked}},
		"one of two is ready": {decided(queued, succeeded), v1alpha1.DataSyncSyncing, "1/2", "Images that are ready to be cloned: 1/2", []string{"False Syncing", progressing, unblocked}},
		"all are ready":       {decided(succeeded), v1alpha1.DataSyncSucceeded, "1/1", "All images are ready to be cloned: 1/1", []string{"True EntriesReady", progressing, unblocked}},
		"one failed":          {decided(failed, syncing, succeeded), v1alpha1.DataSyncFailed, "1/3", "1 of 3 entries failed: f: got 404", []string{"False EntriesFailed", "True EntriesFailed", unblocked}},
		"a former one is in use": {
			plan.Decision{Entries: []plan.Entry{succeeded}, Blocked: []*v1alpha1.VMDiskImage{apitest.Image("lab-old", apitest.UsedBy(2, "x/vm1", "x/vm2"))}},
			v1alpha1.DataSyncSucceeded, "1/1", "All images are ready to be cloned: 1/1", []string{"True EntriesReady", progressing, "True InUse"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			st := datasync.Of(apitest.DataSync("lab"), c.decision, now)
			assert.Equal(t, c.phase, st.Phase)
			assert.Equal(t, c.ready, st.Ready)
			assert.Equal(t, c.message, st.Message)
			var got []string
			for _, kind := range []string{"Ready", "Stalled", "DeletionBlocked"} {
				got = append(got, apitest.ConditionOf(st.Conditions, kind))
			}
			assert.Equal(t, c.want, got)
			assert.Empty(t, apitest.Wrong(st.Conditions, 1))
			counts := *st.Counts
			assert.Equal(t, counts.Total, counts.Queued+counts.Syncing+counts.Snapshotting+counts.Succeeded+counts.Failed)
		})
	}
}

func TestTheConditionNamesWhatIsInUse(t *testing.T) {
	d := plan.Decision{Blocked: []*v1alpha1.VMDiskImage{apitest.Image("old", apitest.UsedBy(2, "x/vm1", "x/vm2")), apitest.Image("older", apitest.UsedBy(1))}}
	st := datasync.Of(apitest.DataSync("lab"), d, now)
	assert.Equal(t, "Images of former entries that are in use; each is deleted once it is released: "+
		"old (virtual machines: 2, such as x/vm1, x/vm2); older (virtual machines: 1)", st.Conditions[2].Message)
}

func TestASecondLookChangesNothing(t *testing.T) {
	d := apitest.DataSync("lab")
	d.Status = datasync.Of(d, decided(failed, syncing), now)
	assert.Equal(t, d.Status, datasync.Of(d, decided(failed, syncing), later))

	d.Generation = 2
	st := datasync.Of(d, decided(failed, syncing), later)
	assert.EqualValues(t, 2, st.ObservedGeneration)
	assert.Equal(t, now, st.Conditions[0].LastTransitionTime, "it moves with the status only")
}

func TestLongMessagesAreCut(t *testing.T) {
	long := failed
	long.Message = strings.Repeat("ä", 2000)
	var all []plan.Entry
	for range 100 {
		all = append(all, long)
	}
	st := datasync.Of(apitest.DataSync("lab"), decided(all...), now)
	raw, err := json.Marshal(st)
	require.NoError(t, err)
	assert.Less(t, len(raw), 100<<10)
	assert.LessOrEqual(t, len(st.Message), 1024)
}

func TestEvents(t *testing.T) {
	at := func(phase v1alpha1.DataSyncPhase) *v1alpha1.DataSyncStatus {
		return &v1alpha1.DataSyncStatus{Phase: phase, Message: "m"}
	}
	cases := map[string]struct {
		before, after v1alpha1.DataSyncPhase
		want          string
	}{
		"the first look":    {"", v1alpha1.DataSyncQueued, ""},
		"nothing changes":   {v1alpha1.DataSyncSyncing, v1alpha1.DataSyncSyncing, ""},
		"failed at once":    {"", v1alpha1.DataSyncFailed, "Failed"},
		"it begins":         {v1alpha1.DataSyncQueued, v1alpha1.DataSyncSyncing, "Syncing"},
		"it ends":           {v1alpha1.DataSyncSyncing, v1alpha1.DataSyncSucceeded, "Succeeded"},
		"it recovers":       {v1alpha1.DataSyncFailed, v1alpha1.DataSyncSyncing, "Syncing"},
		"it goes back":      {v1alpha1.DataSyncFailed, v1alpha1.DataSyncQueued, "Queued"},
		"a success is lost": {v1alpha1.DataSyncSucceeded, v1alpha1.DataSyncFailed, "Failed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			event, ok := datasync.EventOf(at(c.before), at(c.after))
			assert.Equal(t, c.want != "", ok)
			if ok {
				assert.Equal(t, status.Event{Warning: c.want == "Failed", Reason: c.want, Action: "Sync", Note: "m"}, event)
			}
		})
	}
}

func TestConfigurationCarriesTheWholeStatus(t *testing.T) {
	d := apitest.DataSync("lab")
	st := datasync.Of(d, decided(failed, syncing), now)
	apply, err := datasync.Configuration(d, st)
	require.NoError(t, err)
	want, err := json.Marshal(st)
	require.NoError(t, err)
	got, err := json.Marshal(apply.Status)
	require.NoError(t, err)
	assert.JSONEq(t, string(want), string(got))
	assert.Equal(t, d.UID, *apply.UID)
	assert.Equal(t, d.ResourceVersion, *apply.ResourceVersion)
}
