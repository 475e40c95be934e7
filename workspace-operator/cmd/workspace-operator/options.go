package main

import (
	"errors"
	"flag"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/pelotech/open-terrain/workspace-operator/internal/controller"
	"github.com/pelotech/open-terrain/workspace-operator/internal/desired"
	"github.com/pelotech/open-terrain/workspace-operator/internal/plan"
)

// options are the flags.
type options struct {
	namespace       string
	policyNamespace string
	imageNamespace  string
	podSecurity     string
	dns             dnsOptions
	metadataCIDRs   list
	metricsAddress  string
	probeAddress    string
	pprofAddress    string
	leaderElect     bool
	leaseDuration   time.Duration
	renewDeadline   time.Duration
	retryPeriod     time.Duration
	statusInterval  time.Duration
	troubleDebounce time.Duration
	workers         int
}

// dnsOptions say where a workspace's members find the DNS.
type dnsOptions struct {
	namespace string
	labels    pairs
	cidrs     list
}

// bindFlags declares the flags; --kubeconfig is controller-runtime's, --zap-* are its logger's.
func (o *options) bindFlags(flags *flag.FlagSet) {
	namespace := os.Getenv("POD_NAMESPACE")
	if namespace == "" {
		namespace = "workspace-operator"
	}
	o.dns.labels, o.dns.cidrs = pairs{"k8s-app": "kube-dns"}, list{"169.254.20.10/32"}
	flags.StringVar(&o.namespace, "namespace", namespace, "namespace of the leader's Lease and of the slots; $POD_NAMESPACE where that is set")
	flags.StringVar(&o.policyNamespace, "policy-namespace", "sync-operator", "namespace of the ConfigMap sync-operator-policy, that of the disk-sync-operator: workspaceConcurrency is read from it")
	flags.StringVar(&o.imageNamespace, "image-namespace", "vm-images", "namespace of the images that VMDiskImageName, or a vmDiskImageRef without a namespace, means")
	flags.StringVar(&o.podSecurity, "pod-security", "baseline", "level of Pod Security in the namespaces that are made for workspaces: privileged, baseline or restricted; virt-launcher needs baseline")
	flags.StringVar(&o.dns.namespace, "dns-namespace", "kube-system", "namespace of the pods that answer DNS queries")
	flags.Var(&o.dns.labels, "dns-labels", "labels of these pods: key=value, separated by commas")
	flags.Var(&o.dns.cidrs, "dns-cidrs", "further addresses of the DNS, such as NodeLocal DNS: CIDRs, separated by commas; may be empty")
	flags.Var(&o.metadataCIDRs, "metadata-cidrs", "addresses that no workspace may reach, besides 169.254.169.254/32 and fd00:ec2::254/128: CIDRs, separated by commas")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443", "address of the metrics (https, with authentication); 0 switches them off; a loopback address is served over http without authentication")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 switches them off")
	flags.BoolVar(&o.leaderElect, "leader-elect", true, "work only while this process is the leader")
	flags.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", 15*time.Second, "how long the others wait before they take over from a leader that is silent")
	flags.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 10*time.Second, "how long the leader tries to renew before it ends; less than the lease duration")
	flags.DurationVar(&o.retryPeriod, "leader-elect-retry-period", 2*time.Second, "wait between two tries")
	flags.StringVar(&o.pprofAddress, "pprof-bind-address", "0", "address of Go's profiles, without authentication: loopback only; 0 switches them off")
	flags.DurationVar(&o.statusInterval, "status-interval", time.Second, "least time between two status writes of a workspace that change neither its phase nor its place in the queue")
	flags.DurationVar(&o.troubleDebounce, "trouble-debounce", time.Minute, "how long a trouble that usually passes must last, before the workspace is Failed")
	flags.IntVar(&o.workers, "workers", 16, "how many workspaces are followed at a time")
}

// validate says what to change.
func (o *options) validate(rest []string) error {
	switch {
	case len(rest) > 0:
		return errors.New("there are flags only, no arguments: " + rest[0])
	case o.namespace == "":
		return errors.New("--namespace must not be empty")
	case o.policyNamespace == "":
		return errors.New("--policy-namespace must not be empty")
	case o.imageNamespace == "":
		return errors.New("--image-namespace must not be empty")
	case o.workers < 1:
		return errors.New("--workers must be 1 or more")
	case o.statusInterval < 0:
		return errors.New("--status-interval must not be negative")
	case o.troubleDebounce < 0:
		return errors.New("--trouble-debounce must not be negative")
	}
	return errors.Join(o.validateNetwork(), o.validateProcess())
}

func (o *options) validateNetwork() error {
	switch o.podSecurity {
	case "privileged", "baseline", "restricted":
	default:
		return errors.New("--pod-security must be privileged, baseline or restricted")
	}
	if o.dns.namespace == "" || len(o.dns.labels) == 0 {
		return errors.New("--dns-namespace and --dns-labels must not be empty: without them every pod would be the DNS")
	}
	for name, cidrs := range map[string]list{"--dns-cidrs": o.dns.cidrs, "--metadata-cidrs": o.metadataCIDRs} {
		if _, err := prefixes(cidrs); err != nil {
			return errors.New(name + " must be CIDRs, such as 169.254.20.10/32: " + err.Error())
		}
	}
	return nil
}

func (o *options) validateProcess() error {
	switch {
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

// prefixes of the addresses.
func prefixes(cidrs []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, cidr := range cidrs {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			return nil, err
		}
		all = append(all, prefix.Masked())
	}
	return all, nil
}

// controller are the options of the controllers. The flags have been validated.
func (o *options) controller() controller.Options {
	dns, _ := prefixes(o.dns.cidrs)
	metadata, _ := prefixes(o.metadataCIDRs)
	return controller.Options{
		Namespace: o.namespace, PolicyNamespace: o.policyNamespace, Workers: o.workers,
		Settings: plan.Settings{
			TroubleDebounce: o.troubleDebounce, StatusInterval: o.statusInterval,
			Desired: desired.Settings{
				ImageNamespace: o.imageNamespace, PodSecurity: o.podSecurity, Metadata: metadata,
				DNS: desired.DNS{Namespace: o.dns.namespace, Labels: o.dns.labels, CIDRs: dns},
			},
		},
	}
}
