// Package lab runs the built operator against a real API server, behind the fault proxy, and checks the invariants on
// the history of etcd. A world is one control plane with its simulators; it may see many plans, one after the other.
package lab

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/pelotech/open-terrain/e2e/chart"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/pelotech/open-terrain/e2e/invariant"
	"github.com/pelotech/open-terrain/e2e/sim"
	"github.com/pelotech/open-terrain/e2e/sim/cdi"
	"github.com/pelotech/open-terrain/e2e/sim/kubevirt"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// settled is how long nothing but the leader's Lease may change before a story counts as over.
const settled = 300 * time.Millisecond

// Options of a world.
type Options struct {
	// Instant, when set, plays imports without pods and downloads, each of that duration unless its Behaviour says else.
	Instant *time.Duration
	// Behaviour of an attempt; nil means that all succeed, as far as the URL does.
	Behaviour func(*cdiv1.DataVolume) cdi.Behaviour
	// Policy to begin with.
	Policy map[string]string
	// Chart are values of the chart, such as slotFence.enabled=true.
	Chart []string
	// Settings of the checks; the namespace is filled in.
	Settings invariant.Settings
	// KubeVirt, when set, is played, too. Then the operator behind the proxy is the vm-operator, and a disk-sync-operator runs
	// beside it whose requests nothing happens to.
	KubeVirt *kubevirt.Options
	// Workspaces puts the workspace-operator behind the proxy, and the vm-operator beside it, too. It needs KubeVirt.
	Workspaces bool
}

// faulted is the operator behind the proxy, beside are the others that run.
func (o Options) operators() (faulted chart.Chart, beside []chart.Chart) {
	switch {
	case o.Workspaces:
		return chart.Workspace, []chart.Chart{chart.DiskSync, chart.VM}
	case o.KubeVirt != nil:
		return chart.VM, []chart.Chart{chart.DiskSync}
	}
	return chart.DiskSync, nil
}

// nodes for pods of Deployments, which nobody else has.
func (o Options) nodes() int {
	if o.Workspaces {
		return 1
	}
	return 0
}

// World is a control plane with CRDs, chart, simulators and a recorder.
type World struct {
	*harness.Cluster
	Client   client.Client
	Recorder *history.Recorder
	Sim      *sim.World
	Settings invariant.Settings

	// faulted is the chart of the operator that runs behind the proxy, and operator its executable.
	faulted  chart.Chart
	operator string
	lives    atomic.Int32
	policy   []history.Event // the last one before policyAt, for views
	policyAt int
	// again are the DataVolumes whose claim a story has deleted: CDI imports into them once more, for long.
	again sync.Map
}

// Start brings up a world that ends with the test.
func Start(t *testing.T, o Options) *World {
	t.Helper()
	ctx := t.Context()
	ctrllog.SetLogger(logr.Discard()) // the simulators'
	faulted, beside := o.operators()
	operator, err := harness.BuildOperator(ctx, faulted.Name)
	require.NoError(t, err)
	cluster, err := harness.Start(ctx, harness.Options{Dir: logDir(t), KubeVirt: o.KubeVirt != nil, Nodes: o.nodes()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cluster.Stop()) })
	w := &World{Cluster: cluster, Settings: o.Settings, faulted: faulted, operator: operator}
	w.Settings.Namespace = harness.DefaultNamespace
	w.Client, err = cluster.Client("invariant-test")
	require.NoError(t, err)
	w.Recorder, err = history.Start(ctx, history.Options{
		Endpoint: cluster.EtcdURL, Scheme: harness.NewScheme(), After: 1, Ignore: []string{"events"},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Recorder.Stop()) })
	require.NoError(t, chart.Install(ctx, w.Client, append([]string{chart.WithoutOperator, chart.WithImportOnce}, o.Chart...)...))
	require.NoError(t, w.Client.Create(ctx, &snapshotv1.VolumeSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{Name: "simulated", Annotations: map[string]string{"snapshot.storage.kubernetes.io/is-default-class": "true"}},
		Driver:     "simulated", DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
	}))
	w.Sim, err = sim.Start(ctx, cluster.Config, w.simOptions(o))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Sim.Close()) })
	require.NoError(t, w.SetPolicy(ctx, o.Policy))
	if o.KubeVirt != nil {
		require.NoError(t, chart.VM.Install(ctx, w.Client, chart.WithoutOperator))
	}
	if o.Workspaces {
		require.NoError(t, chart.Workspace.Install(ctx, w.Client, chart.WithoutOperator))
	}
	for _, ch := range beside {
		w.startBeside(t, ch)
	}
	return w
}

