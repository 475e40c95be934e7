package sim_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/pelotech/open-terrain/e2e/sim"
	"github.com/pelotech/open-terrain/e2e/sim/cdi"
	"github.com/pelotech/open-terrain/e2e/sim/snapshotter"
)

const patience = 15 * time.Second

// shared by all tests of the package.
var (
	cl      client.Client
	cluster *harness.Cluster
)

func run(m *testing.M) (code int, err error) {
	ctrllog.SetLogger(logr.Discard())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if cluster, err = harness.Start(ctx, harness.Options{KubeVirt: true}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	if cl, err = cluster.Client("test"); err != nil {
		return 1, err
	}
	for name, parameters := range map[string]map[string]string{
		"fast": nil, "slow": {snapshotter.ParameterReadyAfter: "300ms"}, "broken": {snapshotter.ParameterFailWith: "the storage is out of order"},
	} {
		class := &snapshotv1.VolumeSnapshotClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Driver: "simulated", DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete, Parameters: parameters}
		if name == "fast" {
			class.Annotations = map[string]string{"snapshot.storage.kubernetes.io/is-default-class": "true"}
		}
		if err := cl.Create(ctx, class); err != nil {
			return 1, err
		}
	}
	return m.Run(), nil
}

func world(t *testing.T, o sim.Options) *sim.World {
	t.Helper()
	w, err := sim.Start(context.Background(), cluster.Config, o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, w.Close()) })
	return w
}

func namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "w-"}}
	require.NoError(t, cl.Create(t.Context(), ns))
	return ns.Name
}

func blank(ns, name string) *cdiv1.DataVolume {
	return &cdiv1.DataVolume{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: cdiv1.DataVolumeSpec{
			Source:  &cdiv1.DataVolumeSource{Blank: &cdiv1.DataVolumeBlankImage{}},
			Storage: &cdiv1.StorageSpec{Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("128Mi")}}},
		},
	}
}

func snapshotOf(ns, name, claim, class string) *snapshotv1.VolumeSnapshot {
	s := &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &claim}}}
	if class != "" {
		s.Spec.VolumeSnapshotClassName = &class
	}
	return s
}

func succeeded(t *testing.T, dv *cdiv1.DataVolume) {
	t.Helper()
	require.Eventually(t, func() bool {
		require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(dv), dv))
		for _, c := range dv.Status.Conditions {
			if c.Type == cdiv1.DataVolumeBound && c.Status == corev1.ConditionTrue {
				return dv.Status.Phase == cdiv1.Succeeded
			}
		}
		return false
	}, patience, 10*time.Millisecond)
}

// await returns a snapshot when its status is as wanted.
func await(t *testing.T, s *snapshotv1.VolumeSnapshot, wanted func(*snapshotv1.VolumeSnapshotStatus) bool) *snapshotv1.VolumeSnapshotStatus {
	t.Helper()
	require.Eventually(t, func() bool {
		require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(s), s))
		return s.Status != nil && wanted(s.Status)
	}, patience, 5*time.Millisecond)
	return s.Status
}

func isReady(s *snapshotv1.VolumeSnapshotStatus) bool { return s.ReadyToUse != nil && *s.ReadyToUse }
func hasError(s *snapshotv1.VolumeSnapshotStatus) bool {
	return s.Error != nil && s.Error.Message != nil
}

