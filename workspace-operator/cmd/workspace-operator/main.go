// Command workspace-operator makes isolated environments of virtual machines and containers.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/controller"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // any kubeconfig
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	var o options
	var log zap.Options
	o.bindFlags(flag.CommandLine)
	log.BindFlags(flag.CommandLine)
	flag.Parse()
	if err := o.validate(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "workspace-operator:", err)
		os.Exit(2)
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&log)))
	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		ctrl.Log.Error(err, "workspace-operator ends")
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	settings := o.controller()
	mgr, err := newManager(o, settings)
	if err != nil {
		return err
	}
	if err := controller.Setup(mgr, settings); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("kinds", controller.Ready(mgr.GetRESTMapper())); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update,namespace=operator
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch,namespace=operator

// newManager makes the manager. Leader election needs its Lease, and tells of a change in an event.
func newManager(o options, settings controller.Options) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	cacheOptions, err := controller.CacheOptions(settings)
	if err != nil {
		return nil, err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	config.UserAgent = "workspace-operator"
	return ctrl.NewManager(config, manager.Options{
		Scheme: scheme,
		Cache:  cacheOptions,
		// The kinds of the other operators may be installed after this one.
		NewCache:  controller.NewCache,
		NewClient: controller.NewClient,
		// A read waits until the cache shows what this process wrote to that object.
		Client:                        client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Metrics:                       metricsOptions(o.metricsAddress),
		HealthProbeBindAddress:        o.probeAddress,
		PprofBindAddress:              o.pprofAddress,
		LeaderElection:                o.leaderElect,
		LeaseDuration:                 &o.leaseDuration,
		RenewDeadline:                 &o.renewDeadline,
		RetryPeriod:                   &o.retryPeriod,
		LeaderElectionID:              "workspace-operator",
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: true,
	})
}

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// metricsOptions demand a token that may get /metrics, except on loopback, where only the machine itself can ask.
func metricsOptions(address string) metricsserver.Options {
	o := metricsserver.Options{BindAddress: address}
	if isLoopback(address) {
		return o
	}
	o.SecureServing, o.FilterProvider = true, filters.WithAuthenticationAndAuthorization
	return o
}
