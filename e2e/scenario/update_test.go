package scenario

import (
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// succeeded is an image that has.
func (w *world) succeeded(t *testing.T, namespace, name string, mods ...func(*v1alpha1.VMDiskImage)) *v1alpha1.VMDiskImage {
	t.Helper()
	image := w.apply(t, w.image(namespace, name, mods...))
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	return image
}

func volumeOf(image *v1alpha1.VMDiskImage) *cdiv1.DataVolume {
	return &cdiv1.DataVolume{ObjectMeta: metav1.ObjectMeta{Namespace: image.Namespace, Name: image.Status.Artifact.DataVolume}}
}

func snapshotOf(image *v1alpha1.VMDiskImage) *snapshotv1.VolumeSnapshot {
	return &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: image.Namespace, Name: image.Status.Artifact.Snapshot}}
}

// there says that an object exists and is to stay.
func (w *world) there(t *testing.T, object client.Object) {
	t.Helper()
	if assert.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(object), object)) {
		assert.Nil(t, object.GetDeletionTimestamp(), "%T %s stays", object, object.GetName())
	}
}

// updated changes a good image: the former one can be cloned until the new one is ready, and what clones it is let finish.
func updated(t *testing.T, w *world) {
	namespace, elsewhere := w.namespace(t), w.namespace(t)
	image := w.succeeded(t, namespace, "fresh")
	former := image.DeepCopy()
	diary := w.diary(t, image)
	_, endSnapshotClone := w.heldClone(t, namespace, "vm-a", w.ofSnapshot(image))
	_, endClaimClone := w.heldClone(t, elsewhere, "vm-b", w.ofClaim(image))

	w.apply(t, image, w.heldAlone)
	ready := w.waitsReady(t, image)
	w.syncing(t, image)
	assert.Contains(t, w.holders(t), v1alpha1.SlotHolder(client.ObjectKeyFromObject(image), image.UID), "an update takes its turn")
	assert.Equal(t, image.Generation, image.Status.ObservedGeneration)
	assert.Equal(t, "True "+v1alpha1.ReasonUpdating, apitest.ConditionOf(image.Status.Conditions, v1alpha1.ConditionReconciling))
	assert.Equal(t, former.Generation, meta.FindStatusCondition(image.Status.Conditions, v1alpha1.ConditionReady).ObservedGeneration, "Ready speaks of the former spec")
	w.cloned(t, w.clone(t, elsewhere, "vm-c", w.ofSnapshot(former)))
	select {
	case err := <-ready:
		assert.Fail(t, "kubectl wait takes the former artifact for the new one", "%v", err)
	default:
	}

	w.letGo(image)
	require.NoError(t, <-ready)
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	w.checkArtifact(t, image)
	stillReady(t, w.upTo(t, diary, image), former.Status.Artifact.Revision, v1alpha1.RevisionOf(image))
	assert.Empty(t, apitest.ConditionOf(image.Status.Conditions, v1alpha1.ConditionReconciling))
	assert.Equal(t, 1, w.web.Of(w.path(image, "gate/"+gateOf(image))).Complete, "downloads of the new one")
	assert.Equal(t, 1, w.web.Of(w.path(image, "ok")).Complete, "downloads of the former one")

	time.Sleep(20 * w.poll)
	w.there(t, volumeOf(former))
	w.there(t, snapshotOf(former))
	endSnapshotClone()
	w.gone(t, snapshotOf(former))
	w.there(t, volumeOf(former))
	endClaimClone()
	w.gone(t, volumeOf(former))
	w.checkArtifact(t, image)
	assert.Nil(t, image.Status.LastLoss, "nothing was lost")
}

// updateFails changes a good image to one that cannot be had, and back.
func updateFails(t *testing.T, w *world) {
	image := w.succeeded(t, w.namespace(t), "good")
	former := image.DeepCopy()
	diary := w.diary(t, image)
	w.apply(t, image, w.served("status/404"))
	w.becomes(t, image, v1alpha1.PhaseFailed)
	assert.EqualValues(t, allAttempts, image.Status.Attempts)
	assert.Equal(t, v1alpha1.FailureSourceNotFound, image.Status.LastFailure.Reason)
	assert.Equal(t, allAttempts, w.web.Of(w.path(image, "status/404")).PlainGets)
	stillReady(t, w.upTo(t, diary, image), former.Status.Artifact.Revision)
	w.holdsNothing(t, image)
	w.there(t, volumeOf(former))
	w.cloned(t, w.clone(t, image.Namespace, "vm", w.ofSnapshot(image)))

	w.apply(t, image, w.served("ok"))
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	w.checkArtifact(t, image)
	stillReady(t, w.upTo(t, diary, image), former.Status.Artifact.Revision)
	assert.Equal(t, former.Status.Artifact, image.Status.Artifact, "the former artifact")
	assert.Equal(t, 1, w.web.Of(w.path(image, "ok")).Complete, "no download")
	w.cloned(t, w.clone(t, image.Namespace, "vm-2", w.ofSnapshot(image)))
}

