package scenario

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
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
	"github.com/pelotech/open-terrain/e2e/sim/registryserver"
	"github.com/pelotech/open-terrain/e2e/sim/s3server"
	"github.com/pelotech/open-terrain/e2e/sim/snapshotter"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	operatorName = "disk-sync-operator"
	// slowClass is a class of snapshots that are not ready at once; on a control plane of our own only.
	slowClass = "simulated-slow"
)

// pace is how fast a backend is.
type pace struct {
	// patience is how long to wait for anything; poll is how often to look.
	patience, poll time.Duration
	// slots are for the stories that run beside each other.
	slots int
	// stall is a stallTimeout that a good import does not reach on a busy machine.
	stall time.Duration
	// backoff is the retryBackoffDuration.
	backoff time.Duration
	// payload is the size of the test image's data in bytes.
	payload int
}

func embeddedPace() pace {
	return pace{patience: 90 * time.Second, poll: 50 * time.Millisecond, slots: 32, stall: 5 * time.Second, backoff: 300 * time.Millisecond, payload: 512 << 10}
}

func realPace() pace {
	return pace{patience: 10 * time.Minute, poll: 250 * time.Millisecond, slots: 4, stall: 45 * time.Second, backoff: time.Second, payload: 2 << 20}
}

// world is a cluster with the operator, and servers of images that its importers reach.
type world struct {
	pace
	// real says that the cluster existed before, with the real CDI.
	real    bool
	cluster *harness.Cluster
	client  client.WithWatch
	log     io.Writer
	// operator is the process that runs now.
	operator *harness.Operator

	disk     diskimage.Image
	web, tls *imageserver.Server
	bucket   *s3server.Server
	registry *registryserver.Server
	// simulated are those servers but tls, and the simulators.
	simulated *sim.World
	// behave is how the simulator of CDI treats single DataVolumes.
	behave behaviours
}

// newWorld brings up all of it, and takes it down when the test is over.
func newWorld(t *testing.T) *world {
	t.Helper()
	began := time.Now()
	w := &world{pace: embeddedPace(), real: os.Getenv("OT_E2E") == "existing"}
	address, options := "127.0.0.1", harness.FromEnv(harness.Options{Audit: true})
	if w.real {
		w.pace, options.CRDs = realPace(), []string{} // those of the chart
		address = os.Getenv("OT_E2E_ADDRESS")
		require.NotEmpty(t, address, "OT_E2E_ADDRESS: an address of this machine that pods reach")
	}
	w.connect(t, options)
	if w.real {
		w.claimCluster(t)
	}
	w.startServers(t, address)
	require.NoError(t, chart.Install(t.Context(), w.client, chartValues(w)...))
	w.log = operatorLog(t)
	w.startOperator(t)
	t.Cleanup(func() { w.operator.Kill() })
	w.awaitReady(t)
	t.Logf("all was there after %s", time.Since(began).Round(time.Millisecond))
	return w
}

func (w *world) connect(t *testing.T, options harness.Options) {
	t.Helper()
	cluster, err := harness.Start(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	w.cluster = cluster
	w.client, err = cluster.Client("scenario")
	require.NoError(t, err)
}

// startServers runs the servers of images and, on a control plane of our own, the simulators.
func (w *world) startServers(t *testing.T, address string) {
	t.Helper()
	anyPort := address + ":0"
	simulated, err := sim.Start(context.Background(), w.cluster.Config, sim.Options{
		CDI: cdi.Options{
			Step: 20 * time.Millisecond, ProgressInterval: 200 * time.Millisecond, Termination: 50 * time.Millisecond, Dir: t.TempDir(), Workers: 16,
			Behaviour: w.behave.of, Webhook: true,
		},
		Snapshotter: snapshotter.Options{ReadyAfter: 50 * time.Millisecond},
		Images:      imageserver.Options{Address: anyPort},
		S3:          s3server.Options{Address: anyPort},
		Registry:    registryserver.Options{Address: anyPort, TLS: true},
		ServersOnly: w.real,
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, simulated.Close()) })
	w.simulated, w.web, w.bucket, w.registry = simulated, simulated.Images, simulated.S3, simulated.Registry
	w.behave.cdi = simulated.CDI
	w.tls, err = imageserver.Start(imageserver.Options{Address: anyPort, TLS: true})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, w.tls.Close()) })
	w.disk = diskimage.QCOW2(16<<20, w.payload, 1)
	require.NoError(t, w.registry.PutDisk(t.Context(), "images/disk:v1", "disk/disk.qcow2", w.disk.Bytes))
	if !w.real {
		w.snapshotClasses(t)
	}
}

