package plan_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/status"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

// story is a row of mutators; the operator settles before the first and after each.
type story struct {
	mods  []apitest.ImageMod
	setup func(*world)
	steps []func(*world)
	// what it ends with
	phase    v1alpha1.Phase
	attempts int32
	created  int
}

func steps(lists ...[]func(*world)) []func(*world) {
	var all []func(*world)
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

var (
	good    = []func(*world){(*world).admit, (*world).scheduled, (*world).imports, (*world).succeeds, (*world).binds, (*world).snapshotter}
	bad     = []func(*world){(*world).admit, (*world).imports, (*world).notFound, (*world).gc}
	turn    = []func(*world){(*world).admit, (*world).scheduled, (*world).imports, (*world).scratch, (*world).scheduled}
	waits   = []func(*world){(*world).sleeps}
	another = func(w *world) {
		w.changesSpec(func(s *v1alpha1.VMDiskImageSpec) { s.URL = "https://images.example.com/b.qcow2" })
	}
)

var stories = map[string]story{
	"success":             {steps: steps(turn, good), phase: v1alpha1.PhaseSucceeded, attempts: 1, created: 1},
	"retry-then-success":  {steps: steps(bad, waits, good), phase: v1alpha1.PhaseSucceeded, attempts: 2, created: 2},
	"retries-used-up":     {steps: steps(bad, waits, bad, waits, bad), phase: v1alpha1.PhaseFailed, attempts: 3, created: 3},
	"final-at-once":       {steps: []func(*world){(*world).admit, (*world).imports, (*world).mismatch, (*world).gc}, phase: v1alpha1.PhaseFailed, attempts: 1, created: 1},
	"stalled":             {steps: steps(stalls, waits, good), phase: v1alpha1.PhaseSucceeded, attempts: 2, created: 2},
	"progress-is-shown":   {steps: shows, phase: v1alpha1.PhaseSyncing, attempts: 1, created: 1},
	"spec-change-midway":  {steps: steps(good[:3], []func(*world){another, (*world).gc}, good), phase: v1alpha1.PhaseSucceeded, attempts: 1, created: 1},
	"spec-change-revives": {setup: once, steps: steps(bad, []func(*world){another}, good), phase: v1alpha1.PhaseSucceeded, attempts: 1, created: 1},
	"snapshot-overdue":    {steps: steps(good[:5], waits, []func(*world){(*world).snapshotter}), phase: v1alpha1.PhaseSucceeded, attempts: 1, created: 1},
	"refused":             {setup: refuse, steps: []func(*world){(*world).admit}, phase: v1alpha1.PhaseQueued, attempts: 1},
	"spec-change-there-and-back": {
		steps: steps(good, []func(*world){another, back, (*world).admit}), phase: v1alpha1.PhaseSucceeded, attempts: 0, created: 0,
	},
	"spec-change-with-the-slot-still-held": {
		steps: steps(good[:5], []func(*world){readyAtOnce}, good), phase: v1alpha1.PhaseSucceeded, attempts: 1, created: 1,
	},
	"snapshot-refused-then-allowed": {
		steps: steps(good[:4], []func(*world){refuse, (*world).binds, (*world).sleeps, allow, (*world).sleeps, (*world).snapshotter}),
		phase: v1alpha1.PhaseSucceeded, attempts: 1, created: 1,
	},
	"updated": {
		steps: steps(good, []func(*world){(*world).clones, another}, good, []func(*world){(*world).cloned}),
		phase: v1alpha1.PhaseSucceeded, attempts: 1, created: 1,
	},
	"update-fails": {
		setup: once, steps: steps(good, []func(*world){another}, bad), phase: v1alpha1.PhaseFailed, attempts: 1, created: 1,
	},
	"snapshot-lost": {
		steps: steps(good, []func(*world){(*world).deletesSnapshot, (*world).gc, (*world).snapshotter}),
		phase: v1alpha1.PhaseSucceeded, attempts: 1, created: 1,
	},
	"content-lost": {
		steps: steps(good, []func(*world){(*world).deletesContent, (*world).gc, (*world).snapshotter}),
		phase: v1alpha1.PhaseSucceeded, attempts: 1, created: 1,
	},
	"labels-stripped": {
		steps: steps(good, []func(*world){(*world).stripsLabels}), phase: v1alpha1.PhaseSucceeded, attempts: 1, created: 1,
	},
	"volume-lost": {
		steps: steps(good, []func(*world){(*world).deletesVolume, (*world).gc}, good), phase: v1alpha1.PhaseSucceeded, attempts: 1, created: 1,
	},
	"claim-lost": {
		steps: steps(good, []func(*world){(*world).deletesClaim, (*world).gc}, good), phase: v1alpha1.PhaseSucceeded, attempts: 1, created: 1,
	},
	"all-lost": {
		steps: steps(good, []func(*world){loseAll, (*world).gc}, good),
		phase: v1alpha1.PhaseSucceeded, attempts: 1, created: 1,
	},
	"snapshot-lost-during-the-update": {
		steps: steps(good, []func(*world){another, loseOther}, good), phase: v1alpha1.PhaseSucceeded, attempts: 1, created: 1,
	},
	"volume-goes-with-the-snapshot": {
		mods:  []apitest.ImageMod{func(i *v1alpha1.VMDiskImage) { i.Spec.VolumePolicy = v1alpha1.VolumeDeleteAfterSnapshot }},
		steps: steps(good, []func(*world){(*world).gc}), phase: v1alpha1.PhaseSucceeded, attempts: 1, created: 1,
	},
	"volume-goes-later": {
		steps: steps(good, []func(*world){(*world).clones, func(w *world) { w.volumes(v1alpha1.VolumeDeleteAfterSnapshot)() }, (*world).cloned, (*world).gc}),
		phase: v1alpha1.PhaseSucceeded, attempts: 1, created: 1,
	},
	"limit-lowered-while-backing-off": {
		steps: steps(bad, []func(*world){func(w *world) { w.set.Policy.RetryLimit = 0 }}, waits),
		phase: v1alpha1.PhaseFailed, attempts: 1, created: 1,
	},
}

func back(w *world) {
	w.changesSpec(func(s *v1alpha1.VMDiskImageSpec) { s.URL = "https://images.example.com/a.qcow2" })
}

// readyAtOnce makes the image Succeeded while another leader's release of the slot is lost.
func readyAtOnce(w *world) {
	w.snapshotter()
	for plan.StageOf(&w.image.Status) != plan.Succeeded {
		w.reconcile()
	}
	w.slot = v1alpha1.SlotName(0)
	another(w)
}

func loseAll(w *world) {
	w.deletesVolume()
	w.deletesSnapshot()
}

// loseOther deletes the snapshot of the artifact while another revision is being made.
func loseOther(w *world) {
	other := w.others[w.image.Status.Artifact.Snapshot]
	other.vs, other.content = nil, nil
	w.others[w.image.Status.Artifact.Snapshot] = other
	w.line("user", "deletes the VolumeSnapshot of the artifact")
}

func once(w *world)   { w.set.Policy.RetryLimit = 0 }
func allow(w *world)  { w.refusal = "" }
func refuse(w *world) { w.refusal = `admission webhook "x" denied the request: no` }

var stalls = []func(*world){
	(*world).admit, (*world).imports,
	func(w *world) { w.passes(time.Minute); w.progress("12.50%") },
	func(w *world) { w.sleeps() }, (*world).gc,
}

var shows = []func(*world){
	(*world).admit, (*world).imports,
	func(w *world) { w.passes(2 * time.Second); w.progress("1.00%") },
	func(w *world) { w.passes(2 * time.Second); w.progress("3.00%") },
	(*world).sleeps,
	func(w *world) { w.passes(2 * time.Second); w.progress("5.00%") },
}

// play tells the story; the operator crashes after the write of that number, if it is above 0.
func (s story) play(t *testing.T, crashAt int) *world {
	t.Helper()
	var w *world
	w = newWorld(func(format string, args ...any) {
		t.Helper()
		t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), w.transcript())
	}, s.mods...)
	w.crashAt = crashAt
	if s.setup != nil {
		s.setup(w)
	}
	w.settle()
	for _, step := range s.steps {
		step(w)
		w.settle()
		w.silent()
	}
	return w
}

