package plan_test

import (
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

func ttl(d time.Duration) apitest.ImageMod {
	return apitest.Spec(func(s *v1alpha1.VMDiskImageSpec) { s.UnusedTTL = &metav1.Duration{Duration: d} })
}

func lastUsed(at time.Time, count int32) apitest.ImageMod {
	return apitest.Status(func(st *v1alpha1.VMDiskImageStatus) {
		st.References = &v1alpha1.References{Count: count, LastReferencedAt: &metav1.Time{Time: at}}
	})
}

func dryRun(i *v1alpha1.VMDiskImage) {
	metav1.SetMetaDataAnnotation(&i.ObjectMeta, v1alpha1.AnnotationDryRun, "true")
}

func owners(controller bool) apitest.ImageMod {
	return func(i *v1alpha1.VMDiskImage) {
		i.OwnerReferences = []metav1.OwnerReference{{APIVersion: "pelotech.ot/v1alpha1", Kind: "DataSync", Name: "lab", UID: "u", Controller: &controller}}
	}
}

// ready is the world of an image that has succeeded at its time now, in whole seconds.
func ready(t require.TestingT) *world {
	w := newWorld(func(format string, args ...any) { require.Fail(t, "the law is broken", format, args) })
	w.settle()
	for _, step := range good {
		step(w)
		w.settle()
	}
	require.Equal(t, v1alpha1.PhaseSucceeded, w.image.Status.Phase)
	require.Nil(t, w.image.Status.ExpiresAt)
	w.lines = nil
	return w
}

func TestPrune(t *testing.T) {
	const day = 24 * time.Hour
	since := epoch // when it succeeded
	cases := map[string]struct {
		mods      []apitest.ImageMod
		policyTTL time.Duration
		dry       bool
		after     time.Duration // since it succeeded
		expires   time.Duration // since it succeeded; 0 for never
		prune     bool
		would     bool
		wake      time.Duration // from then; 0 for never
	}{
		"no rule":                              {after: 999 * day},
		"the policy's, not yet":                {policyTTL: day, expires: day, wake: day},
		"the policy's, nearly":                 {policyTTL: day, after: day - 1, expires: day, wake: 1},
		"the policy's":                         {policyTTL: day, after: day, expires: day, prune: true},
		"its own is shorter":                   {mods: []apitest.ImageMod{ttl(time.Hour)}, policyTTL: day, after: time.Hour, expires: time.Hour, prune: true},
		"its own is longer":                    {mods: []apitest.ImageMod{ttl(2 * day)}, policyTTL: day, after: day, expires: 2 * day, wake: day},
		"its own keeps it for ever":            {mods: []apitest.ImageMod{ttl(0)}, policyTTL: day, after: 999 * day},
		"its own, without the policy's":        {mods: []apitest.ImageMod{ttl(day)}, after: day, expires: day, prune: true},
		"parts of a second are rounded up":     {mods: []apitest.ImageMod{ttl(1500 * time.Millisecond)}, after: 1900 * time.Millisecond, expires: 2 * time.Second, wake: 100 * time.Millisecond},
		"it is used":                           {mods: []apitest.ImageMod{lastUsed(since, 1)}, policyTTL: day, after: 999 * day},
		"it was used":                          {mods: []apitest.ImageMod{lastUsed(since.Add(day), 0)}, policyTTL: day, after: day, expires: 2 * day, wake: day},
		"it was used, long ago":                {mods: []apitest.ImageMod{lastUsed(since.Add(day), 0)}, policyTTL: day, after: 2 * day, expires: 2 * day, prune: true},
		"it was used before it was ready":      {mods: []apitest.ImageMod{lastUsed(since.Add(-day), 0)}, policyTTL: day, after: day, expires: day, prune: true},
		"its controller would make it again":   {mods: []apitest.ImageMod{owners(true)}, policyTTL: day, after: 999 * day},
		"an owner that is no controller":       {mods: []apitest.ImageMod{owners(false)}, policyTTL: day, after: day, expires: day, prune: true},
		"a dry run":                            {mods: []apitest.ImageMod{dryRun}, policyTTL: day, after: day, expires: day, would: true},
		"a dry run, not yet":                   {mods: []apitest.ImageMod{dryRun}, policyTTL: day, expires: day, wake: day},
		"a dry run of all":                     {policyTTL: day, dry: true, after: day, expires: day, would: true},
		"the time has come, but it is changed": {mods: []apitest.ImageMod{apitest.SyncRequested("now")}, policyTTL: day, after: day},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := ready(t)
			w.set.Policy.UnusedImageTTL, w.set.DryRun = c.policyTTL, c.dry
			for _, m := range c.mods {
				m(w.image)
			}
			w.settle()
			now := since.Add(c.after)
			d := plan.Next(w.snapshot(), w.set, now)
			assert.Equal(t, c.prune, d.Prune, "prune")
			assert.Equal(t, c.would, d.Report.WouldPrune, "would")
			var expires, wake time.Duration
			if !d.Report.ExpiresAt.IsZero() {
				expires = d.Report.ExpiresAt.Sub(since)
			}
			if !d.WakeAt.IsZero() {
				wake = d.WakeAt.Sub(now)
			}
			assert.Equal(t, c.expires, expires, "expiresAt")
			assert.Equal(t, c.wake, wake, "wake")
		})
	}
}

