package history_test

import (
	"context"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1beta1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestRecorder(t *testing.T) {
	cluster, err := harness.Start(t.Context(), harness.Options{Controllers: []string{}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	c, err := cluster.Client("history-test")
	require.NoError(t, err)

	recorder, err := history.Start(t.Context(), history.Options{Endpoint: cluster.EtcdURL, Scheme: harness.NewScheme()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, recorder.Stop()) })
	start := recorder.Revision()

	objects := someObjects()
	for _, object := range objects {
		require.NoError(t, c.Create(t.Context(), object), "%T", object)
	}
	now, err := recorder.Sync(t.Context())
	require.NoError(t, err)

	t.Run("every object comes as its own type, with the resourceVersion that the API server gave it", func(t *testing.T) {
		state := recorder.At(now)
		for key, object := range objects {
			recorded := state[key]
			require.NotNil(t, recorded, "%v", key)
			assert.IsType(t, object, recorded)
			assert.Equal(t, object.GetUID(), recorded.GetUID())
			assert.Equal(t, object.GetResourceVersion(), recorded.GetResourceVersion())
		}
	})
	t.Run("the state before is without them", func(t *testing.T) {
		state := recorder.At(start)
		for key := range objects {
			assert.NotContains(t, state, key)
		}
		assert.Contains(t, state, history.Key{Resource: "namespaces", Name: "default"}, "what was there at the start")
	})
	t.Run("revisions rise without end", func(t *testing.T) {
		last := start
		for _, event := range recorder.All() {
			assert.Greater(t, event.Revision, last)
			last = event.Revision
		}
	})
	t.Run("a change and a deletion come with what was there before", func(t *testing.T) {
		changeAndDelete(t, c, recorder)
	})
	t.Run("waiting for what never comes ends with the context", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := recorder.Wait(ctx, 0, func(history.Event) bool { return false })
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func changeAndDelete(t *testing.T, c client.Client, recorder *history.Recorder) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	key := history.Key{Resource: "configmaps", Namespace: "default", Name: "changing"}
	of := func(test func(history.Event) bool) func(history.Event) bool {
		return func(e history.Event) bool { return e.Key == key && test(e) }
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	require.NoError(t, c.Create(ctx, config))
	created, err := recorder.Wait(ctx, 0, of(history.Event.Created))
	require.NoError(t, err)

	config.Data = map[string]string{"a": "b"}
	require.NoError(t, c.Update(ctx, config))
	require.NoError(t, c.Delete(ctx, config))
	changed, err := recorder.Wait(ctx, created.Revision, of(func(history.Event) bool { return true }))
	require.NoError(t, err)
	after, ok := history.As[*corev1.ConfigMap](changed)
	require.True(t, ok)
	before, ok := history.PrevAs[*corev1.ConfigMap](changed)
	require.True(t, ok)
	assert.Equal(t, "ConfigMap", changed.Kind)
	assert.Equal(t, map[string]string{"a": "b"}, after.Data)
	assert.Empty(t, before.Data)

	deleted, err := recorder.Wait(ctx, changed.Revision, of(func(e history.Event) bool { return e.Deleted }))
	require.NoError(t, err)
	assert.Nil(t, deleted.Object)
	assert.Equal(t, "ConfigMap", deleted.Kind)
	assert.Same(t, changed.Object, deleted.Prev)
}

func someObjects() map[history.Key]client.Object {
	meta := metav1.ObjectMeta{Namespace: "default", Name: "a"}
	key := func(group, resource string) history.Key {
		return history.Key{Group: group, Resource: resource, Namespace: "default", Name: "a"}
	}
	storage := resource.MustParse("1Gi")
	url, claim := "http://images.example/a.qcow2", "a"
	requests := corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: storage}}
	return map[history.Key]client.Object{
		key("", "leases"):     &coordinationv1.Lease{ObjectMeta: meta},
		key("", "configmaps"): &corev1.ConfigMap{ObjectMeta: meta},
		key("", "pods"): &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "importer", Image: "importer"}},
		}},
		key("", "persistentvolumeclaims"): &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: requests,
		}},
		{Resource: "storageclasses", Name: "a"}: &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: "a"}, Provisioner: "example",
		},
		key("pelotech.ot", "vmdiskimages"): &otv1alpha1.VMDiskImage{ObjectMeta: meta, Spec: otv1alpha1.VMDiskImageSpec{
			URL: url, SourceType: otv1alpha1.SourceHTTP, DiskSize: storage,
		}},
		key("cdi.kubevirt.io", "datavolumes"): &cdiv1beta1.DataVolume{ObjectMeta: meta, Spec: cdiv1beta1.DataVolumeSpec{
			Source:  &cdiv1beta1.DataVolumeSource{HTTP: &cdiv1beta1.DataVolumeSourceHTTP{URL: url}},
			Storage: &cdiv1beta1.StorageSpec{Resources: requests},
		}},
		key("snapshot.storage.k8s.io", "volumesnapshots"): &snapshotv1.VolumeSnapshot{ObjectMeta: meta, Spec: snapshotv1.VolumeSnapshotSpec{
			Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &claim},
		}},
	}
}
