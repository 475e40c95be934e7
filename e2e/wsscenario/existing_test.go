package wsscenario

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/chart"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// labelTest marks what the stories make on a cluster that is not theirs.
const labelTest = "open-terrain-e2e"

// claimCluster makes the namespaces of the operators and of the images, and takes away what the stories made when they are over.
// A cluster where an operator is installed is refused: the stories change its policy and remove its chart.
func (w *world) claimCluster(t *testing.T) {
	t.Helper()
	for _, name := range []string{chart.DiskSync.Namespace, chart.VM.Namespace, chart.Workspace.Namespace, images} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{labelTest: "operator"}}}
		err := w.client.Create(t.Context(), namespace)
		if apierrors.IsAlreadyExists(err) { // a run was broken off
			require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace))
			require.Contains(t, namespace.Labels, labelTest, "the namespace %s was not made by these tests: they would change what is installed there", name)
			continue
		}
		require.NoError(t, err)
	}
	t.Cleanup(func() { w.clear(t) })
}

// clear removes first what the stories made, while the operators' makers can still tidy up, then the charts.
func (w *world) clear(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), w.patience)
	defer cancel()
	w.clearStories(ctx, t)
	for _, ch := range slices.Backward(charts()) {
		manifests, err := ch.Render(ctx, w.values(ch)...)
		require.NoError(t, err)
		objects, err := chart.Objects(manifests)
		require.NoError(t, err)
		for _, object := range objects {
			assert.NoError(t, client.IgnoreNotFound(w.client.Delete(ctx, object)), "%s %s", object.GetKind(), object.GetName())
		}
		assert.NoError(t, client.IgnoreNotFound(w.client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ch.Namespace}})))
	}
	assert.NoError(t, client.IgnoreNotFound(w.client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: images}})))
}

// clearStories returns when the workspaces and the namespaces of stories are gone.
func (w *world) clearStories(ctx context.Context, t *testing.T) {
	t.Helper()
	assert.EventuallyWithT(t, func(c *assert.CollectT) {
		workspaces, namespaces := &v1alpha1.WorkspaceList{}, &corev1.NamespaceList{}
		require.NoError(c, w.client.List(ctx, workspaces, client.MatchingLabels{labelTest: "story"}))
		for i := range workspaces.Items {
			_ = w.client.Delete(ctx, &workspaces.Items[i]) // again when it is not gone at the next look
		}
		assert.Empty(c, workspaces.Items)
		require.NoError(c, w.client.List(ctx, namespaces, client.MatchingLabels{labelTest: "story"}))
		for i := range namespaces.Items {
			_ = w.client.Delete(ctx, &namespaces.Items[i])
		}
		assert.Empty(c, namespaces.Items)
	}, w.patience, time.Second, "what the stories made goes")
}
