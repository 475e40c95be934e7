package vmscenario

import (
	"context"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/chart"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// labelTest marks what the stories make on a cluster that is not theirs.
const labelTest = "open-terrain-e2e"

// claimCluster makes the operators' namespaces, and takes away what the stories made when they are over. A cluster where an
// operator is installed is refused: the stories change its policy and remove its chart.
func (w *world) claimCluster(t *testing.T) {
	t.Helper()
	for _, ch := range []chart.Chart{chart.DiskSync, chart.VM} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ch.Namespace, Labels: map[string]string{labelTest: "operator"}}}
		err := w.client.Create(t.Context(), namespace)
		if apierrors.IsAlreadyExists(err) { // a run was broken off
			require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace))
			require.Contains(t, namespace.Labels, labelTest, "the namespace %s was not made by these tests: they would change what is installed there", ch.Namespace)
			continue
		}
		require.NoError(t, err)
	}
	w.unprotect(t.Context(), t)
	w.clearStories(t.Context(), t)
	t.Cleanup(func() { w.clear(t) })
}

// unprotect takes off the finalizers, and the counts that a policy goes by, where the operators that would do it are gone:
// at the end, and after a run that was broken off.
func (w *world) unprotect(ctx context.Context, t *testing.T) {
	t.Helper()
	namespaces := &corev1.NamespaceList{}
	require.NoError(t, w.client.List(ctx, namespaces, client.MatchingLabels{labelTest: "story"}))
	for _, namespace := range namespaces.Items {
		for _, list := range []client.ObjectList{&v1alpha1.VMDiskImageList{}, &cdiv1.DataVolumeList{}} {
			require.NoError(t, w.client.List(ctx, list, client.InNamespace(namespace.Name)))
			require.NoError(t, meta.EachListItem(list, func(o runtime.Object) error {
				object := o.(client.Object)
				if _, image := object.(*v1alpha1.VMDiskImage); image {
					none := client.RawPatch(types.MergePatchType, []byte(`{"status":{"references":null}}`))
					if err := w.client.Status().Patch(ctx, object, none); err != nil {
						return client.IgnoreNotFound(err)
					}
				}
				none := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
				return client.IgnoreNotFound(w.client.Patch(ctx, object, none))
			}))
		}
	}
}

// clear removes first the namespaces of the stories, while the operators' makers can still tidy up, then the charts.
func (w *world) clear(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), w.patience)
	defer cancel()
	w.unprotect(ctx, t) // the last story has stopped the operators
	w.clearStories(ctx, t)
	for ch, values := range map[chart.Chart][]string{chart.VM: {chart.WithoutOperator}, chart.DiskSync: w.diskValues()} {
		manifests, err := ch.Render(ctx, values...)
		require.NoError(t, err)
		objects, err := chart.Objects(manifests)
		require.NoError(t, err)
		for _, object := range objects {
			assert.NoError(t, client.IgnoreNotFound(w.client.Delete(ctx, object)), "%s %s", object.GetKind(), object.GetName())
		}
		assert.NoError(t, client.IgnoreNotFound(w.client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ch.Namespace}})))
	}
}

// clearStories returns when the namespaces of stories are gone, those of a run that was broken off, too.
func (w *world) clearStories(ctx context.Context, t *testing.T) {
	t.Helper()
	assert.EventuallyWithT(t, func(c *assert.CollectT) {
		all := &corev1.NamespaceList{}
		require.NoError(c, w.client.List(ctx, all, client.MatchingLabels{labelTest: "story"}))
		for i := range all.Items {
			_ = w.client.Delete(ctx, &all.Items[i]) // again when it is not gone at the next look
		}
		assert.Empty(c, all.Items)
	}, w.patience, time.Second, "the namespaces of the stories go")
}
