package plan_test

import (
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// referenced sets the references as their field manager does.
func referenced(count int32, sample ...string) apitest.ImageMod {
	return apitest.Status(func(st *v1alpha1.VMDiskImageStatus) {
		st.References = &v1alpha1.References{Count: count, Sample: sample}
	})
}

func protected(i *v1alpha1.VMDiskImage) {
	i.Finalizers = append(i.Finalizers, v1alpha1.FinalizerProtection)
}

func foreignFinalizer(i *v1alpha1.VMDiskImage) {
	i.Finalizers = append(i.Finalizers, "example.com/backup")
}

func message(text string) apitest.ImageMod {
	return apitest.Status(func(st *v1alpha1.VMDiskImageStatus) { st.Message = text })
}

var going = apitest.Deleted(metav1.NewTime(epoch))

func TestProtectionOf(t *testing.T) {
	cases := map[string]struct {
		mods []apitest.ImageMod
		want plan.Protection
	}{
		"nobody has ever used it":               {nil, plan.KeepProtection},
		"nobody uses it any more":               {[]apitest.ImageMod{referenced(0)}, plan.KeepProtection},
		"it is claimed":                         {[]apitest.ImageMod{referenced(1)}, plan.AddProtection},
		"it is claimed, and somebody else's":    {[]apitest.ImageMod{referenced(1), foreignFinalizer}, plan.AddProtection},
		"it is in use":                          {[]apitest.ImageMod{referenced(2), protected}, plan.KeepProtection},
		"it is in use, and being deleted":       {[]apitest.ImageMod{referenced(2), protected, going}, plan.KeepProtection},
		"it is claimed too late":                {[]apitest.ImageMod{referenced(1), foreignFinalizer, going}, plan.KeepProtection},
		"it is released":                        {[]apitest.ImageMod{referenced(0), protected}, plan.RemoveProtection},
		"it is released, and being deleted":     {[]apitest.ImageMod{referenced(0), protected, going}, plan.RemoveProtection},
		"its references are gone as a whole":    {[]apitest.ImageMod{protected}, plan.RemoveProtection},
		"it came with the finalizer, of a copy": {[]apitest.ImageMod{foreignFinalizer, protected}, plan.RemoveProtection},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, plan.ProtectionOf(apitest.Image("a", c.mods...)))
		})
	}
}

// held makes the image of a Snapshot one that is being deleted and is still in use.
func held(s *plan.Snapshot) {
	for _, m := range []apitest.ImageMod{referenced(2, "lab/web", "lab/db"), protected, going} {
		m(s.Image)
	}
}