// silent: the status of a settled state is its own result.
func (w *world) silent() {
	s := w.snapshot()
	d := plan.Next(s, w.set, w.now)
	again := status.Of(s.Image, d.Report, w.set.Policy.MaxAttempts(), metav1.NewTime(w.now))
	if !assert.ObjectsAreEqual(w.image.Status, persisted(again)) {
		w.fail("a second run changes the status of a settled state: %+v", again)
	}
}

func TestStories(t *testing.T) {
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			w := s.play(t, 0)
			assert.Equal(t, s.phase, w.image.Status.Phase)
			assert.Equal(t, s.attempts, w.image.Status.Attempts)
			assert.Equal(t, s.created, w.created[w.image.Status.Revision])
			if w.image.Status.Phase == v1alpha1.PhaseFailed || w.image.Status.Phase == v1alpha1.PhaseSucceeded {
				assert.Empty(t, w.slot, "an ended image holds no slot")
				assert.NotNil(t, w.image.Status.CompletedAt)
				assert.Nil(t, w.image.Status.NextAttemptTime)
			}
			golden(t, name, w.transcript())
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run go test with -update")
	assert.Equal(t, string(want), got)
}

// A crash after any write leaves a state from which the story ends as it would have.
func TestStoriesSurviveACrashAfterEveryWrite(t *testing.T) {
	for name, s := range stories {
		whole := s.play(t, 0)
		for k := 1; k <= whole.writes; k++ {
			w := s.play(t, k)
			require.Contains(t, w.transcript(), "crashes")
			assert.Equal(t, s.phase, w.image.Status.Phase, "%s, crash after write %d:\n%s", name, k, w.transcript())
			assert.Equal(t, s.attempts, w.image.Status.Attempts, "%s, crash after write %d", name, k)
			assert.Equal(t, whole.created, w.created, "%s, crash after write %d", name, k)
			assert.LessOrEqual(t, w.writes, whole.writes, "%s, crash after write %d: no write twice", name, k)
		}
	}
}

