package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pelotech/open-terrain/e2e/bench/arm"
	"github.com/pelotech/open-terrain/e2e/bench/trace"
)

// comparison is a row with the runs of both arms, in the order of the rounds.
type comparison struct {
	row         Row
	ours, floor []arm.Run
}

// images are the figures of a row of images.
func (c comparison) images() []Figure {
	return append(c.cost(), []Figure{
		{
			What: "at once: slots/syncing/downloads (floor: downloads)", Target: fmt.Sprintf("<= %d", c.row.Load.Slots),
			Measured: levels(c.ours, arm.Run.Highest), Floor: levels(c.floor, arm.Run.Highest), Verdict: c.verdict(true),
		},
		{
			What: "inversions: slots/syncing/downloads", Target: "0",
			Measured: levels(c.ours, arm.Run.Inversions), Floor: levels(c.floor, arm.Run.Inversions), Verdict: c.verdict(true),
		},
		c.requests("object writes", maxWrites, "%.2f", writes),
		c.requests("event calls", maxEvents, "%.2f", eventCalls),
		c.requests("reads from the API server", 0, "%.3f", reads),
	}...)
}

// machines are the figures of a row of VirtualMachines.
func (c comparison) machines() []Figure {
	all := append(c.cost(),
		c.requests("object writes (with its share of the image's)", maxWrites, "%.2f", writes),
		c.requests("event calls", maxEvents, "%.2f", eventCalls),
		c.requests("reads from the API server", 0, "%.3f", reads),
		c.imageWrites("writes of images", c.ours, func(run arm.Run) int { return run.ImageWrites }),
	)
	if !c.row.Load.Delete {
		return all
	}
	released := slices.DeleteFunc(slices.Clone(c.ours), func(run arm.Run) bool { return run.Release == nil })
	shown := func(what, format string, of func(*arm.Release) float64) Figure {
		middle := median(values(released, func(run arm.Run) float64 { return of(run.Release) }))
		return Figure{What: what, Target: "-", Measured: fmt.Sprintf(format, middle), Floor: "-", Verdict: Shown}
	}
	perVM := func(n int) float64 { return float64(n) / float64(c.row.Load.VMs) }
	return append(all,
		c.imageWrites("all deleted: writes of images", released, func(run arm.Run) int { return run.Release.ImageWrites }),
		shown("all deleted: time until no image counts any", "%.2f s", func(r *arm.Release) float64 { return r.Wall.Seconds() }),
		shown("all deleted: object writes per VM", "%.2f", func(r *arm.Release) float64 { return perVM(r.Count.Writes) }),
		shown("all deleted: reads from the API server per VM", "%.2f", func(r *arm.Release) float64 { return perVM(r.Count.Reads) }),
	)
}

// cost is the time that a row takes, and the CPU time.
func (c comparison) cost() []Figure {
	wall := func(run arm.Run) float64 { return run.Wall.Seconds() }
	ratio, target := median(ratios(c.ours, c.floor, wall)), "-"
	verdict := Shown
	if c.row.Ratio > 0 {
		target, verdict = fmt.Sprintf("<= %.2fx", c.row.Ratio), c.verdict(ratio <= c.row.Ratio)
	}
	return []Figure{
		{
			Row: fmt.Sprintf("%s %s", c.row.Name, c.row.Load), What: "time", Target: target, Measured: times(c.ours), Floor: times(c.floor),
			Ratio: ratio, Verdict: verdict,
		},
		{
			What: "CPU time of all processes", Target: "-", Measured: cpu(c.ours), Floor: cpu(c.floor),
			Ratio: median(ratios(c.ours, c.floor, arm.Run.CPUPerUnit)), Verdict: Shown,
		},
	}
}

func writes(run arm.Run) int     { return run.Count.Writes }
func eventCalls(run arm.Run) int { return run.Count.Events }
func reads(run arm.Run) int      { return run.Count.Reads }

// requests of one kind for each object, of which there may be so many.
func (c comparison) requests(what string, most int, format string, of func(arm.Run) int) Figure {
	per := func(runs []arm.Run) float64 {
		return median(values(runs, func(run arm.Run) float64 { return run.PerUnit(float64(of(run))) }))
	}
	target := "0"
	if most > 0 {
		target = fmt.Sprintf("<= %d", most)
	}
	return Figure{
		What: fmt.Sprintf("%s per %s", what, c.row.Load.Unit()), Target: target, Measured: fmt.Sprintf(format, per(c.ours)),
		Floor: fmt.Sprintf(format, per(c.floor)), Verdict: c.verdict(per(c.ours) <= float64(most)),
	}
}

// imageWrites are judged where enough VirtualMachines use one image.
func (c comparison) imageWrites(what string, runs []arm.Run, of func(arm.Run) int) Figure {
	load := c.row.Load
	number := func(run arm.Run) float64 { return float64(of(run)) }
	most := load.VMs / vmsPerWrite
	f := Figure{
		What: what, Target: "-", Measured: fmt.Sprintf("%.0f", median(values(runs, number))),
		Floor: fmt.Sprintf("%.0f", median(values(c.floor, func(run arm.Run) float64 { return float64(run.ImageWrites) }))), Verdict: Shown,
	}
	if load.VMs/load.Images >= manyClaims {
		f.Target, f.Verdict = fmt.Sprintf("<= %d", most), c.verdict(median(values(runs, number)) <= float64(most))
	}
	return f
}

func (c comparison) verdict(good bool) Verdict {
	return judge(good, append(slices.Clone(c.ours), c.floor...))
}

func times(runs []arm.Run) string {
	return fmt.Sprintf("%.2f s, %.1f ms/%s", median(values(runs, func(run arm.Run) float64 { return run.Wall.Seconds() })), median(values(runs, arm.Run.MsPerUnit)), unit(runs))
}

// cpu says less about waiting than the wall time does, and more than it on a machine that others use.
func cpu(runs []arm.Run) string {
	return fmt.Sprintf("%.1f ms/%s", median(values(runs, arm.Run.CPUPerUnit)), unit(runs))
}

func unit(runs []arm.Run) string {
	if len(runs) == 0 {
		return "image"
	}
	return runs[0].Load.Unit()
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
