package harness_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheBuiltOperatorBecomesReady(t *testing.T) {
	cluster := start(t, harness.Options{Controllers: []string{"*"}})
	c, err := cluster.Client("harness-test")
	require.NoError(t, err)
	require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: harness.DefaultNamespace}}))
	log, err := os.Create(filepath.Join(cluster.Dir, "logs", "operator.log"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, log.Close()) })

	began := time.Now()
	path, err := harness.BuildOperator(t.Context(), "disk-sync-operator")
	require.NoError(t, err)
	t.Logf("built in %s", time.Since(began).Round(10*time.Millisecond))
	operator, err := harness.StartOperator(t.Context(), harness.OperatorOptions{
		Name: "disk-sync-operator", Path: path, Kubeconfig: cluster.Kubeconfig, Log: log,
	})
	require.NoError(t, err)
	t.Cleanup(operator.Kill)

	began = time.Now()
	if !assert.EventuallyWithT(t, func(collect *assert.CollectT) {
		for _, url := range []string{operator.HealthURL + "/readyz", operator.MetricsURL + "/metrics"} {
			response, err := http.Get(url)
			if assert.NoError(collect, err) {
				assert.Equal(collect, http.StatusOK, response.StatusCode, url)
				assert.NoError(collect, response.Body.Close())
			}
		}
	}, 30*time.Second, 50*time.Millisecond) {
		content, _ := os.ReadFile(log.Name())
		t.Log(string(content))
	}
	t.Logf("ready after %s", time.Since(began).Round(10*time.Millisecond))
	assert.NoError(t, operator.Terminate(10*time.Second))
}
