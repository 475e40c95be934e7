package scenario

import (
	"net/http"
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/chart"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestReadiness begins without CDI and without the snapshotter, on a control plane of its own.
func TestReadiness(t *testing.T) {
	if harness.FromEnv(harness.Options{}).Kubeconfig != "" {
		t.Skip("nobody's CDI is taken away")
	}
	w := &world{pace: embeddedPace(), log: operatorLog(t)}
	w.connect(t, harness.Options{CRDs: []string{}, Controllers: []string{}})
	require.NoError(t, chart.Install(t.Context(), w.client, chart.WithoutOperator))
	w.startOperator(t)
	t.Cleanup(func() { w.operator.Kill() })
	early := w.create(t, &v1alpha1.VMDiskImage{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "early"},
		Spec:       v1alpha1.VMDiskImageSpec{SourceType: v1alpha1.SourceBlank, DiskSize: resource.MustParse("32Mi")},
	})
	w.unready(t, "DataVolume", "CDI")

	crds, err := harness.CDICRDs()
	require.NoError(t, err)
	require.NoError(t, w.cluster.InstallCRDs(crds))
	w.unready(t, "VolumeSnapshot", "external-snapshotter")

	files, err := harness.SnapshotCRDs(t.Context())
	require.NoError(t, err)
	require.NoError(t, w.cluster.InstallCRDs(files...))
	w.awaitReady(t)
	w.startServers(t, "127.0.0.1")
	w.policy(t, nil)
	w.becomes(t, early, v1alpha1.PhaseSucceeded)
	w.ready(t, w.image("default", "first"))
}

// unready waits for a readiness check that fails with those words.
func (w *world) unready(t *testing.T, words ...string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		code, answer := get(c, w.operator.HealthURL+"/readyz/kinds")
		assert.Equal(c, http.StatusInternalServerError, code)
		for _, word := range words {
			assert.Contains(c, answer, word)
		}
		code, _ = get(c, w.operator.HealthURL+"/readyz")
		assert.Equal(c, http.StatusInternalServerError, code)
	}, w.patience, w.poll)
	code, _ := get(t, w.operator.HealthURL+"/healthz")
	assert.Equal(t, http.StatusOK, code, "it lives, and waits")
}
