package status_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/status"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	now   = metav1.NewTime(time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC))
	later = metav1.NewTime(now.Add(time.Minute))
	wrong = &v1alpha1.Failure{Time: now, Reason: v1alpha1.FailureSourceNotFound, Message: "got 404"}
	ready = &v1alpha1.Artifact{Revision: "r", DataVolume: "a-r", Snapshot: "a-r", CompletedAt: now}
)

func report(stage plan.Stage, mods ...func(*plan.Report)) plan.Report {
	r := plan.Report{Stage: stage, Revision: "r", Attempt: 1}
	for _, mod := range mods {
		mod(&r)
	}
	return r
}

func failure(r *plan.Report) { r.Failure = wrong }
func retry(r *plan.Report)   { r.Failure, r.RetryAt = wrong, now.Add(5*time.Minute) }
func refusal(r *plan.Report) {
	r.Failure = &v1alpha1.Failure{Time: later, Reason: v1alpha1.FailureSourceNotAllowed, Message: "change spec.url"}
}
func artifact(r *plan.Report) { r.Artifact = ready }

// of is the status after a row of reports.
func of(reports ...plan.Report) *v1alpha1.VMDiskImage {
	image := apitest.Image("a")
	for _, r := range reports {
		image.Status = status.Of(image, r, 3, now)
	}
	return image
}

func TestWords(t *testing.T) {
	entered := report(plan.Queued, func(r *plan.Report) { r.Ticket, r.Ahead, r.Attempt = 7, 2, 0 })
	cases := map[string]struct {
		reports    []plan.Report
		phase      v1alpha1.Phase
		message    string
		conditions []string // Ready, Synced, SnapshotReady, Stalled
	}{
		"queued": {
			[]plan.Report{entered}, v1alpha1.PhaseQueued, "Waiting for a slot; 2 were ahead when it was queued",
			[]string{"False Queued", "False Queued", "False NotSynced", "False Progressing"},
		},
		"syncing": {
			[]plan.Report{entered, report(plan.Syncing)}, v1alpha1.PhaseSyncing, "Attempt 1 of 3 is under way",
			[]string{"False Syncing", "False Syncing", "False NotSynced", "False Progressing"},
		},
		"syncing, and waiting for a node": {
			[]plan.Report{entered, report(plan.Syncing, func(r *plan.Report) { r.Waits = "no node" })},
			v1alpha1.PhaseSyncing, "Attempt 1 of 3 is under way: no node",
			[]string{"False Syncing", "False Syncing", "False NotSynced", "False Progressing"},
		},
		"backing off": {
			[]plan.Report{entered, report(plan.Syncing), report(plan.BackingOff, retry)}, v1alpha1.PhaseQueued,
			"Attempt 1 of 3 failed: SourceNotFound: got 404; the next one starts after 2026-01-02T03:05:00Z, in its turn",
			[]string{"False BackingOff", "False BackingOff", "False NotSynced", "False Progressing"},
		},
		"failed": {
			[]plan.Report{entered, report(plan.Syncing), report(plan.Failed, failure)}, v1alpha1.PhaseFailed,
			"Attempt 1 of 3 failed: SourceNotFound: got 404. Change the spec, or set the annotation pelotech.ot/sync-requested-at to a new value, to try again",
			[]string{"False SourceNotFound", "False SourceNotFound", "False NotSynced", "True SourceNotFound"},
		},
		"its source is refused": {
			[]plan.Report{report(plan.Failed, refusal, func(r *plan.Report) { r.Attempt = 0 })}, v1alpha1.PhaseFailed,
			"Nothing was downloaded: SourceNotAllowed: change spec.url",
			[]string{"False SourceNotAllowed", "False SourceNotAllowed", "False NotSynced", "True SourceNotAllowed"},
		},
		"its source is refused after an attempt": {
			[]plan.Report{entered, report(plan.Syncing), report(plan.BackingOff, retry), report(plan.Failed, refusal)}, v1alpha1.PhaseFailed,
			"Nothing more is downloaded: SourceNotAllowed: change spec.url",
			[]string{"False SourceNotAllowed", "False SourceNotAllowed", "False NotSynced", "True SourceNotAllowed"},
		},
		"its source is admitted after all": {
			[]plan.Report{report(plan.Failed, refusal), entered}, v1alpha1.PhaseQueued, "Waiting for a slot; 2 were ahead when it was queued",
			[]string{"False Queued", "False Queued", "False NotSynced", "False Progressing"},
		},
		"snapshotting": {
			[]plan.Report{entered, report(plan.Syncing), report(plan.Snapshotting)}, v1alpha1.PhaseSnapshotting,
			"The volume is complete; waiting for its snapshot",
			[]string{"False Snapshotting", "True Synced", "False Snapshotting", "False Progressing"},
		},
		"the snapshot is overdue": {
			[]plan.Report{entered, report(plan.Snapshotting), report(plan.Snapshotting, failure), report(plan.Snapshotting)},
			v1alpha1.PhaseFailed, "got 404", []string{"False SourceNotFound", "True Synced", "False Snapshotting", "True SourceNotFound"},
		},
		"succeeded": {
			[]plan.Report{entered, report(plan.Snapshotting), report(plan.Succeeded, artifact)}, v1alpha1.PhaseSucceeded,
			"The snapshot is ready to be cloned",
			[]string{"True SnapshotReady", "True Synced", "True SnapshotReady", "False Progressing"},
		},
		"an update stays ready with what it has": {
			[]plan.Report{
				report(plan.Succeeded, artifact),
				{Stage: plan.Queued, Revision: "next", Ticket: 9}, {Stage: plan.Syncing, Revision: "next", Attempt: 1, Starts: true},
			},
			v1alpha1.PhaseSyncing, "Attempt 1 of 3 is under way",
			[]string{"True SnapshotReady", "False Syncing", "False NotSynced", "False Progressing"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			image := of(c.reports...)
			st := image.Status
			assert.Equal(t, c.phase, st.Phase)
			assert.Equal(t, c.message, st.Message)
			var got []string
			for _, kind := range []string{"Ready", "Synced", "SnapshotReady", "Stalled"} {
				got = append(got, apitest.ConditionOf(st.Conditions, kind))
			}
			assert.Equal(t, c.conditions, got)
			assert.Empty(t, apitest.Wrong(st.Conditions, image.Generation))
			assert.Equal(t, plan.StageOf(&st), c.reports[len(c.reports)-1].Stage, "the stage can be read back")
		})
	}
}

