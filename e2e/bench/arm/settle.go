package arm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pelotech/open-terrain/e2e/bench/audit"
	"github.com/pelotech/open-terrain/e2e/bench/procs"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Quiet returns when the arm has asked nothing of the API server, but for the leader's Lease, for a while.
func (l *Lab) Quiet(ctx context.Context, while, timeout time.Duration) error {
	err := wait.PollUntilContextTimeout(ctx, while/2, timeout, true, func(context.Context) (bool, error) {
		entries, err := audit.Read(l.cluster.AuditLog)
		if err != nil {
			return false, err
		}
		c := l.since(time.Now().Add(-while)).Count(entries)
		return c.Writes+c.Events+c.Reads == 0 && time.Since(l.subject.began) > while, l.subject.alive()
	})
	if err != nil {
		return fmt.Errorf("%s does not come to rest: %w", l.Name, err)
	}
	return nil
}

// Rest is what a settled arm does.
type Rest struct {
	Lasted time.Duration `json:"lastedNs"`
	Count  audit.Count   `json:"count"`
	CPU    time.Duration `json:"cpuNs"`
}

// Settled watches a settled arm for a while.
func (l *Lab) Settled(ctx context.Context, while time.Duration) (Rest, error) {
	from, used := time.Now(), l.subject.cpu()
	select {
	case <-time.After(while):
	case <-ctx.Done():
		return Rest{}, ctx.Err()
	}
	r := Rest{Lasted: while, CPU: l.subject.cpu() - used}
	entries, err := audit.Read(l.cluster.AuditLog)
	r.Count = l.since(from).Count(entries)
	return r, errors.Join(err, l.subject.alive())
}

// Memory in bytes, after garbage collections.
type Memory struct {
	HeapInuse float64 `json:"heapInuse"`
	RSS       float64 `json:"rss"`
}

// Fresh is what a new process does over a settled state.
type Fresh struct {
	// Ready is the time from the start of the process to rest (the operator), or to synced caches (the informers).
	Ready  time.Duration `json:"readyNs"`
	CPU    time.Duration `json:"cpuNs"`
	Count  audit.Count   `json:"count"`
	Memory Memory        `json:"memory"`
}

const (
	// calm is how long nothing may happen in the operator for it to have come to rest.
	calm = 2 * time.Second
)

// Restart ends the operator and starts it anew over what there is.
func (l *Lab) Restart(ctx context.Context) (Fresh, error) {
	if err := l.StopSubject(); err != nil {
		return Fresh{}, err
	}
	from := time.Now()
	if err := l.StartSubject(ctx); err != nil {
		return Fresh{}, err
	}
	f := Fresh{}
	var err error
	if f.Ready, err = l.subject.rest(ctx); err != nil {
		return f, err
	}
	f.CPU = l.subject.cpu()
	if f.Memory, err = l.subject.memory(ctx, l.scavenge()); err != nil {
		return f, err
	}
	entries, err := audit.Read(l.cluster.AuditLog)
	f.Count = l.since(from).Count(entries)
	return f, err
}

// Informers does the same with the program that holds the informers only.
func (l *Lab) Informers(ctx context.Context) (Fresh, error) {
	s, err := l.startInformers(ctx)
	if err != nil {
		return Fresh{}, err
	}
	defer s.process.Kill()
	f := Fresh{Ready: time.Since(s.began), CPU: s.cpu()}
	f.Memory, err = s.memory(ctx, l.scavenge())
	return f, err
}

// rest returns how long after its start the process did its last reconcile, once it has done none for a while and its
// queues are empty.
func (s *subject) rest(ctx context.Context) (time.Duration, error) {
	var last float64
	var since time.Time
	err := wait.PollUntilContextTimeout(ctx, poll, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		m, err := procs.Metrics(ctx, s.metrics)
		if err != nil {
			return false, s.alive() // not serving yet
		}
		done := m["controller_runtime_reconcile_total"]
		if done == 0 || done != last || m["workqueue_depth"] > 0 || m["controller_runtime_active_workers"] > 0 {
			last, since = done, time.Now()
			return false, nil
		}
		return time.Since(since) >= calm, nil
	})
	if err != nil {
		return 0, fmt.Errorf("wait for the new process to come to rest: %w", err)
	}
	return since.Sub(s.began), nil
}

// scavenge is how long Go may take to give memory back to the system.
func (l *Lab) scavenge() time.Duration {
	return min(20*time.Second, time.Second+time.Duration(l.Load.Units())*2*time.Millisecond)
}

// memory collects the garbage twice (what has a finalizer goes the second time) and waits for what goes back to the system.
func (s *subject) memory(ctx context.Context, scavenge time.Duration) (Memory, error) {
	for range 2 {
		if _, err := procs.Get(ctx, s.profiles+"/debug/pprof/heap?gc=1"); err != nil {
			return Memory{}, err
		}
	}
	select {
	case <-time.After(scavenge):
	case <-ctx.Done():
		return Memory{}, ctx.Err()
	}
	if _, err := procs.Get(ctx, s.profiles+"/debug/pprof/heap?gc=1"); err != nil {
		return Memory{}, err
	}
	m, err := procs.Metrics(ctx, s.metrics)
	return Memory{HeapInuse: m["go_memstats_heap_inuse_bytes"], RSS: procs.RSS(s.process.Pid())}, err
}
