package plan_test

import (
	"testing"

	"github.com/pelotech/open-terrain/workspace-operator/internal/desired"
	"github.com/pelotech/open-terrain/workspace-operator/internal/plan"
)

// A look at a workspace that is settled: what every event of every child costs.
func BenchmarkSettled(b *testing.B) {
	w := newWorld(b.Fatalf)
	for _, step := range up {
		step(w)
		w.breathes()
	}
	s := w.snapshot()
	s.Shall = desired.Children(s.Workspace, nil, settings.Desired) // as the controller remembers it
	b.ReportAllocs()
	for b.Loop() {
		if d := plan.Next(s, settings, w.now); len(d.Actions) > 0 || !d.Report.Ready {
			b.Fatal("it is not settled")
		}
	}
}
