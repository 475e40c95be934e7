package wsscenario

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/pelotech/open-terrain/e2e/chart"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/pelotech/open-terrain/e2e/sim"
	"github.com/pelotech/open-terrain/e2e/sim/cdi"
	"github.com/pelotech/open-terrain/e2e/sim/diskimage"
	"github.com/pelotech/open-terrain/e2e/sim/imageserver"
	"github.com/pelotech/open-terrain/e2e/sim/kubevirt"
	"github.com/pelotech/open-terrain/e2e/sim/registryserver"
	"github.com/pelotech/open-terrain/e2e/sim/s3server"
	"github.com/pelotech/open-terrain/e2e/sim/snapshotter"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// images is the namespace that VMDiskImageName means.
const images = "vm-images"

// pace is how fast a backend is.
type pace struct {
	// patience is how long to wait for anything; poll is how often to look.
	patience, poll time.Duration
	// debounce is the operators': how long a trouble lasts before it is a failure. A pod's times are whole seconds, and half of it
	// is what a container that ended must run to be believed: it cannot be much shorter.
	debounce time.Duration
	// settled is how long nothing may be written once all is done.
	settled time.Duration
}

func embeddedPace() pace {
	return pace{patience: 4 * time.Minute, poll: 50 * time.Millisecond, debounce: 4 * time.Second, settled: 3 * time.Second}
}

func realPace() pace {
	return pace{patience: 10 * time.Minute, poll: 500 * time.Millisecond, debounce: 20 * time.Second, settled: 15 * time.Second}
}

// world is a cluster with all operators.
type world struct {
	pace
	// real says that the cluster existed before, with the real CDI, the real KubeVirt and real nodes.
	real    bool
	cluster *harness.Cluster
	client  client.WithWatch
	// runs is an image of a container that runs.
	runs string
	// logs is the folder of the operators' logs.
	logs string
	// disks, machines and workspaces are the operators that run now.
	disks, machines, workspaces *harness.Operator

	disk diskimage.Image
	web  *imageserver.Server
	// simulated are the servers, and the simulators.
	simulated *sim.World
	behave    behaviours
}

// newWorld brings up all of it, and takes it down when the test is over.
func newWorld(t *testing.T) *world {
	t.Helper()
	began := time.Now()
	w := &world{pace: embeddedPace(), real: os.Getenv("OT_E2E") == "existing", runs: "registry.test/server:1", logs: logFolder(t)}
	address, options := "127.0.0.1", harness.FromEnv(harness.Options{
		// Each story has a namespace or two that go at its end.
		KubeVirt: true, Audit: true, Nodes: 1, ControllerManagerArgs: map[string]string{"concurrent-namespace-syncs": "40"},
	})
	if w.real {
		w.pace, options.CRDs = realPace(), []string{} // those of the charts
		address, w.runs = os.Getenv("OT_E2E_ADDRESS"), os.Getenv("OT_E2E_IMAGE")
		require.NotEmpty(t, address, "OT_E2E_ADDRESS: an address of this machine that pods reach")
		require.NotEmpty(t, w.runs, "OT_E2E_IMAGE: an image that nodes can run")
	}
	cluster, err := harness.Start(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	w.cluster = cluster
	w.client, err = cluster.Client("scenario")
	require.NoError(t, err)
	if w.real {
		w.claimCluster(t)
	}
	w.startServers(t, address)
	w.installCharts(t)
	w.disks = w.start(t, chart.DiskSync, "--progress-interval=1s")
	w.machines = w.start(t, chart.VM, "--trouble-debounce="+w.debounce.String())
	w.startWorkspaces(t)
	t.Cleanup(func() { w.disks.Kill(); w.machines.Kill(); w.workspaces.Kill() })
	w.awaitReady(t)
	if w.real {
		w.clearStories(t.Context(), t) // of a run that was broken off
	}
	t.Logf("all was there after %s", time.Since(began).Round(time.Millisecond))
	return w
}

// logFolder is OT_E2E_OPERATOR_LOGS, or one that goes with the test.
func logFolder(t *testing.T) string {
	t.Helper()
	if folder := os.Getenv("OT_E2E_OPERATOR_LOGS"); folder != "" {
		return folder
	}
	return t.TempDir()
}

// startServers runs the servers of images and, on a control plane of our own, the simulators.
func (w *world) startServers(t *testing.T, address string) {
	t.Helper()
	anyPort := address + ":0"
	simulated, err := sim.Start(context.Background(), w.cluster.Config, sim.Options{
		CDI:         cdi.Options{Step: 20 * time.Millisecond, Termination: 50 * time.Millisecond, Dir: t.TempDir(), Workers: 16, Webhook: true},
		Snapshotter: snapshotter.Options{ReadyAfter: 50 * time.Millisecond},
		Images:      imageserver.Options{Address: anyPort},
		S3:          s3server.Options{Address: anyPort},
		Registry:    registryserver.Options{Address: anyPort},
		KubeVirt: &kubevirt.Options{
			Step: 20 * time.Millisecond, Termination: 100 * time.Millisecond, Backoff: 300 * time.Millisecond, Workers: 16,
			Behaviour: w.behave.ofGuest, Admission: true, Node: true,
		},
		ServersOnly: w.real,
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, simulated.Close()) })
	w.simulated, w.web, w.behave.kubevirt = simulated, simulated.Images, simulated.KubeVirt
	w.disk = diskimage.QCOW2(16<<20, 256<<10, 1)
	if w.real {
		return
	}
	class := &snapshotv1.VolumeSnapshotClass{ObjectMeta: metav1.ObjectMeta{Name: "simulated", Annotations: map[string]string{"snapshot.storage.kubernetes.io/is-default-class": "true"}}}
	class.Driver, class.DeletionPolicy = "simulated", snapshotv1.VolumeSnapshotContentDelete
	require.NoError(t, w.client.Create(t.Context(), class))
}

