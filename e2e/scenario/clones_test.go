package scenario

import (
	"context"
	"sync"
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/sim/cdi"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// behaviours say how the simulator of CDI treats a DataVolume, by namespace and name. A real CDI does not ask.
type behaviours struct {
	cdi *cdi.Simulator

	mu  sync.Mutex
	all map[client.ObjectKey]cdi.Behaviour
}

func (b *behaviours) of(dv *cdiv1.DataVolume) cdi.Behaviour {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all[client.ObjectKeyFromObject(dv)]
}

func (b *behaviours) set(namespace, name string, behaviour cdi.Behaviour) {
	b.mu.Lock()
	if b.all == nil {
		b.all = map[client.ObjectKey]cdi.Behaviour{}
	}
	b.all[client.ObjectKey{Namespace: namespace, Name: name}] = behaviour
	b.mu.Unlock()
	if b.cdi != nil {
		b.cdi.Changed()
	}
}

func (w *world) ofSnapshot(image *v1alpha1.VMDiskImage) cdiv1.DataVolumeSource {
	return cdiv1.DataVolumeSource{Snapshot: &cdiv1.DataVolumeSourceSnapshot{Namespace: image.Namespace, Name: image.Status.Artifact.Snapshot}}
}

func (w *world) ofClaim(image *v1alpha1.VMDiskImage) cdiv1.DataVolumeSource {
	return cdiv1.DataVolumeSource{PVC: &cdiv1.DataVolumeSourcePVC{Namespace: image.Namespace, Name: image.Status.Artifact.DataVolume}}
}

// clone makes a DataVolume as a virtual machine has one. It is large enough for the test's images.
func (w *world) clone(t *testing.T, namespace, name string, source cdiv1.DataVolumeSource) *cdiv1.DataVolume {
	t.Helper()
	dv := &cdiv1.DataVolume{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Annotations: map[string]string{"cdi.kubevirt.io/storage.bind.immediate.requested": "true"},
		},
		Spec: cdiv1.DataVolumeSpec{Source: &source, Storage: &cdiv1.StorageSpec{
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("64Mi")}},
		}},
	}
	require.NoError(t, w.client.Create(t.Context(), dv))
	return dv
}

// cloned waits for the end of a clone.
func (w *world) cloned(t *testing.T, dv *cdiv1.DataVolume) {
	t.Helper()
	require.Eventually(t, func() bool {
		return w.client.Get(context.Background(), client.ObjectKeyFromObject(dv), dv) == nil && dv.Status.Phase == cdiv1.Succeeded
	}, w.patience, w.poll, "the clone %s is made", dv.Name)
}

// heldClone is a clone that does not end before the function is called. On a real CDI it is one that cannot end, because
// it is too small for its source, and that is deleted instead.
func (w *world) heldClone(t *testing.T, namespace, name string, source cdiv1.DataVolumeSource) (dv *cdiv1.DataVolume, end func()) {
	t.Helper()
	if !w.real {
		w.behave.set(namespace, name, cdi.Behaviour{StopAt: cdiv1.CloneFromSnapshotSourceInProgress})
		dv = w.clone(t, namespace, name, source)
		require.Eventually(t, func() bool {
			return w.client.Get(t.Context(), client.ObjectKeyFromObject(dv), dv) == nil && dv.Status.Phase == cdiv1.CloneFromSnapshotSourceInProgress
		}, w.patience, w.poll)
		return dv, func() {
			w.behave.set(namespace, name, cdi.Behaviour{})
			w.cloned(t, dv)
		}
	}
	dv = &cdiv1.DataVolume{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: cdiv1.DataVolumeSpec{Source: &source, PVC: &corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
		}},
	}
	require.NoError(t, w.client.Create(t.Context(), dv))
	return dv, func() { require.NoError(t, w.client.Delete(t.Context(), dv)) }
}