func TestANewRevisionForgetsTheOldOnesHistory(t *testing.T) {
	image := of(report(plan.Succeeded, artifact), report(plan.BackingOff, retry))
	image.Status.References = &v1alpha1.References{Count: 2}
	image.Status = status.Of(image, plan.Report{Stage: plan.Queued, Revision: "next", Ticket: 9}, 3, later)
	st := image.Status
	assert.Nil(t, st.LastFailure)
	assert.Nil(t, st.NextAttemptTime)
	assert.Nil(t, st.CompletedAt)
	assert.Zero(t, st.Attempts)
	assert.Equal(t, ready, st.Artifact, "the artifact stays")
	assert.EqualValues(t, 2, st.References.Count, "the references are not ours")
	assert.Equal(t, &later, st.QueuedAt)
	assert.EqualValues(t, 9, st.Ticket)
}

func TestTransitionTimesMoveWithTheStatusOnly(t *testing.T) {
	image := of(report(plan.Syncing))
	image.Status = status.Of(image, report(plan.Syncing, func(r *plan.Report) { r.Progress = "50.00%" }), 3, later)
	assert.Equal(t, "50.00%", image.Status.Progress)
	assert.Equal(t, &later, image.Status.ProgressAt)
	for _, c := range image.Status.Conditions {
		assert.Equal(t, now, c.LastTransitionTime, c.Type)
	}
	image.Status = status.Of(image, report(plan.Snapshotting), 3, later)
	assert.Equal(t, later, image.Status.Conditions[1].LastTransitionTime, "Synced became True")
	assert.Equal(t, now, image.Status.Conditions[0].LastTransitionTime, "Ready did not")
}

func TestTheSameReportTwiceIsTheSameStatus(t *testing.T) {
	for _, stage := range []plan.Stage{plan.Queued, plan.Syncing, plan.BackingOff, plan.Snapshotting, plan.Succeeded, plan.Failed} {
		image := of(report(plan.Syncing), report(stage, func(r *plan.Report) {
			if stage == plan.BackingOff {
				retry(r)
			}
			if stage == plan.Succeeded {
				artifact(r)
			}
		}))
		again := status.Of(image, report(stage), 3, later)
		assert.Equal(t, image.Status, again, stage)
	}
}

func TestALoweredLimitEndsAnImageThatBacksOff(t *testing.T) {
	image := of(report(plan.Syncing), report(plan.BackingOff, retry))
	st := status.Of(image, report(plan.Failed), 1, later)
	assert.Equal(t, v1alpha1.PhaseFailed, st.Phase)
	assert.Nil(t, st.NextAttemptTime)
	assert.Equal(t, &later, st.CompletedAt)
}

