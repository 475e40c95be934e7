package scenario

import (
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func snapshotOnly(image *v1alpha1.VMDiskImage) {
	image.Spec.VolumePolicy = v1alpha1.VolumeDeleteAfterSnapshot
}
func withVolume(image *v1alpha1.VMDiskImage) { image.Spec.VolumePolicy = v1alpha1.VolumeRetain }

// checkSnapshotOnly follows status.artifact to the snapshot, and to a volume that goes.
func (w *world) checkSnapshotOnly(t *testing.T, image *v1alpha1.VMDiskImage) {
	t.Helper()
	require.NotNil(t, image.Status.Artifact)
	assert.Empty(t, image.Status.Artifact.DataVolume)
	assert.True(t, image.IsReady())
	w.there(t, snapshotOf(image))
	w.gone(t, w.volumeNamed(image, image.Status.Artifact.Snapshot))
	claim := claimOf(image)
	claim.Name = image.Status.Artifact.Snapshot
	w.gone(t, claim)
}

func (w *world) volumeNamed(image *v1alpha1.VMDiskImage, name string) *cdiv1.DataVolume {
	return &cdiv1.DataVolume{ObjectMeta: metav1.ObjectMeta{Namespace: image.Namespace, Name: name}}
}

func volumeGoes(t *testing.T, w *world) {
	image := w.succeeded(t, w.namespace(t), "thin", snapshotOnly)
	w.checkSnapshotOnly(t, image)
	w.cloned(t, w.clone(t, image.Namespace, "vm", w.ofSnapshot(image)))
	time.Sleep(20 * w.poll)
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(image), image))
	assert.Nil(t, image.Status.LastLoss, "what was deleted on purpose is not lost")
	assert.Zero(t, image.Status.Losses)
	assert.Equal(t, 1, w.web.Of(w.path(image, "ok")).Complete)
}

func snapshotLostWithoutVolume(t *testing.T, w *world) {
	image := w.succeeded(t, w.namespace(t), "thin-ice", snapshotOnly)
	w.checkSnapshotOnly(t, image)
	former := image.DeepCopy()
	w.remove(t, snapshotOf(image))
	w.heals(t, image, v1alpha1.LostSnapshot, former.Status.Artifact.Snapshot)
	assert.EqualValues(t, 1, image.Status.Losses)
	assert.NotEqual(t, former.Status.Artifact.Revision, image.Status.Artifact.Revision)
	assert.Equal(t, 2, w.web.Of(w.path(image, "ok")).Complete, "one more download")
}

func volumePolicyChanges(t *testing.T, w *world) {
	image := w.succeeded(t, w.namespace(t), "flexible")
	former := image.DeepCopy()
	diary := w.diary(t, image)
	_, endClone := w.heldClone(t, image.Namespace, "vm", w.ofClaim(image))
	w.apply(t, image, snapshotOnly)
	w.await(t, image, "without its volume", func(i *v1alpha1.VMDiskImage) bool { return i.Status.Artifact.DataVolume == "" })
	time.Sleep(20 * w.poll)
	w.there(t, volumeOf(former))
	endClone()
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(image), image))
	w.checkSnapshotOnly(t, image)

	w.apply(t, image, withVolume)
	w.await(t, image, "looked at", func(i *v1alpha1.VMDiskImage) bool { return i.Status.ObservedGeneration == i.Generation })
	assert.Equal(t, v1alpha1.PhaseSucceeded, image.Status.Phase)
	w.checkSnapshotOnly(t, image)
	assert.Equal(t, former.Status.Artifact.Revision, image.Status.Artifact.Revision)
	stillReady(t, w.upTo(t, diary, image), former.Status.Artifact.Revision)
	assert.Nil(t, image.Status.LastLoss)
	assert.Equal(t, 1, w.web.Of(w.path(image, "ok")).Complete, "no download")
}

func updatedWithoutVolume(t *testing.T, w *world) {
	image := w.succeeded(t, w.namespace(t), "thin-and-new", snapshotOnly)
	former := image.DeepCopy()
	diary := w.diary(t, image)
	w.apply(t, image, w.served("noranges"))
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	w.checkSnapshotOnly(t, image)
	stillReady(t, w.upTo(t, diary, image), former.Status.Artifact.Revision, v1alpha1.RevisionOf(image))
	w.gone(t, snapshotOf(former))
	assert.Nil(t, image.Status.LastLoss)
	assert.Equal(t, 1, w.web.Of(w.path(image, "noranges")).Complete)
}

// volumeIsNotMissed starts the operator with images that have no volume.
func volumeIsNotMissed(t *testing.T, w *world) {
	w.policy(t, map[string]string{policy.KeyConcurrency: "2"})
	namespace := w.namespace(t)
	image := w.succeeded(t, namespace, "thin", snapshotOnly)
	w.checkSnapshotOnly(t, image)
	time.Sleep(2 * time.Second) // the last events are on their way
	before := w.versionsIn(t, namespace)
	w.operator.Kill()
	w.startOperator(t)
	w.awaitReady(t)
	w.leads(t)
	time.Sleep(2 * time.Second)
	assert.Equal(t, before, w.versionsIn(t, namespace), "nothing is written")
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(image), image))
	assert.Nil(t, image.Status.LastLoss)
	assert.Equal(t, 1, w.web.Of(w.path(image, "ok")).Complete)
}