// snapshotClasses are the default one of the control plane of our own, and one that takes its time.
func (w *world) snapshotClasses(t *testing.T) {
	t.Helper()
	for _, class := range []*snapshotv1.VolumeSnapshotClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "simulated", Annotations: map[string]string{"snapshot.storage.kubernetes.io/is-default-class": "true"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: slowClass}, Parameters: map[string]string{snapshotter.ParameterReadyAfter: "1500ms"}},
	} {
		class.Driver, class.DeletionPolicy = "simulated", snapshotv1.VolumeSnapshotContentDelete
		require.NoError(t, w.client.Create(t.Context(), class))
	}
}

// operatorLog is the file OT_E2E_OPERATOR_LOG, or nowhere.
func operatorLog(t *testing.T) io.Writer {
	t.Helper()
	path := os.Getenv("OT_E2E_OPERATOR_LOG")
	if path == "" {
		return io.Discard
	}
	file, err := os.Create(path)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, file.Close()) })
	return file
}

// startOperator runs the operator that was built, beside the cluster and with leader election.
func (w *world) startOperator(t *testing.T) {
	t.Helper()
	w.startOperatorWith(t, w.cluster.Kubeconfig)
}

func (w *world) startOperatorWith(t *testing.T, kubeconfig string) {
	t.Helper()
	operator, err := harness.StartOperator(context.Background(), harness.OperatorOptions{
		Name: operatorName, Kubeconfig: kubeconfig, Log: w.log,
		Args: []string{
			"--leader-elect", "--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=500ms",
			"--progress-interval=1s", "--zap-log-level=debug",
		},
	})
	require.NoError(t, err)
	w.operator = operator // it may outlive the story that starts it
}

func (w *world) awaitReady(t *testing.T) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		code, answer := get(c, w.operator.HealthURL+"/readyz")
		assert.Equal(c, http.StatusOK, code, answer)
	}, w.patience, w.poll)
}

func get(t require.TestingT, url string) (code int, body string) {
	response, err := http.Get(url) //nolint:gosec,noctx // our own process
	require.NoError(t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(content)
}

func sharedPolicy(w *world) map[string]string {
	return map[string]string{
		policy.KeyConcurrency: fmt.Sprint(w.slots), policy.KeyRetryLimit: "2", policy.KeyRetryBackoff: w.backoff.String(),
		policy.KeyAttemptTimeout: "10m", policy.KeyStallTimeout: "5m",
		policy.KeyDefaultDiskSize: defaultSize, policy.KeyDefaultSecretRef: defaultSecret,
		policy.KeyAllowedSources: strings.Join(w.sources(), "\n"),
	}
}

// policy sets the keys that differ from those of the shared policy, and returns when the operator has taken them in.
func (w *world) policy(t *testing.T, data map[string]string) {
	t.Helper()
	whole := sharedPolicy(w)
	maps.Copy(whole, data)
	w.writePolicy(t, whole)
	label := fmt.Sprintf(`concurrency="%s"`, whole[policy.KeyConcurrency])
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		info := w.metric(c, "disksync_policy_info")
		assert.Contains(c, info, label)
		assert.Contains(c, info, fmt.Sprintf(`retry_limit="%s"`, whole[policy.KeyRetryLimit]))
		assert.Contains(c, info, fmt.Sprintf(`retry_backoff="%s"`, whole[policy.KeyRetryBackoff]))
		assert.Equal(c, "disksync_policy_valid 1", w.metric(c, "disksync_policy_valid"))
	}, w.patience, w.poll)
}

func (w *world) writePolicy(t *testing.T, data map[string]string) {
	t.Helper()
	key := client.ObjectKey{Namespace: harness.DefaultNamespace, Name: v1alpha1.PolicyConfigMapName}
	m := &corev1.ConfigMap{}
	require.NoError(t, w.client.Get(t.Context(), key, m))
	m.Data = data
	require.NoError(t, w.client.Update(t.Context(), m))
}

// metric is the line of a metric, or the lines, as the operator shows them.
func (w *world) metric(t require.TestingT, name string) string {
	code, body := get(t, w.operator.MetricsURL+"/metrics")
	require.Equal(t, http.StatusOK, code)
	var lines []string
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, name+"{") || strings.HasPrefix(line, name+" ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}
