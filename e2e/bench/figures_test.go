package bench

import (
	"testing"
	"time"

	"github.com/pelotech/open-terrain/e2e/bench/arm"
	"github.com/pelotech/open-terrain/e2e/bench/audit"
	"github.com/pelotech/open-terrain/e2e/bench/trace"
	"github.com/stretchr/testify/assert"
)

var testRow = Row{Name: "test", Ratio: 1.5, Load: arm.Load{Images: 100, Slots: 4}}

func ran(name arm.Name, wall time.Duration, change func(*arm.Run)) arm.Run {
	run := arm.Run{Arm: name, Load: testRow.Load, Wall: wall, Count: audit.Count{Writes: 500}, CPU: map[string]time.Duration{}}
	run.Trace = trace.Findings{Levels: map[trace.Level]trace.Finding{trace.Syncing: {Images: 100, Highest: 4}}}
	if change != nil {
		change(&run)
	}
	return run
}

func TestVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		ours, floor []arm.Run
		want        []Verdict // time, CPU, at once, inversions, writes, events, reads
	}{
		"all is well": {
			ours: []arm.Run{ran(arm.Ours, 15*time.Second, nil)}, floor: []arm.Run{ran(arm.Floor, 10*time.Second, nil)},
			want: []Verdict{Reached, Shown, Reached, Reached, Reached, Reached, Reached},
		},
		"the median of the rounds counts, each round by itself": {
			ours:  []arm.Run{ran(arm.Ours, 30*time.Second, nil), ran(arm.Ours, 14*time.Second, nil), ran(arm.Ours, 20*time.Second, nil)},
			floor: []arm.Run{ran(arm.Floor, 20*time.Second, nil), ran(arm.Floor, 10*time.Second, nil), ran(arm.Floor, 10*time.Second, nil)},
			want:  []Verdict{Reached, Shown, Reached, Reached, Reached, Reached, Reached},
		},
		"too slow": {
			ours: []arm.Run{ran(arm.Ours, 16*time.Second, nil)}, floor: []arm.Run{ran(arm.Floor, 10*time.Second, nil)},
			want: []Verdict{Missed, Shown, Reached, Reached, Reached, Reached, Reached},
		},
		"too many requests": {
			ours:  []arm.Run{ran(arm.Ours, time.Second, func(r *arm.Run) { r.Count = audit.Count{Writes: 701, Events: 301, Reads: 1} })},
			floor: []arm.Run{ran(arm.Floor, time.Second, nil)},
			want:  []Verdict{Reached, Shown, Reached, Reached, Missed, Missed, Missed},
		},
		"fast, but beyond the limit": {
			ours:  []arm.Run{ran(arm.Ours, time.Second, func(r *arm.Run) { r.Void = []string{"5 at once"} })},
			floor: []arm.Run{ran(arm.Floor, time.Second, nil)},
			want:  []Verdict{Void, Shown, Void, Void, Void, Void, Void},
		},
		"a floor that cheats is no floor": {
			ours:  []arm.Run{ran(arm.Ours, time.Second, nil)},
			floor: []arm.Run{ran(arm.Floor, time.Second, func(r *arm.Run) { r.Void = []string{"5 at once"} })},
			want:  []Verdict{Void, Shown, Void, Void, Void, Void, Void},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []Verdict
			for _, f := range rowFigures(testRow, c.ours, c.floor) {
				got = append(got, f.Verdict)
			}
			assert.Equal(t, c.want, got)
		})
	}
}

func TestMemoryIsJudgedWithManyImagesOnly(t *testing.T) {
	verdicts := func(images int, heap float64) (all []Verdict) {
		r := &Result{Settled: &arm.Rest{}, Restart: &arm.Fresh{Memory: arm.Memory{HeapInuse: heap, RSS: 1}}, Informers: &arm.Fresh{Memory: arm.Memory{HeapInuse: 1, RSS: 1}}}
		r.settledAt.Images = images
		for _, f := range settledFigures(r) {
			all = append(all, f.Verdict)
		}
		return all
	}
	assert.Equal(t, []Verdict{Reached, Reached, Shown, Reached, Reached}, verdicts(manyImages, 1.4))
	assert.Equal(t, []Verdict{Reached, Reached, Shown, Missed, Reached}, verdicts(manyImages, 1.6))
	assert.Equal(t, []Verdict{Reached, Reached, Shown, Shown, Shown}, verdicts(100, 1.6))
}

func TestChoose(t *testing.T) {
	names := func(rows []Row) (all []string) {
		for _, row := range rows {
			all = append(all, row.Name)
		}
		return all
	}
	assert.Equal(t, []string{"short", "long", "thousand", "many"}, names(choose(Rows(10), nil, false)))
	assert.Equal(t, []string{"short", "long"}, names(choose(Rows(10), nil, true)))
	assert.Equal(t, []string{"many"}, names(choose(Rows(10), []string{"many"}, false)))
}

func TestMedian(t *testing.T) {
	assert.Zero(t, median(nil))
	assert.InDelta(t, 2, median([]float64{3, 1, 2}), 0)
	assert.InDelta(t, 2.5, median([]float64{4, 1, 2, 3}), 0)
}