func TestAnImageThatIsBeingDeletedEndsWhatIsUnderWay(t *testing.T) {
	back := func(w *world) {
		another(w)
		w.settle()
		w.changesSpec(func(s *v1alpha1.VMDiskImageSpec) { *s = apitest.Image("a").Spec })
	}
	cases := map[string]struct {
		way  []func(*world)
		mods []mod
		want outcome
	}{
		"it waits for a slot":                       {toQueued, nil, outcome{stage: plan.Queued}},
		"it has just got a slot":                    {toQueued, []mod{slot}, outcome{stage: plan.Queued, ended: true, release: true}},
		"its volume is about to be made":            {toSyncing, []mod{noVolume, unseen}, outcome{stage: plan.Queued, ended: true, release: true}},
		"it syncs":                                  {toImporting, nil, outcome{stage: plan.Queued, ended: true, actions: does(plan.DeleteDataVolume)}},
		"it syncs, the volume is going":             {toImporting, []mod{leaving}, outcome{stage: plan.Queued, ended: true}},
		"it syncs, the volume is gone":              {toImporting, []mod{noVolume}, outcome{stage: plan.Queued, ended: true, release: true}},
		"it syncs, a stranger's volume is there":    {toImporting, []mod{foreign}, outcome{stage: plan.Queued, ended: true, release: true}},
		"the spec has changed while it syncs":       {toImporting, []mod{otherSpec}, outcome{stage: plan.Queued, ended: true, actions: does(plan.DeleteDataVolume)}},
		"it waits for the next attempt":             {toBackingOff, nil, outcome{stage: plan.BackingOff}},
		"its next attempt is due":                   {toBackingOff, []mod{due}, outcome{stage: plan.BackingOff}},
		"it waits for its snapshot":                 {toSnapshotting, nil, outcome{stage: plan.Snapshotting}},
		"its snapshot is about to be made":          {toSnapshotting, []mod{noSnapshot}, outcome{stage: plan.Snapshotting}},
		"it has succeeded":                          {toSucceeded, nil, outcome{stage: plan.Succeeded}},
		"it has succeeded, with a slot":             {toSucceeded, []mod{slot}, outcome{stage: plan.Succeeded, release: true}},
		"it has succeeded and the spec has changed": {toSucceeded, []mod{otherSpec}, outcome{stage: plan.Succeeded}},
		"it has succeeded and lost its volume":      {toSucceeded, []mod{noVolume}, outcome{stage: plan.Succeeded}},
		"the spec has gone there and back":          {steps(toSucceeded, []func(*world){back}), nil, outcome{stage: plan.Succeeded}},
		"it has failed":                             {toFailed, nil, outcome{stage: plan.Failed}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(func(format string, args ...any) { t.Fatalf(format, args...) })
			w.settle()
			for _, step := range c.way {
				step(w)
				w.settle()
			}
			s := w.snapshot()
			held(&s)
			for _, m := range c.mods {
				m(&s)
			}
			d := plan.Next(s, w.set, w.now.Add(time.Hour))
			assert.Equal(t, c.want, outcomeOf(d, w.now))
			assert.False(t, d.Prune)
			assert.Equal(t, "Deletion waits for the 2 virtual machines that use it: lab/web, lab/db", d.Report.Deletion)
		})
	}
}

func noSnapshot(s *plan.Snapshot) { s.VolumeSnapshot, s.Content = nil, nil }

// TestWithdrawn plays it to the end: the attempt is ended by the rules that hold for any, and nothing is begun again.
func TestWithdrawn(t *testing.T) {
	w := newWorld(func(format string, args ...any) { t.Fatalf(format, args...) }, referenced(1, "lab/web"), protected)
	w.settle()
	w.admit()
	w.settle()
	w.imports()
	w.settle()
	going(w.image)
	w.settle()
	assert.NotNil(t, w.dv.DeletionTimestamp)
	assert.NotEmpty(t, w.slot, "until the volume is gone")
	w.gc()
	w.settle()
	assert.Empty(t, w.slot)
	w.admit()
	w.settle()
	assert.Empty(t, w.slot, "nobody waits for it any more")
	assert.Nil(t, w.dv)
	assert.Equal(t, v1alpha1.PhaseQueued, w.image.Status.Phase)
	assert.Equal(t, "Deletion waits for the virtual machine that uses it: lab/web", w.image.Status.Message)

	writes := w.writes
	assert.False(t, w.reconcile())
	assert.Equal(t, writes, w.writes)
}

func TestWhatADeletionWaitsFor(t *testing.T) {
	cases := map[string]struct {
		mods []apitest.ImageMod
		want string
	}{
		"one that is known":           {[]apitest.ImageMod{referenced(1, "lab/web"), protected}, "Deletion waits for the virtual machine that uses it: lab/web"},
		"more than are named":         {[]apitest.ImageMod{referenced(3, "lab/web"), protected}, "Deletion waits for the 3 virtual machines that use it: lab/web, ..."},
		"nobody is named":             {[]apitest.ImageMod{referenced(3), protected}, "Deletion waits for the 3 virtual machines that use it"},
		"nobody, but for a stranger":  {[]apitest.ImageMod{foreignFinalizer}, ""},
		"it was held, and is no more": {[]apitest.ImageMod{foreignFinalizer, message("Deletion waits for x")}, "Deletion waits for finalizers of others: example.com/backup"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			image := apitest.Image("a", append(c.mods, going, apitest.Entered())...)
			assert.Equal(t, c.want, plan.Next(plan.Snapshot{Image: image}, plan.Settings{}, epoch).Report.Deletion)
		})
	}
}