// startBeside runs an operator that talks to the API server itself.
func (w *World) startBeside(t *testing.T, ch chart.Chart) {
	t.Helper()
	log, err := os.Create(filepath.Join(w.Dir, "logs", ch.Name+".log"))
	require.NoError(t, err)
	operator, err := harness.StartOperator(t.Context(), harness.OperatorOptions{
		Name: ch.Name, Namespace: ch.Namespace, Kubeconfig: w.Kubeconfig, Log: log, Args: Alone(),
	})
	require.NoError(t, err)
	t.Cleanup(operator.Kill)
}

// logDir keeps the logs of a test that asks for it by OT_LOGS.
func logDir(t *testing.T) string {
	t.Helper()
	root := os.Getenv("OT_LOGS")
	if root == "" {
		return ""
	}
	dir, err := os.MkdirTemp(root, strings.ReplaceAll(t.Name(), "/", "_")+"-") //nolint:usetesting // to be looked at after the test
	require.NoError(t, err)
	return dir
}

func (w *World) simOptions(o Options) sim.Options {
	var s sim.Options
	s.CDI.Behaviour = func(dv *cdiv1.DataVolume) cdi.Behaviour {
		if _, again := w.again.Load(dv.UID); again {
			return cdi.Behaviour{StopAt: cdiv1.ImportInProgress}
		}
		if o.Behaviour == nil {
			return cdi.Behaviour{}
		}
		return o.Behaviour(dv)
	}
	s.CDI.ProgressInterval = 50 * time.Millisecond
	s.KubeVirt = o.KubeVirt
	if o.Instant != nil {
		s.CDI.Instant = &cdi.Instant{Duration: *o.Instant}
		s.Snapshotter.Instant = true
	}
	return s
}

// SetPolicy replaces the data of the policy's ConfigMap; the sources of the images are allowed beside it.
func (w *World) SetPolicy(ctx context.Context, data map[string]string) error {
	cm := &corev1.ConfigMap{}
	key := types.NamespacedName{Namespace: w.Settings.Namespace, Name: otv1alpha1.PolicyConfigMapName}
	if err := w.Client.Get(ctx, key, cm); err != nil {
		return err
	}
	data = maps.Clone(data)
	if data == nil {
		data = map[string]string{}
	}
	if _, given := data[policy.KeyAllowedSources]; !given {
		data[policy.KeyAllowedSources] = strings.Join(append(w.Sim.Sources(), "http://images.test/"), "\n")
	}
	if maps.Equal(cm.Data, data) {
		return nil
	}
	cm.Data = data
	return w.Client.Update(ctx, cm)
}

// Namespace makes one.
func (w *World) Namespace(ctx context.Context, name string) error {
	return w.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// Image is an http image that has not been created.
func Image(namespace, name, url string) *otv1alpha1.VMDiskImage {
	return &otv1alpha1.VMDiskImage{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       otv1alpha1.VMDiskImageSpec{SourceType: otv1alpha1.SourceHTTP, URL: url, DiskSize: resource.MustParse("1Gi")},
	}
}

// Settle returns when every image has come to its end, no slot is held, and nothing has changed for a moment. The error
// says what is not at its end.
func (w *World) Settle(ctx context.Context) error {
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		// What the caller has just written may not be recorded yet.
		if _, err := w.Recorder.Sync(ctx); err != nil {
			return err
		}
		unsettled := w.unsettled()
		if unsettled == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not settled: %s: %w", unsettled, ctx.Err())
		case <-tick.C:
		}
	}
}

func (w *World) unsettled() string { return unsettled(w.Settings, w.Recorder.All()) }

// excerpt is how many lines of history are shown before a violation.
const excerpt = 40

// Check runs the checks, or all of them, over the whole history, and tells what is broken after a revision, with the history
// between it and the first violation.
func (w *World) Check(after int64, checks ...invariant.Check) error {
	events := w.Recorder.All()
	if checks == nil {
		checks = []invariant.Check{invariant.All}
	}
	var late []invariant.Violation
	for _, check := range checks {
		for _, v := range check(w.Settings, events) {
			if v.Event.Revision > after {
				late = append(late, v)
			}
		}
	}
	return broken(events[indexAfter(events, after):], late)
}
