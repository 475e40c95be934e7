package sim_test

import (
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pelotech/open-terrain/e2e/sim"
	"github.com/pelotech/open-terrain/e2e/sim/cdi"
)

func gone(t *testing.T, o client.Object) {
	t.Helper()
	require.Eventually(t, func() bool {
		return apierrors.IsNotFound(cl.Get(t.Context(), client.ObjectKeyFromObject(o), o))
	}, patience, 10*time.Millisecond, "%T %s goes", o, o.GetName())
}

func contentOf(t *testing.T, s *snapshotv1.VolumeSnapshot) *snapshotv1.VolumeSnapshotContent {
	t.Helper()
	content := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: *s.Status.BoundVolumeSnapshotContentName}}
	require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(content), content))
	return content
}

// taken makes a snapshot and returns when it is ready and its finalizers are there.
func taken(t *testing.T, ns, name, claim, class string) *snapshotv1.VolumeSnapshot {
	t.Helper()
	s := snapshotOf(ns, name, claim, class)
	require.NoError(t, cl.Create(t.Context(), s))
	require.Eventually(t, func() bool {
		require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(s), s))
		return s.Status != nil && isReady(s.Status) && len(s.Finalizers) > 0
	}, patience, 5*time.Millisecond)
	return s
}

func TestDeletions(t *testing.T) {
	world(t, sim.Options{CDI: cdi.Options{Behaviour: func(dv *cdiv1.DataVolume) cdi.Behaviour {
		if dv.Name == "held" {
			return cdi.Behaviour{StopAt: cdiv1.CloneFromSnapshotSourceInProgress}
		}
		return cdi.Behaviour{}
	}}})
	ns := namespace(t)
	dv := blank(ns, "disk")
	require.NoError(t, cl.Create(t.Context(), dv))
	succeeded(t, dv)

	t.Run("a content that is deleted by hand stays, and nobody notices, until its finalizer is taken away", func(t *testing.T) {
		s := taken(t, ns, "robbed", "disk", "slow")
		content := contentOf(t, s)
		require.NoError(t, cl.Delete(t.Context(), content))
		time.Sleep(200 * time.Millisecond)
		content = contentOf(t, s)
		assert.NotNil(t, content.DeletionTimestamp)
		require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(s), s))
		assert.True(t, isReady(s.Status))

		content.Finalizers = nil
		require.NoError(t, cl.Update(t.Context(), content))
		status := await(t, s, hasError)
		assert.Equal(t, "VolumeSnapshotContent is missing", *status.Error.Message)
		assert.False(t, isReady(status))
		status = await(t, s, isReady)
		assert.Nil(t, status.Error)
		assert.NotEqual(t, content.UID, contentOf(t, s).UID, "taken again, of the claim")
		require.NoError(t, cl.Delete(t.Context(), s))
		gone(t, content)
		gone(t, s)
	})
	t.Run("a content with the policy Retain outlives its snapshot", func(t *testing.T) {
		class := &snapshotv1.VolumeSnapshotClass{ObjectMeta: metav1.ObjectMeta{Name: "retain"}, Driver: "simulated", DeletionPolicy: snapshotv1.VolumeSnapshotContentRetain}
		require.NoError(t, cl.Create(t.Context(), class))
		var s *snapshotv1.VolumeSnapshot
		require.Eventually(t, func() bool {
			s = snapshotOf(ns, "retained", "disk", "retain")
			return cl.Create(t.Context(), s) == nil
		}, patience, 10*time.Millisecond)
		await(t, s, isReady)
		content := contentOf(t, s)
		require.NoError(t, cl.Delete(t.Context(), s))
		gone(t, s)
		require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(content), content))
		assert.Nil(t, content.DeletionTimestamp)
	})
	t.Run("a snapshot goes when no claim of its namespace is being restored from it", func(t *testing.T) {
		s := taken(t, ns, "source", "disk", "")
		clone := blank(ns, "held")
		clone.Spec.Source = &cdiv1.DataVolumeSource{Snapshot: &cdiv1.DataVolumeSourceSnapshot{Namespace: ns, Name: s.Name}}
		clone.Spec.Storage = &cdiv1.StorageSpec{}
		require.NoError(t, cl.Create(t.Context(), clone))
		require.Eventually(t, func() bool {
			var all corev1.PersistentVolumeClaimList
			require.NoError(t, cl.List(t.Context(), &all, client.InNamespace(ns)))
			for _, c := range all.Items {
				if c.Spec.DataSource != nil && c.Spec.DataSource.Name == s.Name {
					return true
				}
			}
			return false
		}, patience, 10*time.Millisecond)
		require.NoError(t, cl.Delete(t.Context(), s))
		time.Sleep(300 * time.Millisecond)
		require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(s), s))
		assert.NotNil(t, s.DeletionTimestamp)
		contentOf(t, s)
		require.NoError(t, cl.Delete(t.Context(), clone))
		gone(t, s)
	})
}

func TestAClaimThatIsDeletedInAnInstantWorldIsImportedAgain(t *testing.T) {
	world(t, sim.Options{CDI: cdi.Options{Instant: &cdi.Instant{Duration: 300 * time.Millisecond}}})
	ns := namespace(t)
	dv := blank(ns, "disk")
	require.NoError(t, cl.Create(t.Context(), dv))
	succeeded(t, dv)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "disk"}}
	require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
	former := claim.UID
	require.NoError(t, cl.Delete(t.Context(), claim))
	require.Eventually(t, func() bool {
		require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(dv), dv))
		return dv.Status.Phase == cdiv1.ImportScheduled
	}, patience, 5*time.Millisecond)
	succeeded(t, dv)
	require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
	assert.NotEqual(t, former, claim.UID)

	clone := blank(ns, "clone")
	clone.Spec.Source = &cdiv1.DataVolumeSource{PVC: &cdiv1.DataVolumeSourcePVC{Namespace: ns, Name: "disk"}}
	clone.Spec.Storage = &cdiv1.StorageSpec{}
	require.NoError(t, cl.Create(t.Context(), clone))
	succeeded(t, clone)
}
