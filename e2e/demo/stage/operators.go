package stage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pelotech/open-terrain/e2e/chart"
	"github.com/pelotech/open-terrain/e2e/harness"
	"k8s.io/apimachinery/pkg/util/wait"
)

func (s *Stage) startOperators(ctx context.Context, o Options) error {
	o.Say("Building and starting the operators ...")
	if _, err := s.startOperator(ctx, chart.DiskSync, "--progress-interval=1s"); err != nil {
		return err
	}
	if err := s.startVMOperator(ctx); err != nil {
		return err
	}
	_, err := s.startOperator(ctx, chart.Workspace)
	return err
}

func (s *Stage) startVMOperator(ctx context.Context) (err error) {
	s.vmOperator, err = s.startOperator(ctx, chart.VM)
	return err
}

// RestartVMOperator ends the vm-operator, and returns when another process of it is ready.
func (s *Stage) RestartVMOperator(ctx context.Context) error {
	s.retired = s.vmOperator
	if err := s.retired.Terminate(grace); err != nil {
		return err
	}
	return s.startVMOperator(ctx)
}

// startOperator builds an operator, runs it until Stop, and returns when it is ready.
func (s *Stage) startOperator(ctx context.Context, c chart.Chart, args ...string) (*harness.Operator, error) {
	log, err := s.log(c.Name)
	if err != nil {
		return nil, err
	}
	// Not the caller's context: the operator is to end by itself, and to give up its Lease, when it is told to.
	operator, err := harness.StartOperator(context.WithoutCancel(ctx), harness.OperatorOptions{
		Name: c.Name, Namespace: c.Namespace, Kubeconfig: s.Cluster.Kubeconfig, Log: log, Args: args,
	})
	if err != nil {
		return nil, err
	}
	s.later(func() error {
		if operator == s.retired {
			return nil
		}
		return operator.Terminate(grace)
	})
	var last error
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-operator.Done():
			return false, errors.New("it has ended")
		default:
		}
		_, last = get(ctx, operator.HealthURL+"/readyz?verbose")
		return last == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for the %s: %w; its log ends with\n%s", c.Name, errors.Join(err, last), tail(log.Name()))
	}
	return operator, nil
}

// Looks is how many times the vm-operator that runs has looked at a virtual machine, by its own count; 0 where it cannot be
// asked.
func (s *Stage) Looks(ctx context.Context) int {
	metrics, err := get(ctx, s.vmOperator.MetricsURL+"/metrics")
	if err != nil {
		return 0
	}
	looks := 0.0
	for lines := bufio.NewScanner(strings.NewReader(metrics)); lines.Scan(); {
		if line := lines.Text(); strings.HasPrefix(line, `controller_runtime_reconcile_total{controller="virtualmachine"`) {
			value, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64)
			if err == nil {
				looks += value
			}
		}
	}
	return int(looks)
}

func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return string(body), err
}

// tail is the end of a log.
func tail(path string) string {
	const most = 2000
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return strings.ToValidUTF8(string(text[max(0, len(text)-most):]), "")
}
