// Package stage brings up what a demonstration needs, on this machine alone: a control plane with a node of KWOK's, the operators' charts,
// simulators of CDI, of the snapshot controller and of KubeVirt, servers with images, the built operators, and a recorder of
// all that happens. Stop ends every process and removes every file again.
package stage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/pelotech/open-terrain/e2e/chart"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/pelotech/open-terrain/e2e/sim/cdi"
	"github.com/pelotech/open-terrain/e2e/sim/imageserver"
	"github.com/pelotech/open-terrain/e2e/sim/kubevirt"
	"github.com/pelotech/open-terrain/e2e/sim/s3server"
	"github.com/pelotech/open-terrain/e2e/sim/snapshotter"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

const (
	readyTimeout = 3 * time.Minute
	grace        = 10 * time.Second
	// step is the pause where the real CDI and KubeVirt take about a second.
	step = 250 * time.Millisecond
)

// Options of Start.
type Options struct {
	// Policy is the chart's value for the policy, such as policy={"concurrency":2}.
	Policy string
	// Dir keeps logs and manifests, and is left behind; empty means a temporary folder that Stop removes.
	Dir string
	// Say tells people what is being done.
	Say func(format string, args ...any)
}

// Stage is what was brought up.
type Stage struct {
	Cluster *harness.Cluster
	History *history.Recorder
	Images  *imageserver.Server
	Bucket  *s3server.Server
	// Kubectl is the path of a kubectl that fits.
	Kubectl string

	vmOperator *harness.Operator
	retired    *harness.Operator // the vm-operator that was ended before Stop
	stops      []func() error    // in the order of the starts
}

// Start brings everything up, and returns when the operators are ready. The simulators end with ctx; the rest with Stop.
func Start(ctx context.Context, o Options) (*Stage, error) {
	s := &Stage{}
	for _, step := range []func(context.Context, Options) error{s.startServers, s.startCluster, s.startSimulators, s.startOperators} {
		if err := step(ctx, o); err != nil {
			return nil, errors.Join(err, s.Stop())
		}
	}
	return s, nil
}

// Stop ends what Start started, the last first.
func (s *Stage) Stop() error {
	var errs []error
	for len(s.stops) > 0 {
		last := len(s.stops) - 1
		errs = append(errs, s.stops[last]())
		s.stops = s.stops[:last]
	}
	return errors.Join(errs...)
}

func (s *Stage) later(stop func() error) { s.stops = append(s.stops, stop) }

func (s *Stage) startCluster(ctx context.Context, o Options) error {
	o.Say("Looking for the control plane (if there is none yet it is built, once: about 5 minutes on two cores) ...")
	assets, err := harness.Assets(ctx)
	if err != nil {
		return err
	}
	s.Kubectl = filepath.Join(assets, "kubectl")
	o.Say("Starting etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and KWOK as the kubelet of a node ...")
	if s.Cluster, err = harness.Start(ctx, harness.Options{Dir: o.Dir, KubeVirt: true, Nodes: 1}); err != nil {
		return err
	}
	s.later(s.Cluster.Stop)
	if err := s.logToFile(); err != nil {
		return err
	}
	o.Say("Installing the charts: CRDs, rights, policies, one download per attempt (the first time, Helm is built) ...")
	c, err := s.Cluster.Client("demo")
	if err != nil {
		return err
	}
	sources, err := chart.AllowedSources(s.Images.URL("/"), s.Bucket.URL("", ""))
	if err != nil {
		return err
	}
	if err := chart.Install(ctx, c, chart.WithoutOperator, chart.WithImportOnce, o.Policy, sources); err != nil {
		return err
	}
	for _, ch := range []chart.Chart{chart.VM, chart.Workspace} {
		if err := ch.Install(ctx, c, chart.WithoutOperator); err != nil {
			return err
		}
	}
	// From the first revision on, so that the policy is in it.
	s.History, err = history.Start(ctx, history.Options{
		Endpoint: s.Cluster.EtcdURL, Scheme: harness.NewScheme(), After: 1, Ignore: []string{"events"},
	})
	if err != nil {
		return err
	}
	s.later(s.History.Stop)
	return nil
}

// logToFile keeps what the simulators and the client libraries have to say out of the terminal.
func (s *Stage) logToFile() error {
	file, err := s.log("simulators")
	if err != nil {
		return err
	}
	logger := zap.New(zap.WriteTo(file), zap.Level(zapcore.InfoLevel))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	return nil
}

func (s *Stage) log(name string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(s.Cluster.Dir, "logs", name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		s.later(file.Close)
	}
	return file, err
}

func (s *Stage) startServers(_ context.Context, o Options) (err error) {
	o.Say("Starting a web server and an S3 server with disk images ...")
	if s.Images, err = imageserver.Start(imageserver.Options{}); err != nil {
		return err
	}
	s.later(s.Images.Close)
	if s.Bucket, err = s3server.Start(s3server.Options{}); err != nil {
		return err
	}
	s.later(s.Bucket.Close)
	return nil
}

// startSimulators plays CDI and KubeVirt a little faster than they are.
func (s *Stage) startSimulators(ctx context.Context, o Options) error {
	o.Say("Starting simulators of CDI, of the snapshot controller and of KubeVirt ...")
	ctx, cancel := context.WithCancel(ctx)
	s.later(func() error { cancel(); return nil })
	for _, start := range []func(context.Context) (interface{ Wait() }, error){
		func(ctx context.Context) (interface{ Wait() }, error) {
			return cdi.Start(ctx, s.Cluster.Config, cdi.Options{
				Step: step, ProgressInterval: 500 * time.Millisecond, Termination: step, Dir: s.Cluster.Dir,
			})
		},
		func(ctx context.Context) (interface{ Wait() }, error) {
			return snapshotter.Start(ctx, s.Cluster.Config, snapshotter.Options{ReadyAfter: time.Second})
		},
		func(ctx context.Context) (interface{ Wait() }, error) {
			return kubevirt.Start(ctx, s.Cluster.Config, kubevirt.Options{Step: step, Termination: time.Second, Admission: true, Node: true})
		},
	} {
		simulator, err := start(ctx)
		if err != nil {
			return err
		}
		s.later(func() error { cancel(); simulator.Wait(); return nil })
	}
	return nil
}
