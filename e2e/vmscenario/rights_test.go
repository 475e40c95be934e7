package vmscenario

import (
	"path/filepath"
	"testing"

	"github.com/pelotech/open-terrain/e2e/chart"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
)

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
