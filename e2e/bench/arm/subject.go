package arm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/pelotech/open-terrain/e2e/bench/procs"
	"github.com/pelotech/open-terrain/e2e/harness"
	"k8s.io/apimachinery/pkg/util/wait"
)

// subject is the program that is measured.
type subject struct {
	// process is nil for commands.
	process *harness.Process
	began   time.Time
	// metrics and profiles are base addresses; the floor has none.
	metrics, profiles string
}

const (
	startTimeout = time.Minute
	grace        = 20 * time.Second
	poll         = 50 * time.Millisecond
)

// StartSubject starts the arm's program, with its default flags.
func (l *Lab) StartSubject(ctx context.Context) error {
	var err error
	began := time.Now()
	if l.isCommand() {
		l.subject = &subject{began: began}
		return nil
	}
	if l.Name == Floor {
		path, args := l.task.floor(l)
		args = append(args, "--kubeconfig="+l.cluster.Kubeconfig)
		process, startErr := harness.StartProcess(ctx, harness.Command{Path: path, Args: args, Log: l.log})
		l.subject, err = &subject{process: process, began: began}, startErr
	} else {
		l.subject, err = l.startOperator(ctx)
	}
	if err != nil {
		l.subject = nil
	}
	return err
}

func (l *Lab) startOperator(ctx context.Context) (*subject, error) {
	profiles, err := freeAddress()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	operator, err := harness.StartOperator(ctx, harness.OperatorOptions{
		Name: string(l.Name), Path: l.Tools.Operators[l.Name], Kubeconfig: l.cluster.Kubeconfig, Log: l.log,
		Namespace: l.Load.chart().Namespace,
		Args:      []string{"--pprof-bind-address=" + profiles},
	})
	if err != nil {
		return nil, err
	}
	return &subject{process: operator.Process, began: began, metrics: operator.MetricsURL, profiles: "http://" + profiles}, nil
}

// StopSubject ends the program as Kubernetes would, so that the operator gives up its leader's Lease.
func (l *Lab) StopSubject() error {
	if l.subject == nil {
		return nil
	}
	err := l.subject.process.Terminate(grace)
	l.subject = nil
	return err
}

// startInformers starts the informers and returns when they are synced.
func (l *Lab) startInformers(ctx context.Context) (*subject, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s := &subject{metrics: "http://" + address, profiles: "http://" + address, began: time.Now()}
	s.process, err = harness.StartProcess(ctx, harness.Command{
		Path: l.Tools.Informers, Log: l.log,
		Args: []string{"--kubeconfig=" + l.cluster.Kubeconfig, "--address=" + address, "--of=" + string(l.Load.Operator())},
	})
	if err != nil {
		return nil, err
	}
	err = wait.PollUntilContextTimeout(ctx, poll, startTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := procs.Get(ctx, s.metrics+"/synced")
		return err == nil, s.alive()
	})
	if err != nil {
		s.process.Kill()
		return nil, fmt.Errorf("wait for the informers: %w", err)
	}
	return s, nil
}

func (s *subject) alive() error {
	select {
	case <-s.ended():
		return errors.New("the program has ended by itself")
	default:
		return nil
	}
}

// ended is closed when the program has ended; a command may.
func (s *subject) ended() <-chan struct{} {
	if s.process == nil {
		return nil
	}
	return s.process.Done()
}

func (s *subject) cpu() time.Duration {
	if s.process == nil {
		return procs.Ended()
	}
	return procs.CPU(s.process.Pid())
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
