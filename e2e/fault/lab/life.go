package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pelotech/open-terrain/e2e/faultproxy"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/require"
)

// Life is one process of the operator, and the proxy that it talks through.
type Life struct {
	*harness.Operator
	Proxy *faultproxy.Proxy
}

// Alone are the flags of an operator without leader election.
func Alone() []string { return []string{"--leader-elect=false"} }

// Operator starts a process behind a proxy with rules; it is killed when a rule severs it, and with the test.
func (w *World) Operator(t *testing.T, rules []faultproxy.Rule, args ...string) *Life {
	t.Helper()
	life, err := w.Begin(t.Context(), rules, args...)
	require.NoError(t, err)
	t.Cleanup(life.End)
	return life
}

// Begin is Operator without a test: whoever begins a life ends it.
func (w *World) Begin(ctx context.Context, rules []faultproxy.Rule, args ...string) (*Life, error) {
	life := &Life{}
	started := make(chan struct{})
	proxy, err := faultproxy.Start(faultproxy.Options{Config: w.Config, Rules: rules, OnSever: func() {
		<-started
		life.Kill()
	}})
	if err != nil {
		return nil, err
	}
	defer close(started)
	life.Proxy = proxy
	number := w.lives.Add(1)
	kubeconfig := filepath.Join(w.Dir, fmt.Sprintf("operator-%d.kubeconfig", number))
	if err := proxy.WriteKubeconfig(kubeconfig); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(w.Dir, "logs", fmt.Sprintf("operator-%d.log", number)))
	if err != nil {
		return nil, err
	}
	life.Operator, err = harness.StartOperator(ctx, harness.OperatorOptions{
		Name: w.faulted.Name, Namespace: w.faulted.Namespace, Path: w.operator, Kubeconfig: kubeconfig, Log: log,
		Args: append([]string{"--zap-devel"}, args...),
	})
	return life, err
}

// End kills the process and closes its proxy.
func (l *Life) End() {
	l.Kill()
	_ = l.Proxy.Close() // nobody is left to miss it
}