// charts of all operators, in the order of their installation.
func charts() []chart.Chart { return []chart.Chart{chart.DiskSync, chart.VM, chart.Workspace} }

// values leave the operators out: they run as processes beside the cluster. See the stories of the disk-sync-operator for the fence.
func (w *world) values(ch chart.Chart) []string {
	values := []string{chart.WithoutOperator}
	if ch == chart.DiskSync {
		values = append(values, chart.WithImportOnce)
		if w.real {
			values = append(values, "slotFence.enabled=false")
		}
	}
	return values
}

// installCharts of all operators, with all their policies, and the namespace of the images.
func (w *world) installCharts(t *testing.T) {
	t.Helper()
	for _, ch := range charts() {
		require.NoError(t, ch.Install(t.Context(), w.client, w.values(ch)...))
	}
	if !w.real {
		require.NoError(t, w.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: images}}))
	}
	w.policy(t, nil)
}

// policy sets the keys that differ from those that the stories share.
func (w *world) policy(t *testing.T, differ map[string]string) {
	t.Helper()
	data := map[string]string{
		policy.KeyConcurrency: "16", policy.KeyRetryLimit: "0", policy.KeyAttemptTimeout: "10m", policy.KeyStallTimeout: "5m",
		policy.KeyAllowedSources: strings.Join(w.simulated.Sources(), "\n"), policy.KeyWorkspaceConcurrency: "64",
	}
	maps.Copy(data, differ)
	m := &corev1.ConfigMap{}
	require.NoError(t, w.client.Get(context.Background(), client.ObjectKey{Namespace: chart.DiskSync.Namespace, Name: v1alpha1.PolicyConfigMapName}, m))
	m.Data = data
	require.NoError(t, w.client.Update(context.Background(), m))
	if w.disks == nil {
		return
	}
	label := fmt.Sprintf(`concurrency="%s"`, data[policy.KeyConcurrency])
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Contains(c, metric(c, w.disks, "disksync_policy_info"), label) }, w.patience, w.poll)
}

// elects is what all operators are told, so that the next one takes over soon, and a busy machine costs nobody his lease.
func elects() []string {
	return []string{
		"--leader-elect", "--leader-elect-lease-duration=12s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=500ms", "--zap-log-level=debug",
	}
}

// start an operator with the rights of its ServiceAccount.
func (w *world) start(t *testing.T, ch chart.Chart, args ...string) *harness.Operator {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(w.logs, ch.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	operator, err := harness.StartOperator(context.Background(), harness.OperatorOptions{
		Name: ch.Name, Namespace: ch.Namespace, Kubeconfig: w.asOperator(t, ch), Log: log, Args: append(elects(), args...),
	})
	require.NoError(t, err)
	go func() { _ = operator.Wait(); _ = log.Close() }()
	return operator
}

func (w *world) startWorkspaces(t *testing.T) {
	t.Helper()
	w.workspaces = w.start(t, chart.Workspace, "--trouble-debounce="+w.debounce.String())
}

// asOperator is a kubeconfig with the rights that the chart gives the operator's ServiceAccount, and no more.
func (w *world) asOperator(t *testing.T, ch chart.Chart) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(w.cluster.Kubeconfig)
	require.NoError(t, err)
	for _, user := range config.AuthInfos {
		user.Impersonate = "system:serviceaccount:" + ch.Namespace + ":" + ch.Name
		user.ImpersonateGroups = []string{"system:serviceaccounts", "system:serviceaccounts:" + ch.Namespace, "system:authenticated"}
	}
	path := filepath.Join(t.TempDir(), ch.Name+".kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}

func (w *world) awaitReady(t *testing.T) {
	t.Helper()
	for _, operator := range []*harness.Operator{w.disks, w.machines, w.workspaces} {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			code, answer := get(c, operator.HealthURL+"/readyz")
			assert.Equal(c, http.StatusOK, code, answer)
		}, w.patience, w.poll)
	}
}

func get(t require.TestingT, url string) (code int, body string) {
	response, err := http.Get(url) //nolint:gosec,noctx // our own process
	require.NoError(t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(content)
}

// metric is the line of a metric, or the lines.
func metric(t require.TestingT, operator *harness.Operator, name string) string {
	code, body := get(t, operator.MetricsURL+"/metrics")
	require.Equal(t, http.StatusOK, code)
	var lines []string
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, name+"{") || strings.HasPrefix(line, name+" ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}
