package wsscenario

import (
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// killed again and again: while workspaces are made, changed and deleted.
func killed(t *testing.T, w *world) {
	farm := w.namespace(t)
	i := w.synced(t, farm, "golden")
	again := func() {
		w.workspaces.Kill()
		w.startWorkspaces(t)
	}
	first := w.create(t, workspace(machine("database", i), w.container("web")))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: first.ChildNamespace()}}
	w.eventually(t, namespace, "is there", func() bool { return true })
	again()
	second := w.create(t, workspace(machine("database", i), w.container("web")))
	w.becomesReady(t, first)
	again()
	w.becomesReady(t, second)
	w.counts(t, i, 2)

	w.change(t, first, w.container("web", env("A", "b")), without("database"), w.container("cache"))
	again()
	w.becomesReady(t, first)
	w.counts(t, i, 1)

	require.NoError(t, w.client.Delete(t.Context(), first.DeepCopy()))
	again()
	require.NoError(t, w.client.Delete(t.Context(), second.DeepCopy()))
	w.workspaces.Kill()
	third := w.create(t, workspace(machine("database", i)))
	require.NoError(t, w.client.Delete(t.Context(), third.DeepCopy())) // it has no finalizer yet
	w.startWorkspaces(t)
	for _, ws := range []*v1alpha1.Workspace{first, second, third} {
		w.gone(t, ws.DeepCopy())
		w.nothingLeft(t, ws)
	}
	w.awaitReady(t)
	w.counts(t, i, 0)
}
