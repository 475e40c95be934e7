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
			ours: []arm.Run{ran(arm.DiskSync, 15*time.Second, nil)}, floor: []arm.Run{ran(arm.Floor, 10*time.Second, nil)},
			want: []Verdict{Reached, Shown, Reached, Reached, Reached, Reached, Reached},
		},
		"the median of the rounds counts, each round by itself": {
			ours:  []arm.Run{ran(arm.DiskSync, 30*time.Second, nil), ran(arm.DiskSync, 14*time.Second, nil), ran(arm.DiskSync, 20*time.Second, nil)},
			floor: []arm.Run{ran(arm.Floor, 20*time.Second, nil), ran(arm.Floor, 10*time.Second, nil), ran(arm.Floor, 10*time.Second, nil)},
			want:  []Verdict{Reached, Shown, Reached, Reached, Reached, Reached, Reached},
		},
		"too slow": {
			ours: []arm.Run{ran(arm.DiskSync, 16*time.Second, nil)}, floor: []arm.Run{ran(arm.Floor, 10*time.Second, nil)},
			want: []Verdict{Missed, Shown, Reached, Reached, Reached, Reached, Reached},
		},
		"too many requests": {
			ours:  []arm.Run{ran(arm.DiskSync, time.Second, func(r *arm.Run) { r.Count = audit.Count{Writes: 701, Events: 301, Reads: 1} })},
			floor: []arm.Run{ran(arm.Floor, time.Second, nil)},
			want:  []Verdict{Reached, Shown, Reached, Reached, Missed, Missed, Missed},
		},
		"fast, but beyond the limit": {
			ours:  []arm.Run{ran(arm.DiskSync, time.Second, func(r *arm.Run) { r.Void = []string{"5 at once"} })},
			floor: []arm.Run{ran(arm.Floor, time.Second, nil)},
			want:  []Verdict{Void, Shown, Void, Void, Void, Void, Void},
		},
		"a floor that cheats is no floor": {
			ours:  []arm.Run{ran(arm.DiskSync, time.Second, nil)},
			floor: []arm.Run{ran(arm.Floor, time.Second, func(r *arm.Run) { r.Void = []string{"5 at once"} })},
			want:  []Verdict{Void, Shown, Void, Void, Void, Void, Void},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []Verdict
			for _, f := range (comparison{testRow, c.ours, c.floor}).images() {
				got = append(got, f.Verdict)
			}
			assert.Equal(t, c.want, got)
		})
	}
}

