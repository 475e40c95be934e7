package arm

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/pelotech/open-terrain/e2e/bench/audit"
	"github.com/pelotech/open-terrain/e2e/bench/trace"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/pelotech/open-terrain/e2e/history"
)

// Run is what one arm did under one load.
type Run struct {
	Arm    Name           `json:"arm"`
	Load   Load           `json:"load"`
	Wall   time.Duration  `json:"wallNs"`
	Create time.Duration  `json:"createNs"`
	Count  audit.Count    `json:"count"`
	Trace  trace.Findings `json:"trace"`
	// CPU by process.
	CPU map[string]time.Duration `json:"cpuNs"`
	// Void says why the run does not count, if it does not.
	Void []string `json:"void,omitempty"`
	// Calls that cost the API server most.
	Calls []audit.Latency `json:"calls,omitempty"`
}

// PerImage divides by the number of images.
func (r Run) PerImage(total float64) float64 { return total / float64(r.Load.Images) }

// MsPerImage is the wall time per image in milliseconds.
func (r Run) MsPerImage() float64 { return r.PerImage(r.Wall.Seconds() * 1000) }

// CPUPerImage of all processes together, in milliseconds.
func (r Run) CPUPerImage() float64 {
	var all time.Duration
	for _, used := range r.CPU {
		all += used
	}
	return r.PerImage(all.Seconds() * 1000)
}

const (
	drainTimeout = 2 * time.Minute
	topCalls     = 25
)

// Measure drives the load and judges it by the audit log and the history in etcd.
func (l *Lab) Measure(ctx context.Context, prefix string) (Run, error) {
	run := Run{Arm: l.Name, Load: l.Load}
	d, err := l.Drive(ctx, prefix, l.Load.Images)
	if err != nil {
		return run, err
	}
	// Slots are given up and events sent after the last Succeeded: they belong to the load, too.
	if err := l.Quiet(ctx, 2*time.Second, drainTimeout); err != nil {
		return run, err
	}
	run.Wall, run.Create, run.CPU = d.Wall(), d.Created, d.CPU
	entries, err := audit.Read(l.cluster.AuditLog)
	if err != nil {
		return run, err
	}
	run.Count = l.since(d.Began).Count(entries)
	run.Calls = audit.Latencies(entries, d.Began, d.Ended)
	run.Calls = run.Calls[:min(len(run.Calls), topCalls)]
	if run.Trace, err = l.history(ctx, d.base); err != nil {
		return run, err
	}
	run.Void = run.Trace.Violations(l.Load.Images, l.Load.Slots, l.Name.bounded()...)
	return run, nil
}

// history reads from etcd what has happened since a revision.
func (l *Lab) history(ctx context.Context, base string) (trace.Findings, error) {
	after, err := strconv.ParseInt(base, 10, 64)
	if err != nil {
		return trace.Findings{}, fmt.Errorf("read the resourceVersion: %w", err)
	}
	recorder, err := history.Start(ctx, history.Options{
		Endpoint: l.cluster.EtcdURL, Scheme: harness.NewScheme(), After: after,
		Ignore: []string{"events", "persistentvolumeclaims", "volumesnapshots", "volumesnapshotcontents"},
	})
	if err != nil {
		return trace.Findings{}, err
	}
	if _, err := recorder.Sync(ctx); err != nil {
		return trace.Findings{}, err
	}
	found := trace.Judge(recorder.All())
	return found, recorder.Stop()
}

// Highest and Inversions are those of the i-th level, see trace.Levels.
func (r Run) Highest(i int) int { return r.Trace.Levels[trace.Levels()[i]].Highest }

// Inversions of the i-th level.
func (r Run) Inversions(i int) int { return r.Trace.Levels[trace.Levels()[i]].Inversions }

// bounded are the levels that the limit holds for. The floor has no slots, and saves the write that ends phase Syncing
// when the download is complete: only its downloads can be judged.
func (n Name) bounded() []trace.Level {
	if n == Floor {
		return []trace.Level{trace.Download}
	}
	return trace.Levels()
}
