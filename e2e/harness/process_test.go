package harness_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func shell(ctx context.Context, t *testing.T, script string) *harness.Process {
	t.Helper()
	process, err := harness.StartProcess(ctx, harness.Command{Path: "/bin/sh", Args: []string{"-c", script}})
	require.NoError(t, err)
	t.Cleanup(process.Kill)
	return process
}

func TestProcess(t *testing.T) {
	t.Run("its output and environment are as asked for", func(t *testing.T) {
		var log bytes.Buffer
		process, err := harness.StartProcess(t.Context(), harness.Command{
			Path: "/bin/sh", Args: []string{"-c", "echo $COLOUR; echo no >&2"}, Env: []string{"COLOUR=red"}, Log: &log,
		})
		require.NoError(t, err)
		require.NoError(t, process.Wait())
		assert.Equal(t, "red\nno\n", log.String())
	})
	t.Run("an exit status is an error", func(t *testing.T) {
		var exit *exec.ExitError
		require.ErrorAs(t, shell(t.Context(), t, "exit 3").Wait(), &exit)
		assert.Equal(t, 3, exit.ExitCode())
	})
	t.Run("it can be terminated and may clean up", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "ready")
		process := shell(t.Context(), t, "trap 'exit 0' TERM; touch "+file+"; while :; do sleep 0.02; done")
		require.Eventually(t, func() bool { _, err := os.Stat(file); return err == nil }, 10*time.Second, time.Millisecond)
		assert.NoError(t, process.Terminate(10*time.Second))
	})
	t.Run("one that ignores its termination is killed after the grace period", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "ready")
		process := shell(t.Context(), t, "trap '' TERM; touch "+file+"; while :; do sleep 0.02; done")
		require.Eventually(t, func() bool { _, err := os.Stat(file); return err == nil }, 10*time.Second, time.Millisecond)
		assert.ErrorContains(t, process.Terminate(50*time.Millisecond), "did not end")
		<-process.Done()
	})
	t.Run("paused it does nothing, resumed it goes on", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "ticks")
		ticks := func() int { content, _ := os.ReadFile(file); return len(content) }
		process := shell(t.Context(), t, "while :; do printf . >>"+file+"; sleep 0.01; done")
		require.Eventually(t, func() bool { return ticks() > 0 }, 10*time.Second, time.Millisecond)
		require.NoError(t, process.Pause())
		time.Sleep(50 * time.Millisecond)
		paused := ticks()
		time.Sleep(100 * time.Millisecond)
		assert.Equal(t, paused, ticks())
		require.NoError(t, process.Resume())
		assert.Eventually(t, func() bool { return ticks() > paused }, 10*time.Second, time.Millisecond)
	})
	t.Run("a paused one can be killed", func(t *testing.T) {
		process := shell(t.Context(), t, "sleep 60")
		require.NoError(t, process.Pause())
		process.Kill()
		assert.ErrorContains(t, process.Resume(), "has ended already")
	})
	t.Run("it ends with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		process := shell(ctx, t, "sleep 60")
		cancel()
		<-process.Done()
	})
	t.Run("a program that is not there is an error", func(t *testing.T) {
		_, err := harness.StartProcess(t.Context(), harness.Command{Path: "/no/such/program"})
		assert.ErrorContains(t, err, "start program")
	})
}

func TestOperatorGetsItsAddresses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "arguments")
	script := filepath.Join(t.TempDir(), "operator")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\nprintf '%s\\n' \"$@\" >"+file+"\n"), 0o755))
	operator, err := harness.StartOperator(t.Context(), harness.OperatorOptions{
		Name: "disk-sync-operator", Path: script, Kubeconfig: "/k", Args: []string{"--leader-elect=false"},
	})
	require.NoError(t, err)
	require.NoError(t, operator.Wait())
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	metrics, health := strings.TrimPrefix(operator.MetricsURL, "http://"), strings.TrimPrefix(operator.HealthURL, "http://")
	assert.Equal(t, []string{
		"--kubeconfig=/k", "--namespace=sync-operator",
		"--metrics-bind-address=" + metrics, "--health-probe-bind-address=" + health, "--leader-elect=false",
	}, strings.Fields(string(content)))
	for _, address := range []string{metrics, health} {
		listener, err := net.Listen("tcp", address)
		require.NoError(t, err, "the address is free")
		require.NoError(t, listener.Close())
	}
}
