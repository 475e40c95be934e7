package wsscenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// proposal is the example of the proposal, as it stands there.
func proposal(t *testing.T) string {
	t.Helper()
	root, err := harness.Root()
	require.NoError(t, err)
	manifest, err := os.ReadFile(filepath.Join(root, "apis", "ot", "v1alpha1", "testdata", "workspace.yaml"))
	require.NoError(t, err)
	return string(manifest)
}

// example applies it twice: its images are there, and then they are made from templates.
func example(t *testing.T, w *world) {
	names := []string{"database-vmdi", "analytics-vmdi"}
	for _, name := range names {
		w.synced(t, images, name)
	}
	w.applied(t, proposal(t))
	for _, name := range names {
		i := image(images, name)
		w.counts(t, i, 0)
		require.NoError(t, w.client.Delete(t.Context(), i))
		w.gone(t, image(images, name))
	}

	templated := proposal(t)
	for _, name := range names {
		line := `VMDiskImageName: "` + name + `"`
		require.Contains(t, templated, line)
		templated = strings.Replace(templated, line, line+"\n        vmDiskImageTemplate: {sourceType: blank, diskSize: 32Mi}", 1)
	}
	w.applied(t, templated)
	for _, name := range names {
		i := image(images, name)
		w.counts(t, i, 0)
		w.isThere(t, i) // an image that a template made is nobody's
		require.NoError(t, w.client.Delete(t.Context(), i))
	}
}

// applied becomes Ready, says so, and goes.
func (w *world) applied(t *testing.T, manifest string) {
	t.Helper()
	ws := &v1alpha1.Workspace{}
	ws.Name = "data-analysis-environment-1"
	t.Cleanup(func() {
		if t.Failed() {
			w.show(t, ws.ChildNamespace())
		}
	})
	_, err := w.cluster.Kubectl(t.Context(), manifest, "apply", "-f", "-")
	require.NoError(t, err)
	_, err = w.cluster.Kubectl(t.Context(), "", "wait", "--for=condition=Ready", "otws/"+ws.Name, "--timeout", w.patience.String())
	require.NoError(t, err)
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(ws), ws))
	w.becomesReady(t, ws)
	assert.Equal(t, "database-vm", ws.Status.ResourceStatus.VirtualMachines[0].Name)
	assert.Equal(t, v1alpha1.VirtualMachineReady, ws.Status.ResourceStatus.VirtualMachines[0].Phase)
	assert.Equal(t, "api-server", ws.Status.ResourceStatus.Containers[0].Name)
	out, err := w.cluster.Kubectl(t.Context(), "", "get", "otws", ws.Name)
	require.NoError(t, err)
	assert.Regexp(t, `data-analysis-environment-1 +Ready +2/2 +1/1 +True `, out)
	w.remove(t, ws)
}