// Whatever happens in whatever order, the law holds at each write, and in the end the image is Succeeded or Failed.
func TestAnyOrderOfEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w *world
		w = newWorld(func(format string, args ...any) {
			t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), w.transcript())
		})
		names := make([]string, 0, len(happenings))
		for name := range happenings {
			names = append(names, name)
		}
		slices.Sort(names)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "crash") == 0 {
				w.crashAt = w.writes + rapid.IntRange(1, 3).Draw(t, "in")
			}
			happenings[rapid.SampledFrom(names).Draw(t, "what")](w)
			w.most = max(w.most, w.set.Policy.MaxAttempts())
			if rapid.Bool().Draw(t, "at once") {
				w.settle()
			}
		}
		w.refusal = ""
		for range 60 {
			for _, step := range steps([]func(*world){(*world).gc, (*world).cloned}, good, []func(*world){(*world).sleeps}) {
				step(w)
				w.settle()
			}
			if phase := w.image.Status.Phase; phase == v1alpha1.PhaseSucceeded || phase == v1alpha1.PhaseFailed {
				w.gc()
				w.settle()
				w.silent()
				if w.slot != "" {
					w.fail("an ended image holds a slot")
				}
				return
			}
		}
		w.fail("it does not end")
	})
}

var happenings = map[string]func(*world){
	"admit": (*world).admit, "admit again": (*world).admit, "scheduled": (*world).scheduled, "imports": (*world).imports,
	"scratch": (*world).scratch, "succeeds": (*world).succeeds, "binds": (*world).binds, "snapshotter": (*world).snapshotter,
	"not found": (*world).notFound, "mismatch": (*world).mismatch, "gc": (*world).gc, "gc again": (*world).gc,
	"progress":     func(w *world) { w.progress("50.00%") },
	"a second":     func(w *world) { w.passes(time.Second) },
	"a while":      func(w *world) { w.passes(16 * time.Minute) },
	"an age":       func(w *world) { w.passes(3 * time.Hour) },
	"sleeps":       (*world).sleeps,
	"no retries":   func(w *world) { w.set.Policy.RetryLimit = 0 },
	"more retries": func(w *world) { w.set.Policy.RetryLimit = 3 },
	"refuse":       func(w *world) { refuse(w) },
	"allow":        func(w *world) { w.refusal = "" },
	"another spec": func(w *world) { w.changesSpec(func(s *v1alpha1.VMDiskImageSpec) { s.URL += "x" }) },
	"back to before": func(w *world) {
		w.changesSpec(func(s *v1alpha1.VMDiskImageSpec) { s.URL = strings.TrimSuffix(s.URL, "x") })
	},
	"requested":   func(w *world) { apitest.SyncRequested(w.now.String())(w.image); w.touch() },
	"another TTL": func(w *world) { w.changesSpec(func(s *v1alpha1.VMDiskImageSpec) { s.UnusedTTL = &metav1.Duration{} }) },
	"lease deleted": func(w *world) {
		if w.slot != "" && w.dv == nil {
			w.slot = ""
			w.line("user", "deletes the Lease")
		}
	},
	// While the operator runs: a DataVolume that comes and goes during its outage cannot be told from one never made.
	"volume deleted": func(w *world) {
		if w.dv != nil && w.dv.DeletionTimestamp == nil {
			w.deletesVolume()
			w.crashAt = 0
			w.settle()
		}
	},
	"snapshot deleted": (*world).deletesSnapshot,
	"content deleted":  (*world).deletesContent,
	"claim deleted":    (*world).deletesClaim,
	"clones":           (*world).clones,
	"cloned":           (*world).cloned,
	"without volume":   func(w *world) { w.volumes(v1alpha1.VolumeDeleteAfterSnapshot)() },
	"with volume":      func(w *world) { w.volumes(v1alpha1.VolumeRetain)() },
	"crash":            func(w *world) { w.seen = "" },

	"the source is refused":  forbid,
	"the source is admitted": permit,
}
