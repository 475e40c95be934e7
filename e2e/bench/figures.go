package bench

import (
	"fmt"
	"slices"
	"time"

	"github.com/pelotech/open-terrain/e2e/bench/arm"
)

// Verdict of a figure.
type Verdict string

// The verdicts.
const (
	Reached Verdict = "reached"
	Missed  Verdict = "MISSED"
	Void    Verdict = "VOID"
	// Shown is a figure without a target under this load.
	Shown Verdict = "-"
)

// Figure is one line of the table.
type Figure struct {
	Row      string  `json:"row"`
	What     string  `json:"what"`
	Target   string  `json:"target"`
	Measured string  `json:"measured"`
	Floor    string  `json:"floor"`
	Ratio    float64 `json:"ratio,omitempty"`
	Verdict  Verdict `json:"verdict"`
}

func figures(r *Result, rows []Row) []Figure {
	var all []Figure
	for _, row := range rows {
		c := comparison{row, r.of(row.Load.Operator(), row.Load), r.of(arm.Floor, row.Load)}
		switch {
		case row.Load.Workspaces > 0:
			all = append(all, c.workspaces(r.of(arm.Kubectl, row.Load), r.of(arm.Helm, row.Load))...)
		case row.Load.VMs > 0:
			all = append(all, c.machines()...)
		default:
			all = append(all, c.images()...)
		}
	}
	all = append(all, growthFigures(r)...)
	for _, a := range r.Aftermaths {
		all = append(all, settledFigures(a)...)
	}
	return all
}

// of are the runs of an arm under a load, in the order of the rounds.
func (r *Result) of(name arm.Name, load arm.Load) []arm.Run {
	return slices.DeleteFunc(slices.Clone(r.Runs), func(run arm.Run) bool { return run.Arm != name || run.Load != load })
}

func judge(good bool, runs []arm.Run) Verdict {
	if slices.ContainsFunc(runs, func(run arm.Run) bool { return len(run.Void) > 0 }) {
		return Void
	}
	if !good {
		return Missed
	}
	return Reached
}

// growthFigures compare the largest load with a hundred images under as many slots.
func growthFigures(r *Result) []Figure {
	i := slices.IndexFunc(r.Runs, func(run arm.Run) bool { return run.Load.Slots == manySlots && run.Load != growthLoad() })
	few := r.of(arm.DiskSync, growthLoad())
	if i < 0 || len(few) == 0 {
		return nil
	}
	many := r.Runs[i].Load
	grown := func(name arm.Name, of func(arm.Run) float64) (string, float64) {
		a, b := median(values(r.of(name, growthLoad()), of)), median(values(r.of(name, many), of))
		return fmt.Sprintf("%.2f -> %.2f ms", a, b), b / a
	}
	var all []Figure
	for _, f := range []struct {
		what string
		of   func(arm.Run) float64
	}{
		{"wall time per image", arm.Run.MsPerUnit},
		{"the program's CPU per image", func(run arm.Run) float64 {
			return run.PerUnit(float64(run.CPU["subject"]) / float64(time.Millisecond))
		}},
	} {
		ours, ratio := grown(arm.DiskSync, f.of)
		floor, floorRatio := grown(arm.Floor, f.of)
		all = append(all, Figure{
			Row: fmt.Sprintf("growth, %d -> %d images", fewImages, many.Images), What: f.what, Target: fmt.Sprintf("<= %.2fx", maxGrowth),
			Measured: ours, Floor: fmt.Sprintf("%s, %.2fx", floor, floorRatio), Ratio: ratio,
			Verdict: judge(ratio <= maxGrowth, append(few, r.of(arm.DiskSync, many)...)),
		})
	}
	return all
}

func settledFigures(a Aftermath) []Figure {
	row := fmt.Sprintf("settled, %d %ss", a.Load.Units(), a.Load.Unit())
	verdict := func(good bool) Verdict { return judge(good, nil) }
	memory := func(what string, ours, bare float64) Figure {
		judged := verdict(ours/bare <= maxMemory)
		if a.Load.Units() < manyImages { // the programs themselves would be compared, not what they hold
			judged = Shown
		}
		return Figure{
			Row: row, What: what, Target: fmt.Sprintf("<= %.2fx bare informers", maxMemory), Measured: fmt.Sprintf("%.1f MiB", ours/(1<<20)),
			Floor: fmt.Sprintf("%.1f MiB", bare/(1<<20)), Ratio: ours / bare, Verdict: judged,
		}
	}
	s, f, bare := a.Settled, a.Restart, a.Informers
	return []Figure{
		{
			Row: row, What: fmt.Sprintf("writes in %s, without the leader's Lease", s.Lasted), Target: "0", Floor: "0",
			Measured: fmt.Sprintf("%d (%.2f s CPU, %d requests for the leader's Lease)", s.Count.Writes+s.Count.Events, s.CPU.Seconds(), s.Count.Leader),
			Verdict:  verdict(s.Count.Writes+s.Count.Events == 0),
		},
		{
			Row: row, What: "writes of a new process", Target: "0", Floor: "0", Measured: fmt.Sprintf("%d writes, %d events", f.Count.Writes, f.Count.Events),
			Verdict: verdict(f.Count.Writes+f.Count.Events == 0),
		},
		{
			Row: row, What: "start of a new process to rest (floor: informers synced)", Target: "-", Measured: fmt.Sprintf("%.2f s, %.2f s CPU", f.Ready.Seconds(), f.CPU.Seconds()),
			Floor: fmt.Sprintf("%.2f s, %.2f s CPU", bare.Ready.Seconds(), bare.CPU.Seconds()), Ratio: f.Ready.Seconds() / bare.Ready.Seconds(), Verdict: Shown,
		},
		memory("heap in use", f.Memory.HeapInuse, bare.Memory.HeapInuse),
		memory("resident memory", f.Memory.RSS, bare.Memory.RSS),
	}
}

func values(runs []arm.Run, of func(arm.Run) float64) []float64 {
	all := make([]float64, 0, len(runs))
	for _, run := range runs {
		all = append(all, of(run))
	}
	return all
}

// ratios within each round.
func ratios(ours, floor []arm.Run, of func(arm.Run) float64) []float64 {
	var all []float64
	for i := range min(len(ours), len(floor)) {
		all = append(all, of(ours[i])/of(floor[i]))
	}
	return all
}

func median(sorted []float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	slices.Sort(sorted)
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
