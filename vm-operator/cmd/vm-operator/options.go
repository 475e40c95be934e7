package main

import (
	"errors"
	"flag"
	"net"
	"os"
	"time"
)

// options are the flags.
type options struct {
	namespace       string
	metricsAddress  string
	probeAddress    string
	pprofAddress    string
	leaderElect     bool
	leaseDuration   time.Duration
	renewDeadline   time.Duration
	retryPeriod     time.Duration
	claimInterval   time.Duration
	troubleDebounce time.Duration
	workers         int
	serviceAccount  string
	passwordReader  string
}

// bindFlags declares the flags; --kubeconfig is controller-runtime's, --zap-* are its logger's.
func (o *options) bindFlags(flags *flag.FlagSet) {
	namespace := os.Getenv("POD_NAMESPACE")
	if namespace == "" {
		namespace = "vm-operator"
	}
	flags.StringVar(&o.namespace, "namespace", namespace, "namespace of the leader's Lease; $POD_NAMESPACE where that is set")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443", "address of the metrics (https, with authentication); 0 switches them off; a loopback address is served over http without authentication")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 switches them off")
	flags.BoolVar(&o.leaderElect, "leader-elect", true, "work only while this process is the leader")
	flags.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", 15*time.Second, "how long the others wait before they take over from a leader that is silent")
	flags.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 10*time.Second, "how long the leader tries to renew before it ends; less than the lease duration")
	flags.DurationVar(&o.retryPeriod, "leader-elect-retry-period", 2*time.Second, "wait between two tries")
	flags.StringVar(&o.pprofAddress, "pprof-bind-address", "0", "address of Go's profiles, without authentication: loopback only; 0 switches them off")
	flags.DurationVar(&o.claimInterval, "claim-interval", time.Second, "least time between two writes of the references on an image; up to eight times that while virtual machines keep coming or going")
	flags.DurationVar(&o.troubleDebounce, "trouble-debounce", time.Minute, "how long KubeVirt must show a trouble that usually passes, before the virtual machine is Failed")
	flags.StringVar(&o.serviceAccount, "service-account", "vm-operator", "the operator's own ServiceAccount, in its namespace: named where status says how to give it the right to read a password")
	flags.StringVar(&o.passwordReader, "password-reader-role", "vm-operator-password-reader", "ClusterRole to bind in a namespace where passwordSecretRef is used; named in the same place")
	flags.IntVar(&o.workers, "workers", 24, "how many virtual machines are followed at a time")
}

// validate says what to change.
func (o *options) validate(rest []string) error {
	switch {
	case len(rest) > 0:
		return errors.New("there are flags only, no arguments: " + rest[0])
	case o.namespace == "":
		return errors.New("--namespace must not be empty")
	case o.workers < 1:
		return errors.New("--workers must be 1 or more")
	case o.claimInterval <= 0:
		return errors.New("--claim-interval must be more than 0")
	case o.troubleDebounce < 0:
		return errors.New("--trouble-debounce must not be negative")
	case o.pprofAddress != "0" && !isLoopback(o.pprofAddress):
		return errors.New("--pprof-bind-address must be a loopback address, such as 127.0.0.1:6060: profiles are served without authentication")
	case o.renewDeadline >= o.leaseDuration:
		return errors.New("--leader-elect-renew-deadline must be less than --leader-elect-lease-duration")
	}
	return nil
}

// isLoopback says whether only the machine itself can reach the address, host:port.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}
