// Package arm runs one arm of the bench: a fresh control plane, the instant simulators, a program that brings images to
// Succeeded, VirtualMachines to Ready or Workspaces to all their children (the operator, or the floor), a crowd that creates them, and the measurements.
package arm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pelotech/open-terrain/e2e/bench/audit"
	"github.com/pelotech/open-terrain/e2e/harness"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Primer is the prefix of the one object that goes before a measurement.
const Primer = "primer"

// Lab is one arm with everything around it.
type Lab struct {
	Name Name
	Load Load
	// Tools has the executables.
	Tools Tools

	task    task
	cluster *harness.Cluster
	client  client.Client
	subject *subject
	dir     string
	log     *os.File
	stop    context.CancelFunc
	done    []func()
}

const (
	// namespaces that objects are spread over are bench-0 and so on.
	namespaces = 4
	// simulatorWorkers are more than the default, so that the simulators are not what is measured.
	simulatorWorkers = 16
	// maxAuditMegabytes keeps the API server from starting another file.
	maxAuditMegabytes = "100000"
	// serviceAddresses are enough for the Services of a thousand workspaces.
	serviceAddresses = "10.96.0.0/14"
)

// Start brings up a lab and sees one object through it, so that nothing is done for the first time in the measurement.
func Start(ctx context.Context, name Name, load Load, tools Tools) (*Lab, error) {
	dir, err := os.MkdirTemp(scratch(), "open-terrain-bench-")
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	l := &Lab{Name: name, Load: load, Tools: tools, task: load.task(), dir: dir, stop: stop}
	if err := l.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start the lab for %s: %w", name, err), l.Close())
	}
	return l, nil
}

func (l *Lab) start(ctx context.Context) error {
	var err error
	if l.cluster, err = harness.Start(ctx, harness.Options{
		Dir: l.dir, Audit: true, KubeVirt: l.Load.VMs > 0,
		// No garbage collector: nothing is deleted, and its watches would only blur the difference between the arms.
		Controllers: []string{},
		// The history is read when the run is over.
		APIServerArgs: map[string]string{
			"etcd-compaction-interval": "0", "audit-log-maxsize": maxAuditMegabytes, "service-cluster-ip-range": serviceAddresses,
		},
	}); err != nil {
		return err
	}
	if l.client, err = l.cluster.Client("bench"); err != nil {
		return err
	}
	if err := l.furnish(ctx); err != nil {
		return err
	}
	if err := l.task.simulate(ctx, l); err != nil {
		return err
	}
	if l.log, err = os.Create(filepath.Join(l.dir, "logs", string(l.Name)+".log")); err != nil {
		return err
	}
	if err := l.StartSubject(ctx); err != nil {
		return err
	}
	if _, err := l.Drive(ctx, Primer, 1); err != nil {
		return err
	}
	return l.Quiet(ctx, time.Second, time.Minute)
}

// furnish makes the namespaces, and what the load needs to live.
func (l *Lab) furnish(ctx context.Context) error {
	for i := range namespaces {
		if err := l.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace(i)}}); err != nil {
			return err
		}
	}
	return l.task.furnish(ctx, l)
}

// Close ends everything and removes the files.
func (l *Lab) Close() error {
	if l.subject != nil && l.subject.process != nil {
		l.subject.process.Kill()
	}
	l.stop()
	for _, wait := range l.done {
		wait()
	}
	var errs []error
	if l.log != nil {
		errs = append(errs, l.log.Close())
	}
	if l.cluster != nil {
		errs = append(errs, l.cluster.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(l.dir))...)
}

// lastWords of the program, for an error.
func (l *Lab) lastWords() error {
	raw, err := os.ReadFile(l.log.Name())
	if err != nil {
		return err
	}
	return fmt.Errorf("its last words: %s", raw[max(0, len(raw)-1000):])
}

// scratch is a folder in memory, where there is one.
func scratch() string {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); err == nil && info.IsDir() {
		return shm
	}
	return os.TempDir()
}

func namespace(i int) string { return fmt.Sprintf("bench-%d", i%namespaces) }

// since are the arm's requests after a time.
func (l *Lab) since(from time.Time) audit.Window {
	return audit.Window{Agent: string(l.Name), From: from, LeaderLease: string(l.Load.Operator())}
}
