package vmscenario

import (
	"net/http"
	"testing"

	"github.com/pelotech/open-terrain/e2e/chart"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReadiness begins without KubeVirt, on a control plane of its own.
func TestReadiness(t *testing.T) {
	if harness.FromEnv(harness.Options{}).Kubeconfig != "" {
		t.Skip("nobody's KubeVirt is taken away")
	}
	w := &world{pace: embeddedPace(), logs: logFolder(t)}
	w.connect(t, harness.Options{})
	require.NoError(t, chart.Install(t.Context(), w.client, w.diskValues()...))
	require.NoError(t, chart.VM.Install(t.Context(), w.client, chart.WithoutOperator))
	w.startDisks(t)
	w.startMachines(t)
	t.Cleanup(func() { w.disks.Kill(); w.machines.Kill() })
	namespace := w.namespace(t)
	early := w.create(t, machine(namespace, "early", image(namespace, "golden")))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		code, answer := get(c, w.machines.HealthURL+"/readyz/kinds")
		assert.Equal(c, http.StatusInternalServerError, code)
		assert.Contains(c, answer, "VirtualMachine.kubevirt.io")
		assert.Contains(c, answer, "install KubeVirt")
	}, w.patience, w.poll)
	code, _ := get(t, w.machines.HealthURL+"/healthz")
	assert.Equal(t, http.StatusOK, code, "it lives, and waits")

	crds, err := harness.KubeVirtCRDs()
	require.NoError(t, err)
	require.NoError(t, w.cluster.InstallCRDs(crds))
	w.awaitReady(t)
	w.startServers(t, "127.0.0.1")
	w.policy(t, nil)
	w.synced(t, namespace, "golden")
	w.runs(t, early)
}