func TestNothingIsPrunedWhileItIsBeingCloned(t *testing.T) {
	w := ready(t)
	w.set.Policy.UnusedImageTTL = time.Hour
	w.settle()
	for name, clone := range map[string]mod{
		"from the volume":        func(s *plan.Snapshot) { s.Clone = "lab/web" },
		"from the snapshot":      func(s *plan.Snapshot) { s.SnapshotClone = "lab/web" },
		"from a former snapshot": func(s *plan.Snapshot) { s.Others = []plan.Child{{Object: s.VolumeSnapshot, Clone: "lab/web"}} },
	} {
		t.Run(name, func(t *testing.T) {
			s := w.snapshot()
			clone(&s)
			d := plan.Next(s, w.set, epoch.Add(2*time.Hour))
			assert.False(t, d.Prune)
			assert.Equal(t, epoch.Add(time.Hour), d.Report.ExpiresAt.UTC())
		})
	}
}

func TestAnExpiryThatIsOverAlreadyIsToldFirst(t *testing.T) {
	w := ready(t)
	w.settle()
	w.set.Policy.UnusedImageTTL = time.Hour
	w.now = epoch.Add(30 * time.Hour)
	assert.False(t, plan.Next(w.snapshot(), w.set, w.now).Prune)
	assert.True(t, w.reconcile())
	assert.Equal(t, w.now, w.wakeAt, "at once")
	assert.Equal(t, epoch.Add(time.Hour), w.image.Status.ExpiresAt.UTC())
	assert.True(t, plan.Next(w.snapshot(), w.set, w.now).Prune)
}

// TestExpiryIsWrittenWithTheSuccess: it costs no write of its own, and no second look finds another time.
func TestExpiryIsWrittenWithTheSuccess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(func(format string, args ...any) { t.Fatalf(format, args...) })
		w.now = epoch.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "now")))
		w.set.Policy.UnusedImageTTL = time.Duration(rapid.Int64Range(1, int64(100*time.Hour)).Draw(t, "ttl"))
		w.settle()
		for _, step := range good[:len(good)-1] {
			step(w)
			w.settle()
		}
		w.snapshotter()
		writes := w.writes
		w.settle()
		assert.Equal(t, writes+1, w.writes)
		st := w.image.Status
		require.NotNil(t, st.ExpiresAt)
		wait := st.ExpiresAt.Sub(st.CompletedAt.Time)
		assert.GreaterOrEqual(t, wait, w.set.Policy.UnusedImageTTL)
		assert.Less(t, wait, w.set.Policy.UnusedImageTTL+time.Second)
		assert.Zero(t, st.ExpiresAt.Nanosecond())
		assert.Equal(t, st.ExpiresAt.UTC(), w.wakeAt.UTC())

		w.now = st.ExpiresAt.Add(-1)
		assert.False(t, plan.Next(w.snapshot(), w.set, w.now).Prune, "never earlier than status says")
		assert.True(t, plan.Next(w.snapshot(), w.set, st.ExpiresAt.Time).Prune)
		assert.False(t, w.reconcile(), "settled")
	})
}

func TestExpiryFollowsTheReferences(t *testing.T) {
	w := ready(t)
	w.set.Policy.UnusedImageTTL = time.Hour
	w.settle()
	require.Equal(t, epoch.Add(time.Hour), w.image.Status.ExpiresAt.UTC())
	lastUsed(epoch.Add(time.Minute), 1)(w.image)
	w.settle()
	assert.Nil(t, w.image.Status.ExpiresAt, "it is used")
	assert.Zero(t, w.wakeAt)
	lastUsed(epoch.Add(2*time.Minute), 0)(w.image)
	w.settle()
	assert.Equal(t, epoch.Add(2*time.Minute+time.Hour), w.image.Status.ExpiresAt.UTC())
	w.set.Policy.UnusedImageTTL = 0
	w.settle()
	assert.Nil(t, w.image.Status.ExpiresAt, "it is kept")
	w.set.Policy.UnusedImageTTL = time.Hour
	w.settle()
	require.NotNil(t, w.image.Status.ExpiresAt)
	another(w)
	w.settle()
	assert.Nil(t, w.image.Status.ExpiresAt, "it is being made anew")
}

// TestADryRunTellsOnce: what status says is what was told, and outlives the operator.
func TestADryRunTellsOnce(t *testing.T) {
	w := ready(t)
	dryRun(w.image)
	w.set.Policy.UnusedImageTTL = time.Hour
	w.settle()
	told := func() (events int) {
		for range 3 {
			before := w.image.Status
			w.reconcile()
			event, is := status.EventOf(&before, &w.image.Status)
			if is {
				assert.Equal(t, "WouldPrune", event.Reason)
				events++
			}
		}
		return events
	}
	assert.Zero(t, told())
	w.now = epoch.Add(2 * time.Hour)
	assert.Equal(t, 1, told())
	assert.Equal(t, "The snapshot is ready to be cloned, and nothing uses it: without the dry run it would have been pruned at 2026-01-02T04:00:00Z", w.image.Status.Message)
	assert.Zero(t, told())

	lastUsed(w.now, 1)(w.image)
	assert.Zero(t, told())
	assert.Equal(t, "The snapshot is ready to be cloned", w.image.Status.Message)
	lastUsed(w.now, 0)(w.image)
	w.now = w.now.Add(time.Hour)
	assert.Equal(t, 1, told(), "it is another time")
	w.image.Annotations = nil
	assert.True(t, plan.Next(w.snapshot(), w.set, w.now).Prune)
}