func TestEvents(t *testing.T) {
	syncing, backing := report(plan.Syncing), report(plan.BackingOff, retry)
	cases := map[string]struct {
		before []plan.Report
		next   plan.Report
		want   string // reason, "!" before a warning, or nothing
	}{
		"it enters the queue":          {nil, report(plan.Queued), ""},
		"an attempt begins":            {[]plan.Report{report(plan.Queued)}, syncing, "Syncing"},
		"it makes progress":            {[]plan.Report{syncing}, report(plan.Syncing, func(r *plan.Report) { r.Progress = "5%" }), ""},
		"it waits":                     {[]plan.Report{syncing}, report(plan.Syncing, func(r *plan.Report) { r.Waits = "no node" }), ""},
		"an attempt fails":             {[]plan.Report{syncing}, backing, "!AttemptFailed"},
		"it goes on backing off":       {[]plan.Report{syncing, backing}, report(plan.BackingOff), ""},
		"it goes back to the queue":    {[]plan.Report{syncing, backing}, report(plan.Queued, func(r *plan.Report) { r.Ticket = 9 }), ""},
		"the last attempt fails":       {[]plan.Report{syncing}, report(plan.Failed, failure), "!Failed"},
		"no attempt is left after all": {[]plan.Report{syncing, backing}, report(plan.Failed), "!Failed"},
		"the volume is complete":       {[]plan.Report{syncing}, report(plan.Snapshotting), ""},
		"the snapshot is overdue":      {[]plan.Report{report(plan.Snapshotting)}, report(plan.Snapshotting, failure), "!Failed"},
		"the snapshot is ready":        {[]plan.Report{report(plan.Snapshotting)}, report(plan.Succeeded, artifact), "Succeeded"},
		"it goes on being ready":       {[]plan.Report{report(plan.Succeeded, artifact)}, report(plan.Succeeded), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			image := of(c.before...)
			next := status.Of(image, c.next, 3, later)
			event, is := status.EventOf(&image.Status, &next)
			got := event.Reason
			if event.Warning {
				got = "!" + got
			}
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.want != "", is)
			if is {
				assert.NotEmpty(t, event.Note)
				assert.NotEmpty(t, event.Action)
			}
		})
	}
}

func TestALongNoteIsCutBetweenCharacters(t *testing.T) {
	image := of(report(plan.Syncing))
	next := status.Of(image, report(plan.Failed, func(r *plan.Report) {
		r.Failure = &v1alpha1.Failure{Time: now, Reason: v1alpha1.FailureUnknown, Message: "x" + strings.Repeat("ä", 511)}
	}), 3, later)
	event, is := status.EventOf(&image.Status, &next)
	require.True(t, is)
	assert.LessOrEqual(t, len(event.Note), 1024, "the API server takes no more")
	assert.True(t, utf8.ValidString(event.Note))
}

func TestConfigurationIsTheWholeStatusWithoutReferences(t *testing.T) {
	size, at := resource.MustParse("1Gi"), now
	full := v1alpha1.VMDiskImageStatus{
		Phase: v1alpha1.PhaseSyncing, Message: "m", ObservedGeneration: 2, Revision: "r", Ticket: 3, QueuedAt: &at, StartedAt: &at,
		Conditions:  []metav1.Condition{{Type: "Ready", Status: "False", Reason: "Queued", Message: "m", ObservedGeneration: 2, LastTransitionTime: at}},
		CompletedAt: &at, Attempts: 1, AttemptUID: "u", LastFailure: wrong, NextAttemptTime: &at, Progress: "1%", ProgressAt: &at,
		Artifact:   &v1alpha1.Artifact{Revision: "r", DataVolume: "d", Snapshot: "s", RestoreSize: &size, CompletedAt: at},
		References: &v1alpha1.References{Count: 3, Sample: []string{"a/b"}, LastReferencedAt: &at}, ExpiresAt: &at,
		LastLoss: &v1alpha1.Loss{Time: at, Kind: v1alpha1.LostSnapshot, Name: "s"}, Losses: 1,
	}
	for i, fields := 0, reflect.ValueOf(full); i < fields.NumField(); i++ {
		assert.False(t, fields.Field(i).IsZero(), "give %s a value here", fields.Type().Field(i).Name)
	}
	image := apitest.Image("a")
	apply, err := status.Configuration(image, full)
	require.NoError(t, err)
	assert.Nil(t, apply.Status.References)
	assert.Equal(t, image.UID, *apply.UID)
	assert.Equal(t, image.ResourceVersion, *apply.ResourceVersion)
	assert.NotNil(t, full.References, "the status that was given stays whole")

	raw, err := json.Marshal(apply.Status)
	require.NoError(t, err)
	full.References = nil
	want, err := json.Marshal(full)
	require.NoError(t, err)
	assert.JSONEq(t, string(want), string(raw))
}

func TestARefusedSourceIsTheEndAndNoAttempt(t *testing.T) {
	for name, before := range map[string]*v1alpha1.VMDiskImage{
		"of a new image":    apitest.Image("a"),
		"of a failed image": of(report(plan.Syncing), report(plan.Failed, failure)),
	} {
		after := status.Of(before, report(plan.Failed, refusal), 3, later)
		event, is := status.EventOf(&before.Status, &after)
		assert.True(t, is, name)
		assert.Equal(t, status.Event{Warning: true, Reason: "Failed", Action: "Sync", Note: after.Message}, event, name)
	}
	refused := of(report(plan.Failed, refusal))
	assert.NotNil(t, refused.Status.CompletedAt)
	admitted := status.Of(refused, report(plan.Queued, func(r *plan.Report) { r.Ticket = 9 }), 3, later)
	assert.Nil(t, admitted.LastFailure)
	assert.Nil(t, admitted.CompletedAt)
}
