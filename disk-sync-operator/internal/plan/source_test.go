package plan_test

import (
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// elsewhere lists a source that no image of these tests has.
func elsewhere() []policy.Source {
	source, wrong := policy.ParseSource("https://elsewhere.example.com/")
	if wrong != "" {
		panic(wrong)
	}
	return []policy.Source{source}
}

func forbid(w *world) { w.set.Policy.AllowedSources = elsewhere() }
func permit(w *world) { w.set.Policy.AllowedSources = nil }

// sourceStories are stories of images whose source is refused for a time.
var sourceStories = map[string]story{
	"source-refused":  {setup: forbid, steps: []func(*world){(*world).admit}, phase: v1alpha1.PhaseFailed},
	"source-admitted": {setup: forbid, steps: steps([]func(*world){permit}, good), phase: v1alpha1.PhaseSucceeded, attempts: 1, created: 1},
	"source-refused-while-queued": {
		steps: []func(*world){forbid}, phase: v1alpha1.PhaseFailed,
	},
	"source-refused-with-the-slot-given": { // the policy and the slot cross on the way
		steps: []func(*world){func(w *world) { forbid(w); w.admit() }}, phase: v1alpha1.PhaseFailed,
	},
	"source-refused-while-backing-off": {
		steps: steps(bad, []func(*world){forbid}, waits, []func(*world){permit}, good), phase: v1alpha1.PhaseSucceeded, attempts: 2, created: 2,
	},
	"source-refused-while-syncing": {
		steps: steps(good[:3], []func(*world){forbid}, good[3:]), phase: v1alpha1.PhaseSucceeded, attempts: 1, created: 1,
	},
	"source-refused-while-syncing-in-vain": {
		steps: steps(bad[:2], []func(*world){forbid}, bad[2:], waits), phase: v1alpha1.PhaseFailed, attempts: 1, created: 1,
	},
	"source-refused-of-an-update": {
		steps: steps(good, []func(*world){func(w *world) { forbid(w); another(w) }}), phase: v1alpha1.PhaseFailed,
	},
}

func TestSourceStories(t *testing.T) {
	for name, s := range sourceStories {
		t.Run(name, func(t *testing.T) {
			w := s.play(t, 0)
			s.endsAs(t, w)
			assert.Empty(t, w.slot)
			golden(t, name, w.transcript())
			for k := 1; k <= w.writes; k++ {
				s.endsAs(t, s.play(t, k))
			}
		})
	}
}

// endsAs checks the end that the story has.
func (s story) endsAs(t *testing.T, w *world) {
	t.Helper()
	st := w.image.Status
	require.Equal(t, s.phase, st.Phase, w.transcript())
	assert.Equal(t, s.attempts, st.Attempts)
	assert.Equal(t, s.created, w.created[st.Revision])
	if s.phase != v1alpha1.PhaseFailed {
		return
	}
	require.NotNil(t, st.LastFailure)
	assert.Equal(t, v1alpha1.FailureSourceNotAllowed, st.LastFailure.Reason)
	assert.Equal(t, "True SourceNotAllowed", apitest.ConditionOf(st.Conditions, v1alpha1.ConditionStalled))
	assert.False(t, plan.Misjudged(w.image, w.set.Policy))
	assert.True(t, plan.Misjudged(w.image, policy.Default()), "it may queue under another policy")
}

func TestAnUpdateThatIsRefusedLeavesTheArtifact(t *testing.T) {
	w := sourceStories["source-refused-of-an-update"].play(t, 0)
	assert.True(t, w.image.IsReady())
	assert.NotEqual(t, w.image.Status.Revision, w.image.Status.Artifact.Revision)
	back(w)
	w.settle()
	w.admit()
	w.settle()
	assert.Equal(t, v1alpha1.PhaseSucceeded, w.image.Status.Phase, "back to what is there: nothing is downloaded\n%s", w.transcript())
}

func TestMisjudged(t *testing.T) {
	way := func(steps ...func(*world)) *v1alpha1.VMDiskImage {
		w := newWorld(func(format string, args ...any) { t.Fatalf(format, args...) })
		w.settle()
		for _, step := range steps {
			step(w)
			w.settle()
		}
		return w.image
	}
	narrow := policy.Policy{AllowedSources: elsewhere()}
	for name, c := range map[string]struct {
		image *v1alpha1.VMDiskImage
		want  bool // under a policy that refuses it
	}{
		"an image that nobody has seen": {apitest.Image("a"), true},
		"one that waits":                {way(toQueued...), true},
		"one that backs off":            {way(toBackingOff...), true},
		"one that syncs":                {way(toImporting...), false},
		"one that is snapshotted":       {way(toSnapshotting...), false},
		"one that is ready":             {way(toSucceeded...), false},
		"one that failed by itself":     {way(toFailed...), false},
		"one that is being deleted":     {apitest.Image("a", apitest.Deleted(metav1.Time{Time: epoch})), false},
		"one that was refused":          {way(forbid), false},
	} {
		assert.Equal(t, c.want, plan.Misjudged(c.image, narrow), name)
		assert.Equal(t, name == "one that was refused", plan.Misjudged(c.image, policy.Default()), "%s, under a policy that admits it", name)
	}
}

func TestARefusedImageThatHasUsedUpItsAttemptsStaysFailed(t *testing.T) {
	w := newWorld(func(format string, args ...any) { t.Fatalf(format, args...) })
	for _, step := range steps([]func(*world){(*world).settle}, bad, []func(*world){forbid, (*world).settle, once, permit, (*world).settle}) {
		step(w)
		w.settle()
	}
	w.passes(time.Hour)
	w.settle()
	assert.Equal(t, v1alpha1.PhaseFailed, w.image.Status.Phase, w.transcript())
}
