package bench

import (
	"fmt"

	"github.com/pelotech/open-terrain/e2e/bench/arm"
	"github.com/pelotech/open-terrain/e2e/bench/trace"
)

// workspaces are the figures of a row of Workspaces: beside the floor, and beside what people would use instead.
func (c comparison) workspaces(kubectl, helm []arm.Run) []Figure {
	all := append(c.cost(), c.beside("kubectl apply", kubectl), c.beside("helm install", helm))
	shown := func(what string, of func(arm.Run) float64) Figure {
		per := func(runs []arm.Run) string {
			return fmt.Sprintf("%.2f", median(values(runs, func(run arm.Run) float64 { return run.PerUnit(of(run)) })))
		}
		return Figure{What: what + " per workspace", Target: "-", Measured: per(c.ours), Floor: per(c.floor), Verdict: Shown}
	}
	all = append(all,
		shown("object writes", func(run arm.Run) float64 { return float64(run.Count.Writes) }),
		shown("event calls", func(run arm.Run) float64 { return float64(run.Count.Events) }),
		c.requests("reads from the API server", 0, "%.3f", reads),
	)
	return append(all, c.rise()...)
}

// beside another way to make the same objects: ours is to be faster.
func (c comparison) beside(what string, other []arm.Run) Figure {
	ratio := median(ratios(c.ours, other, func(run arm.Run) float64 { return run.Wall.Seconds() }))
	return Figure{
		What: fmt.Sprintf("time beside %s (in the column of the floor)", what), Target: "< 1.00x", Measured: times(c.ours), Floor: times(other),
		Ratio: ratio, Verdict: judge(ratio < 1, append(append([]arm.Run{}, c.ours...), other...)),
	}
}

// rise is how the operator tells of members that become ready.
func (c comparison) rise() []Figure {
	var paces []trace.Pace
	for _, run := range c.ours {
		if run.Rise != nil && run.Workspaces.Pace != nil {
			paces = append(paces, *run.Workspaces.Pace)
		}
	}
	if len(paces) == 0 {
		return nil
	}
	var hasty, unknown, most int
	for _, p := range paces {
		hasty, unknown, most = hasty+p.Hasty, unknown+p.Unknown, max(most, p.Most)
	}
	last := c.ours[len(c.ours)-1]
	return []Figure{
		{
			What: "status writes in between that came within a second of the one before", Target: "0", Floor: "-",
			Measured: fmt.Sprintf("%d of %d (unknown: %d workspaces)", hasty, paces[0].Between*len(paces), unknown), Verdict: c.verdict(hasty+unknown == 0),
		},
		{
			What: "status writes of a workspace from its creation to Ready", Target: "-", Floor: "-", Verdict: Shown,
			Measured: fmt.Sprintf("%.2f, at most %d, for %.0f pieces of news", last.PerUnit(float64(last.Workspaces.Pace.Writes)), most, last.PerUnit(float64(last.Rise.News))),
		},
		{
			What: "all members become ready: time until all workspaces are", Target: "-", Floor: "-", Verdict: Shown,
			Measured: fmt.Sprintf("%.2f s, %d reads", last.Rise.Wall.Seconds(), last.Rise.Count.Reads),
		},
	}
}
