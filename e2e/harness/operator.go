package harness

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
)

// DefaultNamespace is where an operator keeps its slots and its policy.
const DefaultNamespace = "sync-operator"

// OperatorOptions say how to run an operator.
type OperatorOptions struct {
	// Name of the operator and of its module, for example disk-sync-operator.
	Name string
	// Path of the executable; empty means that it is built.
	Path string
	// Kubeconfig for the operator: the cluster's, or that of a fault proxy.
	Kubeconfig string
	// Namespace of the operator; empty means DefaultNamespace. It must exist.
	Namespace string
	// Args are further flags; Env further variables as name=value.
	Args, Env []string
	// Log gets the operator's output; nil discards it.
	Log io.Writer
}

// Operator is a running operator.
type Operator struct {
	*Process
	// MetricsURL and HealthURL are base addresses: append /metrics, or /readyz and /healthz.
	MetricsURL, HealthURL string
}

// BuildOperator builds <root>/<name>/cmd/<name> as the module's own go.mod says and returns the executable. Go skips
// the work when nothing has changed.
func BuildOperator(ctx context.Context, name string) (string, error) {
	module, err := inRoot(name)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	// The path of the module is in the name, so that two clones do not share an executable.
	path := filepath.Join(cache, "open-terrain", "bin", filepath.FromSlash(module), name)
	_, err = output(ctx, module, "go", "build", "-o", path, "./cmd/"+name)
	return path, err
}

// StartOperator runs an operator until it ends, or is killed because ctx is done. It does not wait for readiness.
func StartOperator(ctx context.Context, options OperatorOptions) (*Operator, error) {
	if options.Path == "" {
		path, err := BuildOperator(ctx, options.Name)
		if err != nil {
			return nil, err
		}
		options.Path = path
	}
	if options.Namespace == "" {
		options.Namespace = DefaultNamespace
	}
	ports, err := freeAddresses(2)
	if err != nil {
		return nil, err
	}
	args := []string{
		"--kubeconfig=" + options.Kubeconfig,
		"--namespace=" + options.Namespace,
		"--metrics-bind-address=" + ports[0],
		"--health-probe-bind-address=" + ports[1],
	}
	process, err := StartProcess(ctx, Command{
		Path: options.Path, Args: append(args, options.Args...), Env: options.Env, Log: options.Log,
	})
	if err != nil {
		return nil, err
	}
	return &Operator{Process: process, MetricsURL: "http://" + ports[0], HealthURL: "http://" + ports[1]}, nil
}

// freeAddresses returns n different loopback addresses that were free a moment ago.
func freeAddresses(n int) (addresses []string, err error) {
	for range n {
		listener, listenErr := net.Listen("tcp", "127.0.0.1:0")
		if listenErr != nil {
			return nil, errors.Join(err, listenErr)
		}
		defer func() { err = errors.Join(err, listener.Close()) }()
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses, nil
}
