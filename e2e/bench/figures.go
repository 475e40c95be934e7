package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelotech/open-terrain/e2e/bench/arm"
	"github.com/pelotech/open-terrain/e2e/bench/trace"
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
		all = append(all, rowFigures(row, r.of(arm.Ours, row.Load), r.of(arm.Floor, row.Load))...)
	}
	all = append(all, growthFigures(r)...)
	return append(all, settledFigures(r)...)
}

// of are the runs of an arm under a load, in the order of the rounds.
func (r *Result) of(name arm.Name, load arm.Load) []arm.Run {
	return slices.DeleteFunc(slices.Clone(r.Runs), func(run arm.Run) bool { return run.Arm != name || run.Load != load })
}

func rowFigures(row Row, ours, floor []arm.Run) []Figure {
	verdict := func(good bool) Verdict { return judge(good, append(slices.Clone(ours), floor...)) }
	wall := func(run arm.Run) float64 { return run.Wall.Seconds() }
	ratio := median(ratios(ours, floor, wall))
	per := func(runs []arm.Run, of func(arm.Run) int) float64 {
		return median(values(runs, func(run arm.Run) float64 { return run.PerImage(float64(of(run))) }))
	}
	writes := func(run arm.Run) int { return run.Count.Writes }
	events := func(run arm.Run) int { return run.Count.Events }
	reads := func(run arm.Run) int { return run.Count.Reads }
	name := fmt.Sprintf("%s %s", row.Name, row.Load)
	return []Figure{
		{
			Row: name, What: "time", Target: fmt.Sprintf("<= %.2fx", row.Ratio), Measured: times(ours), Floor: times(floor),
			Ratio: ratio, Verdict: verdict(ratio <= row.Ratio),
		},
		{
			What: "CPU time of all processes", Target: "-", Measured: cpu(ours), Floor: cpu(floor),
			Ratio: median(ratios(ours, floor, arm.Run.CPUPerImage)), Verdict: Shown,
		},
		{
			What: "at once: slots/syncing/downloads (floor: downloads)", Target: fmt.Sprintf("<= %d", row.Load.Slots),
			Measured: levels(ours, arm.Run.Highest), Floor: levels(floor, arm.Run.Highest), Verdict: verdict(true),
		},
		{
			What: "inversions: slots/syncing/downloads", Target: "0",
			Measured: levels(ours, arm.Run.Inversions), Floor: levels(floor, arm.Run.Inversions), Verdict: verdict(true),
		},
		{
			What: "object writes per image", Target: fmt.Sprintf("<= %d", maxWrites), Measured: fmt.Sprintf("%.2f", per(ours, writes)),
			Floor: fmt.Sprintf("%.2f", per(floor, writes)), Verdict: verdict(per(ours, writes) <= maxWrites),
		},
		{
			What: "event calls per image", Target: fmt.Sprintf("<= %d", maxEvents), Measured: fmt.Sprintf("%.2f", per(ours, events)),
			Floor: fmt.Sprintf("%.2f", per(floor, events)), Verdict: verdict(per(ours, events) <= maxEvents),
		},
		{
			What: "reads from the API server per image", Target: "0", Measured: fmt.Sprintf("%.3f", per(ours, reads)),
			Floor: fmt.Sprintf("%.3f", per(floor, reads)), Verdict: verdict(per(ours, reads) == 0),
		},
	}
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
	few := r.of(arm.Ours, growthLoad())
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
		{"wall time per image", arm.Run.MsPerImage},
		{"the program's CPU per image", func(run arm.Run) float64 {
			return run.PerImage(float64(run.CPU["subject"]) / float64(time.Millisecond))
		}},
	} {
		ours, ratio := grown(arm.Ours, f.of)
		floor, floorRatio := grown(arm.Floor, f.of)
		all = append(all, Figure{
			Row: fmt.Sprintf("growth, %d -> %d images", fewImages, many.Images), What: f.what, Target: fmt.Sprintf("<= %.2fx", maxGrowth),
			Measured: ours, Floor: fmt.Sprintf("%s, %.2fx", floor, floorRatio), Ratio: ratio,
			Verdict: judge(ratio <= maxGrowth, append(few, r.of(arm.Ours, many)...)),
		})
	}
	return all
}

func settledFigures(r *Result) []Figure {
	if r.Settled == nil || r.Restart == nil || r.Informers == nil {
		return nil
	}
	row := fmt.Sprintf("settled, %d images", r.settledAt.Images)
	verdict := func(good bool) Verdict { return judge(good, nil) }
	memory := func(what string, ours, bare float64) Figure {
		judged := verdict(ours/bare <= maxMemory)
		if r.settledAt.Images < manyImages { // the programs themselves would be compared, not what they hold
			judged = Shown
		}
		return Figure{
			Row: row, What: what, Target: fmt.Sprintf("<= %.2fx bare informers", maxMemory), Measured: fmt.Sprintf("%.1f MiB", ours/(1<<20)),
			Floor: fmt.Sprintf("%.1f MiB", bare/(1<<20)), Ratio: ours / bare, Verdict: judged,
		}
	}
	s, f, bare := r.Settled, r.Restart, r.Informers
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

func times(runs []arm.Run) string {
	return fmt.Sprintf("%.2f s, %.1f ms/image", median(values(runs, func(run arm.Run) float64 { return run.Wall.Seconds() })), median(values(runs, arm.Run.MsPerImage)))
}

// cpu says less about waiting than the wall time does, and more than it on a machine that others use.
func cpu(runs []arm.Run) string {
	return fmt.Sprintf("%.1f ms/image", median(values(runs, arm.Run.CPUPerImage)))
}

// levels are the worst of all rounds; a level that the arm does not use is a dash.
func levels(runs []arm.Run, of func(arm.Run, int) int) string {
	texts := make([]string, len(trace.Levels()))
	for i, level := range trace.Levels() {
		worst, used := 0, false
		for _, run := range runs {
			worst, used = max(worst, of(run, i)), used || run.Trace.Levels[level].Images > 0
		}
		if texts[i] = "-"; used {
			texts[i] = strconv.Itoa(worst)
		}
	}
	return strings.Join(texts, "/")
}