func TestSnapshots(t *testing.T) {
	world(t, sim.Options{})
	ns := namespace(t)
	dv := blank(ns, "disk")
	require.NoError(t, cl.Create(t.Context(), dv))
	succeeded(t, dv)

	t.Run("of a bound claim is ready, and its content goes with it", func(t *testing.T) {
		s := snapshotOf(ns, "good", "disk", "")
		require.NoError(t, cl.Create(t.Context(), s))
		status := await(t, s, isReady)
		assert.Equal(t, int64(142270792), status.RestoreSize.Value())
		require.NotNil(t, status.BoundVolumeSnapshotContentName)
		content := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: *status.BoundVolumeSnapshotContentName}}
		require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(content), content))
		assert.Equal(t, s.UID, content.Spec.VolumeSnapshotRef.UID)
		require.NoError(t, cl.Delete(t.Context(), s))
		assert.Eventually(t, func() bool {
			return apierrors.IsNotFound(cl.Get(t.Context(), client.ObjectKeyFromObject(content), content))
		}, patience, 10*time.Millisecond)
	})
	t.Run("of a slow class is cut first and ready later", func(t *testing.T) {
		s := snapshotOf(ns, "slow", "disk", "slow")
		require.NoError(t, cl.Create(t.Context(), s))
		status := await(t, s, func(s *snapshotv1.VolumeSnapshotStatus) bool { return s.CreationTime != nil })
		assert.False(t, isReady(status))
		await(t, s, isReady)
	})
	t.Run("of a broken class shows the driver's error", func(t *testing.T) {
		s := snapshotOf(ns, "broken", "disk", "broken")
		require.NoError(t, cl.Create(t.Context(), s))
		status := await(t, s, hasError)
		assert.Regexp(t, `^Failed to check and update snapshot content: failed to take snapshot of the volume pvc-[0-9a-f-]+: "rpc error: code = Internal desc = the storage is out of order"$`, *status.Error.Message)
		assert.False(t, *status.ReadyToUse)
		assert.NotNil(t, status.BoundVolumeSnapshotContentName)
	})
	t.Run("of no claim has an error and nothing else, until the claim is there", func(t *testing.T) {
		s := snapshotOf(ns, "early", "nosuch", "")
		require.NoError(t, cl.Create(t.Context(), s))
		status := await(t, s, hasError)
		assert.Equal(t, `Failed to set default snapshot class with error failed to retrieve PVC nosuch from the lister: "persistentvolumeclaim \"nosuch\" not found"`, *status.Error.Message)
		assert.Nil(t, status.ReadyToUse)
		later := blank(ns, "nosuch")
		require.NoError(t, cl.Create(t.Context(), later))
		status = await(t, s, isReady)
		assert.Nil(t, status.Error)
	})
}

func TestUnboundClaimIsNotSnapshotted(t *testing.T) {
	world(t, sim.Options{CDI: cdi.Options{Behaviour: func(*cdiv1.DataVolume) cdi.Behaviour { return cdi.Behaviour{StopAt: cdiv1.ImportInProgress} }}})
	ns := namespace(t)
	require.NoError(t, cl.Create(t.Context(), blank(ns, "disk")))
	require.Eventually(t, func() bool {
		return cl.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "disk"}, &corev1.PersistentVolumeClaim{}) == nil
	}, patience, 10*time.Millisecond)
	s := snapshotOf(ns, "s", "disk", "fast")
	require.NoError(t, cl.Create(t.Context(), s))
	status := await(t, s, hasError)
	assert.Contains(t, *status.Error.Message, "the PVC disk is not yet bound to a PV, will not attempt to take a snapshot")
	assert.False(t, *status.ReadyToUse)
}

func TestInstantWorld(t *testing.T) {
	const n = 100
	duration := 200 * time.Millisecond
	world(t, sim.Options{CDI: cdi.Options{Instant: &cdi.Instant{Duration: duration}}, Snapshotter: snapshotter.Options{Instant: true}})
	ns := namespace(t)
	began := time.Now()
	for i := range n {
		require.NoError(t, cl.Create(t.Context(), blank(ns, "d"+strconv.Itoa(i))))
	}
	dv := blank(ns, "d"+strconv.Itoa(n-1))
	created := time.Now()
	succeeded(t, dv)
	assert.GreaterOrEqual(t, time.Since(created), duration-20*time.Millisecond)
	assert.Less(t, time.Since(began), patience)
	s := snapshotOf(ns, "s", dv.Name, "")
	require.NoError(t, cl.Create(t.Context(), s))
	await(t, s, isReady)
	var all corev1.PersistentVolumeClaimList
	require.NoError(t, cl.List(t.Context(), &all, client.InNamespace(ns)))
	assert.Len(t, all.Items, n)
	t.Logf("%d volumes in %s", n, time.Since(began))

	require.NoError(t, cl.Delete(t.Context(), dv))
	assert.Eventually(t, func() bool {
		return apierrors.IsNotFound(cl.Get(t.Context(), client.ObjectKeyFromObject(dv), &corev1.PersistentVolumeClaim{}))
	}, patience, 10*time.Millisecond)
}
