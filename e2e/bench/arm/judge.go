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
	Arm    Name          `json:"arm"`
	Load   Load          `json:"load"`
	Wall   time.Duration `json:"wallNs"`
	Create time.Duration `json:"createNs"`
	Count  audit.Count   `json:"count"`
	// ImageWrites are those of the Writes that change images.
	ImageWrites int            `json:"imageWrites"`
	Trace       trace.Findings `json:"trace"`
	// Machines is what the history says of VirtualMachines, where those were asked for.
	Machines *trace.Machines `json:"machines,omitempty"`
	// Workspaces is what it says of the children of workspaces, where those were asked for.
	Workspaces *trace.Workspaces `json:"workspaces,omitempty"`
	// Rise is how their members become ready.
	Rise *Rise `json:"rise,omitempty"`
	// Release is the deletion of all of them, by the operator and where it was asked for.
	Release *Release `json:"release,omitempty"`
	// CPU by process.
	CPU map[string]time.Duration `json:"cpuNs"`
	// Void says why the run does not count, if it does not.
	Void []string `json:"void,omitempty"`
	// Calls that cost the API server most.
	Calls []audit.Latency `json:"calls,omitempty"`
}

// PerUnit divides by the number of images, VirtualMachines or Workspaces.
func (r Run) PerUnit(total float64) float64 { return total / float64(r.Load.Units()) }

// MsPerUnit is the wall time for one in milliseconds.
func (r Run) MsPerUnit() float64 { return r.PerUnit(r.Wall.Seconds() * 1000) }

// CPUPerUnit of all processes together, in milliseconds.
func (r Run) CPUPerUnit() float64 {
	var all time.Duration
	for _, used := range r.CPU {
		all += used
	}
	return r.PerUnit(all.Seconds() * 1000)
}

const (
	drainTimeout = 2 * time.Minute
	topCalls     = 25
)

// Measure drives the load and judges it by the audit log and the history in etcd.
func (l *Lab) Measure(ctx context.Context, prefix string) (Run, error) {
	run := Run{Arm: l.Name, Load: l.Load}
	d, err := l.Drive(ctx, prefix, l.Load.Units())
	if err != nil {
		return run, err
	}
	// Slots are given up and events sent after the last object is done: they belong to the load, too.
	if err := l.Quiet(ctx, 2*time.Second, drainTimeout); err != nil {
		return run, err
	}
	run.Wall, run.Create, run.CPU = d.Wall(), d.Created, d.CPU
	entries, err := audit.Read(l.cluster.AuditLog)
	if err != nil {
		return run, err
	}
	run.Count = l.since(d.Began).Count(entries)
	run.ImageWrites = l.since(d.Began).Of("vmdiskimages").Count(entries).Writes
	run.Calls = audit.Latencies(entries, d.Began, d.Ended)
	run.Calls = run.Calls[:min(len(run.Calls), topCalls)]
	events, err := l.history(ctx, d.base)
	if err != nil {
		return run, err
	}
	l.task.judge(l, &run, events)
	if l.Load.Workspaces > 0 {
		if run.Wall, err = l.making(entries, d); err != nil {
			return run, err
		}
	}
	if l.Name == Workspace {
		return run, l.rise(ctx, &run, prefix, d)
	}
	if l.Load.Delete && l.Name != Floor {
		run.Release, err = l.release(ctx, prefix)
	}
	return run, err
}

// history reads from etcd what has happened since a revision.
func (l *Lab) history(ctx context.Context, base string) ([]history.Event, error) {
	after, err := strconv.ParseInt(base, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read the resourceVersion: %w", err)
	}
	recorder, err := history.Start(ctx, history.Options{
		Endpoint: l.cluster.EtcdURL, Scheme: harness.NewScheme(), After: after,
		Ignore: l.task.ignored(),
	})
	if err != nil {
		return nil, err
	}
	if _, err := recorder.Sync(ctx); err != nil {
		return nil, err
	}
	events := recorder.All()
	return events, recorder.Stop()
}

// Highest and Inversions are those of the i-th level, see trace.Levels.
func (r Run) Highest(i int) int { return r.Trace.Levels[trace.Levels()[i]].Highest }

// Inversions of the i-th level.
func (r Run) Inversions(i int) int { return r.Trace.Levels[trace.Levels()[i]].Inversions }
