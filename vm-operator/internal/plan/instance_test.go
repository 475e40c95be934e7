package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An instance goes only when it has never run, and stands in the way of the spec.
func TestOutdatedInstance(t *testing.T) {
	asks := func(w *world) { w.asksForRestart(); w.passes(time.Hour) }
	for name, c := range map[string]struct {
		phase   string
		mod     func(*world)
		removes bool
	}{
		"not seen by KubeVirt":      {"", asks, true},
		"without a pod":             {"Pending", asks, true},
		"without a node":            {"Scheduling", asks, true},
		"on a node":                 {"Scheduled", asks, false},
		"it runs":                   {"Running", asks, false},
		"its node is lost":          {"Unknown", asks, false},
		"it has ended":              {"Failed", asks, false},
		"nobody asks":               {"Scheduling", func(w *world) { w.unschedulable(); w.passes(time.Hour) }, false},
		"it has just begun":         {"Scheduling", func(w *world) { w.asksForRestart(); w.passes(59 * time.Second) }, false},
		"it is younger than that":   {"Scheduling", func(w *world) { asks(w); w.instance.SetCreationTimestamp(metav1.NewTime(w.now.Add(-2 * time.Minute))) }, false},
		"it is being deleted":       {"Scheduling", func(w *world) { asks(w); w.instance.SetDeletionTimestamp(&metav1.Time{Time: w.now}) }, false},
		"it is another machine's":   {"Scheduling", func(w *world) { asks(w); w.instance.SetOwnerReferences(nil) }, false},
		"the machine is not ours":   {"Scheduling", func(w *world) { asks(w); w.machine.SetOwnerReferences(nil) }, false},
		"nobody would make another": {"Scheduling", func(w *world) { asks(w); w.runStrategy(v1alpha1.RunManual)() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := inPhase(t, c.phase)
			c.mod(w)
			d := plan.Next(w.snapshot(), settings, w.now)
			assert.Equal(t, c.removes, slices.Contains(d.Actions, plan.DeleteInstance))
			if c.removes {
				assert.True(t, d.Doubtful, "asked of the API server itself first")
			}
		})
	}
}