func TestMemoryIsJudgedWithManyImagesOnly(t *testing.T) {
	verdicts := func(images int, heap float64) (all []Verdict) {
		a := Aftermath{
			Load: arm.Load{Images: images}, Restart: arm.Fresh{Memory: arm.Memory{HeapInuse: heap, RSS: 1}},
			Informers: arm.Fresh{Memory: arm.Memory{HeapInuse: 1, RSS: 1}},
		}
		for _, f := range settledFigures(a) {
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
	assert.Equal(t, []string{"short", "long", "thousand", "many", "vm", "claims", "workspace"}, names(choose(Rows(10, 10, 10), nil, false)))
	assert.Equal(t, []string{"short", "long"}, names(choose(Rows(10, 10, 10), nil, true)))
	assert.Equal(t, []string{"many"}, names(choose(Rows(10, 10, 10), []string{"many"}, false)))
}

func TestMedian(t *testing.T) {
	assert.Zero(t, median(nil))
	assert.InDelta(t, 2, median([]float64{3, 1, 2}), 0)
	assert.InDelta(t, 2.5, median([]float64{4, 1, 2, 3}), 0)
}

func TestLoadsOfMachines(t *testing.T) {
	loads := func(vms int) (all []string) {
		for _, row := range choose(Rows(1, vms, 1), []string{"vm", "claims"}, false) {
			all = append(all, row.Load.String())
		}
		return all
	}
	assert.Equal(t, []string{"(1000 VMs, 20 images)", "(500 VMs, 1 images)"}, loads(1000), "the issue's")
	assert.Equal(t, []string{"(40 VMs, 2 images)", "(20 VMs, 1 images)"}, loads(40))
	assert.Equal(t, []string{"(2 VMs, 2 images)", "(1 VMs, 1 images)"}, loads(1))
}

func TestSettledAfterTheLastRowOfEachOperator(t *testing.T) {
	after := func(names ...string) (all []string) {
		rows := choose(Rows(10, 10, 10), names, false)
		for i, row := range rows {
			if settles(rows, i) {
				all = append(all, row.Name)
			}
		}
		return all
	}
	assert.Equal(t, []string{"many", "vm", "workspace"}, after())
	assert.Equal(t, []string{"vm"}, after("vm", "claims"))
	assert.Equal(t, []string{"long"}, after("short", "long", "claims"))
	assert.Empty(t, after("claims"))
}

func TestVerdictsOnWorkspaces(t *testing.T) {
	row := Row{Name: "workspace", Ratio: 1.5, Load: arm.Load{Workspaces: 10}}
	ran := func(name arm.Name, wall time.Duration, pace *trace.Pace) arm.Run {
		return arm.Run{Arm: name, Load: row.Load, Wall: wall, Workspaces: &trace.Workspaces{Pace: pace}, Rise: &arm.Rise{News: 130}}
	}
	for name, c := range map[string]struct {
		ours, floor, kubectl, helm time.Duration
		pace                       trace.Pace
		want                       []Verdict // time, kubectl, Helm, reads, pace
	}{
		"all is well":            {15 * time.Second, 10 * time.Second, 16 * time.Second, 17 * time.Second, trace.Pace{Between: 20}, []Verdict{Reached, Reached, Reached, Reached, Reached}},
		"slower than the floor":  {16 * time.Second, 10 * time.Second, 17 * time.Second, 17 * time.Second, trace.Pace{}, []Verdict{Missed, Reached, Reached, Reached, Reached}},
		"slower than kubectl":    {15 * time.Second, 10 * time.Second, 15 * time.Second, 17 * time.Second, trace.Pace{}, []Verdict{Reached, Missed, Reached, Reached, Reached}},
		"slower than Helm":       {15 * time.Second, 10 * time.Second, 16 * time.Second, 14 * time.Second, trace.Pace{}, []Verdict{Reached, Reached, Missed, Reached, Reached}},
		"it tells too much":      {15 * time.Second, 10 * time.Second, 16 * time.Second, 17 * time.Second, trace.Pace{Hasty: 1}, []Verdict{Reached, Reached, Reached, Reached, Missed}},
		"its pace is not known ": {15 * time.Second, 10 * time.Second, 16 * time.Second, 17 * time.Second, trace.Pace{Unknown: 1}, []Verdict{Reached, Reached, Reached, Reached, Missed}},
	} {
		t.Run(name, func(t *testing.T) {
			all := (comparison{row, []arm.Run{ran(arm.Workspace, c.ours, &c.pace)}, []arm.Run{ran(arm.Floor, c.floor, nil)}}).workspaces(
				[]arm.Run{ran(arm.Kubectl, c.kubectl, nil)}, []arm.Run{ran(arm.Helm, c.helm, nil)})
			var judged []Verdict
			for _, f := range all {
				if f.Verdict != Shown {
					judged = append(judged, f.Verdict)
				}
			}
			assert.Equal(t, c.want, judged)
		})
	}
}

func TestVerdictsOnMachines(t *testing.T) {
	row := Row{Name: "claims", Load: arm.Load{VMs: 500, Images: 1, Delete: true}}
	run := func(name arm.Name, claims, released int) arm.Run {
		return arm.Run{
			Arm: name, Load: row.Load, Wall: time.Second, ImageWrites: claims, Count: audit.Count{Writes: 3500, Reads: 1},
			Release: &arm.Release{ImageWrites: released},
		}
	}
	floor := arm.Run{Arm: arm.Floor, Load: row.Load, Wall: time.Second}
	verdicts := func(row Row, ours, floor arm.Run) (got []Verdict) {
		for _, f := range (comparison{row, []arm.Run{ours}, []arm.Run{floor}}).machines() {
			got = append(got, f.Verdict)
		}
		return got
	}
	// time, CPU, writes, events, reads, writes of the image; deleted: writes of the image, time, writes, reads
	assert.Equal(t, []Verdict{Shown, Shown, Reached, Reached, Missed, Reached, Reached, Shown, Shown, Shown}, verdicts(row, run(arm.VM, 25, 25), floor))
	assert.Equal(t, []Verdict{Shown, Shown, Reached, Reached, Missed, Missed, Missed, Shown, Shown, Shown}, verdicts(row, run(arm.VM, 26, 26), floor))
	floor.Void = []string{"1 disks were made before their image counted so many machines"}
	assert.Equal(t, []Verdict{Shown, Shown, Void, Void, Void, Void, Void, Shown, Shown, Shown}, verdicts(row, run(arm.VM, 1, 1), floor))
	few := row
	few.Load.VMs = 20
	assert.Equal(t, Shown, verdicts(few, run(arm.VM, 2, 2), floor)[5], "too few to be judged")
}
