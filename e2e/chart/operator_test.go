package chart

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/pelotech/open-terrain/e2e/sim/cdi"
	"github.com/pelotech/open-terrain/e2e/sim/snapshotter"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

const operator = "disk-sync-operator"

func TestOperatorKnowsTheFlagsOfItsDeployment(t *testing.T) {
	path, err := harness.BuildOperator(t.Context(), operator)
	require.NoError(t, err)
	// flag exits with 0 for -help.
	usage, err := exec.CommandContext(t.Context(), path, "-help").CombinedOutput()
	require.NoError(t, err)

	var deployment appsv1.Deployment
	require.True(t, find(t, render(t, allOn(t, DiskSync)...), "Deployment", &deployment))
	for _, arg := range deployment.Spec.Template.Spec.Containers[0].Args {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		assert.Regexp(t, `(?m)^  -`+name+`( |$)`, string(usage), arg)
	}
}

// TestRights runs the operator as its ServiceAccount, with the chart's roles and nothing more.
func TestRights(t *testing.T) {
	ctrllog.SetLogger(logr.Discard()) // of the simulators
	ctx := t.Context()
	cluster, err := harness.Start(ctx, harness.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	c, err := cluster.Client("chart-test")
	require.NoError(t, err)
	require.NoError(t, Install(ctx, c, WithoutOperator, WithImportOnce, `policy={"retryLimit":0}`))
	_, err = cdi.Start(ctx, cluster.Config, cdi.Options{Instant: &cdi.Instant{Duration: time.Millisecond}})
	require.NoError(t, err)
	require.NoError(t, c.Create(ctx, &snapshotv1.VolumeSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{
			Name: "default", Annotations: map[string]string{"snapshot.storage.kubernetes.io/is-default-class": "true"},
		},
		Driver: "simulated", DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
	}))
	_, err = snapshotter.Start(ctx, cluster.Config, snapshotter.Options{Instant: true})
	require.NoError(t, err)

	log := &safeBuffer{}
	process, err := harness.StartOperator(ctx, harness.OperatorOptions{
		Name: operator, Kubeconfig: impersonating(t, cluster), Log: log, Args: []string{"--zap-log-level=debug"},
	})
	require.NoError(t, err)

	image := &otv1alpha1.VMDiskImage{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "blank"},
		Spec:       otv1alpha1.VMDiskImageSpec{SourceType: otv1alpha1.SourceBlank, DiskSize: resource.MustParse("1Gi")},
	}
	require.NoError(t, c.Create(ctx, image))
	succeeded := func() bool {
		return c.Get(ctx, client.ObjectKeyFromObject(image), image) == nil && image.Status.Phase == otv1alpha1.PhaseSucceeded
	}
	assert.Eventually(t, succeeded, 30*time.Second, 50*time.Millisecond, "%+v", &image.Status)
	usedAndPruned(t, c, image)

	// The end of the leadership is part of what needs rights, too.
	require.NoError(t, process.Terminate(20*time.Second))
	for line := range strings.SplitSeq(log.String(), "\n") {
		assert.NotContains(t, strings.ToLower(line), "forbidden")
	}
}

// usedAndPruned takes the image through what follows a success: its finalizer comes and goes, and it is pruned.
func usedAndPruned(t *testing.T, c client.Client, image *otv1alpha1.VMDiskImage) {
	t.Helper()
	key := client.ObjectKeyFromObject(image)
	protected := func(want bool) func() bool {
		return func() bool {
			return c.Get(t.Context(), key, image) == nil && slices.Contains(image.Finalizers, otv1alpha1.FinalizerProtection) == want
		}
	}
	require.NoError(t, claim(t, c, image, 1, "lab/web"))
	require.Eventually(t, protected(true), 30*time.Second, 50*time.Millisecond)
	require.NoError(t, claim(t, c, image, 0))
	require.Eventually(t, protected(false), 30*time.Second, 50*time.Millisecond)
	before := image.DeepCopy()
	image.Spec.UnusedTTL = &metav1.Duration{Duration: time.Second}
	require.NoError(t, c.Patch(t.Context(), image, client.MergeFrom(before)))
	isGone(t, c, image)
}

// impersonating writes a kubeconfig for the operator's ServiceAccount.
func impersonating(t *testing.T, cluster *harness.Cluster) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig)
	require.NoError(t, err)
	for _, user := range config.AuthInfos {
		user.Impersonate = "system:serviceaccount:" + Namespace + ":" + operator
		user.ImpersonateGroups = []string{"system:serviceaccounts", "system:serviceaccounts:" + Namespace, "system:authenticated"}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}

// safeBuffer takes the output of a process while a test reads it.
type safeBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