// updateRequested asks for a fresh copy after an update has failed.
func updateRequested(t *testing.T, w *world) {
	const mode = "failfirst/6" // HEAD and GET of three attempts
	image := w.succeeded(t, w.namespace(t), "good")
	former := image.DeepCopy()
	w.apply(t, image, w.served(mode))
	w.becomes(t, image, v1alpha1.PhaseFailed)
	require.True(t, image.IsReady())
	diary := w.diary(t, image)
	w.request(t, image)
	w.await(t, image, "made afresh", func(i *v1alpha1.VMDiskImage) bool {
		return i.Status.Phase == v1alpha1.PhaseSucceeded && i.Status.Artifact.Revision == v1alpha1.RevisionOf(i) && i.Annotations[v1alpha1.AnnotationSyncRequestedAt] != ""
	})
	stillReady(t, w.upTo(t, diary, image), former.Status.Artifact.Revision, v1alpha1.RevisionOf(image))
	assert.EqualValues(t, 1, image.Status.Attempts)
	assert.Equal(t, 1, w.web.Of(w.path(image, mode)).Complete, "downloads")
	w.checkArtifact(t, image)
	w.gone(t, snapshotOf(former))
	w.gone(t, volumeOf(former))
}

// updatedTwice changes a good image twice, the second time while it syncs.
func updatedTwice(t *testing.T, w *world) {
	image := w.succeeded(t, w.namespace(t), "hasty")
	former := image.DeepCopy()
	diary := w.diary(t, image)
	w.apply(t, image, w.heldAlone)
	w.syncing(t, image)
	between := childOf(image)
	w.apply(t, image, w.served("noranges"))
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	w.checkArtifact(t, image)
	assert.EqualValues(t, 1, image.Status.Attempts, "of the last spec")
	stillReady(t, w.upTo(t, diary, image), former.Status.Artifact.Revision, v1alpha1.RevisionOf(image))
	assert.Zero(t, w.web.Of(w.path(image, "gate/"+gateOf(image))).Complete)
	assert.Equal(t, 1, w.web.Of(w.path(image, "noranges")).Complete)
	w.gone(t, &cdiv1.DataVolume{ObjectMeta: metav1.ObjectMeta{Namespace: image.Namespace, Name: between}})
	w.gone(t, snapshotOf(former))
	w.gone(t, volumeOf(former))
}

// updatedBack takes a change back while it syncs.
func updatedBack(t *testing.T, w *world) {
	image := w.succeeded(t, w.namespace(t), "undecided")
	former := image.DeepCopy()
	diary := w.diary(t, image)
	w.apply(t, image, w.heldAlone)
	w.syncing(t, image)
	between := childOf(image)
	w.apply(t, image, w.served("ok"))
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	stillReady(t, w.upTo(t, diary, image), former.Status.Artifact.Revision)
	assert.Equal(t, former.Status.Artifact, image.Status.Artifact)
	assert.Equal(t, 1, w.web.Of(w.path(image, "ok")).Complete, "no download")
	w.gone(t, &cdiv1.DataVolume{ObjectMeta: metav1.ObjectMeta{Namespace: image.Namespace, Name: between}})
	w.holdsNothing(t, image)
	w.there(t, volumeOf(former))
	w.there(t, snapshotOf(former))
}

// updateWaits changes a good image twice while another one has the only slot, then the other one's turn is over.
func updateWaits(t *testing.T, w *world) {
	w.policy(t, map[string]string{policy.KeyConcurrency: "1"})
	namespace := w.namespace(t)
	image := w.succeeded(t, namespace, "modest")
	former := image.DeepCopy()
	first := w.create(t, w.image(namespace, "first", w.heldAlone))
	w.syncing(t, first)
	diary := w.diary(t, image)
	film := w.film(t, namespace)
	w.apply(t, image, w.served("noranges"))
	w.becomes(t, image, v1alpha1.PhaseQueued)
	third := w.create(t, w.image(namespace, "third"))
	w.apply(t, image, w.served("slow/2000000"))
	w.becomes(t, image, v1alpha1.PhaseQueued)
	assert.Equal(t, "True "+v1alpha1.ReasonUpdating, apitest.ConditionOf(image.Status.Conditions, v1alpha1.ConditionReconciling))
	w.letGo(first)
	w.allSucceed(t, []*v1alpha1.VMDiskImage{first, third, image})
	assert.Zero(t, w.web.Of(w.path(image, "noranges")).Requests, "of the spec in between")
	assert.Equal(t, 1, w.web.Of(w.path(image, "slow/2000000")).Complete)
	assert.Equal(t, []string{keyOf(first), keyOf(third), keyOf(image)}, film.order(), "a changed image is a new one in the queue")
	film.keptTo(t, 1)
	stillReady(t, w.upTo(t, diary, image), former.Status.Artifact.Revision, v1alpha1.RevisionOf(image))
	w.gone(t, snapshotOf(former))
	w.gone(t, volumeOf(former))
}
