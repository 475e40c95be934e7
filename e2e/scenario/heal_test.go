package scenario

import (
	"context"
	"slices"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/pelotech/open-terrain/e2e/sim/cdi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func claimOf(image *v1alpha1.VMDiskImage) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: image.Namespace, Name: image.Status.Artifact.DataVolume}}
}

// remove deletes an object by somebody else's hand.
func (w *world) remove(t *testing.T, object client.Object) {
	t.Helper()
	require.NoError(t, w.client.Delete(t.Context(), object))
}

// heals waits until the image has noticed a loss of that kind and name and has succeeded again.
func (w *world) heals(t *testing.T, image *v1alpha1.VMDiskImage, kind v1alpha1.LossKind, name string) {
	t.Helper()
	var former metav1.Time
	if image.Status.LastLoss != nil {
		former = image.Status.LastLoss.Time
	}
	began := time.Now().Add(-time.Second) // a status has whole seconds
	w.await(t, image, "healed", func(i *v1alpha1.VMDiskImage) bool {
		loss := i.Status.LastLoss
		return loss != nil && (loss.Time.After(former.Time) || former.IsZero()) &&
			i.Status.Phase == v1alpha1.PhaseSucceeded && i.Status.Revision == v1alpha1.RevisionOf(i)
	})
	assert.Equal(t, kind, image.Status.LastLoss.Kind)
	assert.Equal(t, name, image.Status.LastLoss.Name)
	assert.WithinRange(t, image.Status.LastLoss.Time.Time, began.Add(-w.patience), time.Now().Add(time.Second))
	assert.Nil(t, image.Status.LastFailure)
	if image.Spec.VolumePolicy == v1alpha1.VolumeDeleteAfterSnapshot {
		w.checkSnapshotOnly(t, image)
		return
	}
	w.checkArtifact(t, image)
}

func snapshotDeleted(t *testing.T, w *world) {
	image := w.succeeded(t, w.namespace(t), "robbed")
	lost := snapshotOf(image)
	w.there(t, lost)
	diary := w.diary(t, image)
	w.remove(t, lost)
	w.heals(t, image, v1alpha1.LostSnapshot, lost.Name)
	assert.Zero(t, image.Status.Losses, "it took no sync")
	assert.Equal(t, 1, w.web.Of(w.path(image, "ok")).Complete, "no download")
	made := snapshotOf(image)
	w.there(t, made)
	assert.NotEqual(t, lost.UID, made.UID)
	unready := slices.ContainsFunc(w.upTo(t, diary, image), func(i *v1alpha1.VMDiskImage) bool {
		return !i.IsReady() && i.Status.Phase == v1alpha1.PhaseSnapshotting
	})
	assert.True(t, unready, "meanwhile nothing could be cloned, and status said so")
	w.cloned(t, w.clone(t, image.Namespace, "vm", w.ofSnapshot(image)))
}

// contentDeleted takes away what holds the data, and the finalizer that would keep it.
func contentDeleted(t *testing.T, w *world) {
	image := w.succeeded(t, w.namespace(t), "emptied", w.slowSnapshot)
	snapshot := snapshotOf(image)
	w.there(t, snapshot)
	content := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: *snapshot.Status.BoundVolumeSnapshotContentName}}
	w.remove(t, content)
	_ = w.client.Patch(t.Context(), content, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))) // it may be gone
	w.heals(t, image, v1alpha1.LostContent, content.Name)
	assert.Zero(t, image.Status.Losses)
	assert.Equal(t, 1, w.web.Of(w.path(image, "ok")).Complete, "no download")
	w.cloned(t, w.clone(t, image.Namespace, "vm", w.ofSnapshot(image)))
}

// slowSnapshot is one that is not ready again at once, where the simulator takes it.
func (w *world) slowSnapshot(image *v1alpha1.VMDiskImage) {
	if !w.real {
		image.Spec.SnapshotClass = slowClass
	}
}

func volumeDeleted(t *testing.T, w *world) {
	image := w.succeeded(t, w.namespace(t), "homeless")
	former := image.DeepCopy()
	diary := w.diary(t, image)
	w.remove(t, volumeOf(image))
	w.heals(t, image, v1alpha1.LostDataVolume, former.Status.Artifact.DataVolume)
	assert.EqualValues(t, 1, image.Status.Losses)
	assert.EqualValues(t, 1, image.Status.Attempts, "of the new sync")
	assert.Equal(t, 2, w.web.Of(w.path(image, "ok")).Complete, "one more download")
	assert.NotEqual(t, former.Status.Artifact.Revision, image.Status.Artifact.Revision, "the children have other names")
	stillReady(t, w.upTo(t, diary, image), former.Status.Artifact.Revision, image.Status.Artifact.Revision)
	w.gone(t, snapshotOf(former))
}

// claimDeleted has CDI make the claim again and begin a download of its own, without a slot.
func claimDeleted(t *testing.T, w *world) {
	mode := "slow/600000" // long enough to be cut short
	image := w.succeeded(t, w.namespace(t), "evicted", w.served(mode))
	former := image.DeepCopy()
	diary := w.diary(t, image)
	w.remove(t, claimOf(image))
	w.heals(t, image, v1alpha1.LostClaim, former.Status.Artifact.DataVolume)
	assert.EqualValues(t, 1, image.Status.Losses)
	assert.EqualValues(t, 1, image.Status.Attempts)
	stats := w.web.Of(w.path(image, mode))
	assert.Equal(t, 2, stats.Complete, "what CDI has begun by itself was cut short: %+v", stats)
	stillReady(t, w.upTo(t, diary, image), former.Status.Artifact.Revision, image.Status.Artifact.Revision)
	w.gone(t, volumeOf(former))
	w.gone(t, snapshotOf(former))
}

// claimLost has the storage lose the volume: the claim says Lost, the DataVolume still Succeeded.
func claimLost(t *testing.T, w *world) {
	if w.real {
		t.Skip("the storage of a real cluster does not lose volumes on request")
	}
	image := w.succeeded(t, w.namespace(t), "crashed")
	former := image.DeepCopy()
	w.behave.set(image.Namespace, image.Status.Artifact.DataVolume, cdi.Behaviour{LoseClaim: true})
	w.heals(t, image, v1alpha1.LostClaim, former.Status.Artifact.DataVolume)
	assert.EqualValues(t, 1, image.Status.Losses)
	assert.Equal(t, 2, w.web.Of(w.path(image, "ok")).Complete)
	w.gone(t, volumeOf(former))
}

func bothDeleted(t *testing.T, w *world) {
	image := w.succeeded(t, w.namespace(t), "ruined")
	former := image.DeepCopy()
	w.remove(t, volumeOf(image))
	w.remove(t, snapshotOf(image))
	w.await(t, image, "healed", func(i *v1alpha1.VMDiskImage) bool {
		return i.Status.Losses == 1 && i.Status.Phase == v1alpha1.PhaseSucceeded
	})
	assert.Contains(t, []v1alpha1.LossKind{v1alpha1.LostDataVolume, v1alpha1.LostSnapshot}, image.Status.LastLoss.Kind)
	w.checkArtifact(t, image)
	assert.NotEqual(t, former.Status.Artifact.Revision, image.Status.Artifact.Revision)
	assert.Equal(t, 2, w.web.Of(w.path(image, "ok")).Complete, "one more download")
}

// lostDuringUpdate deletes the former snapshot while another revision is being downloaded.
func lostDuringUpdate(t *testing.T, w *world) {
	image := w.succeeded(t, w.namespace(t), "unlucky")
	former := image.DeepCopy()
	w.apply(t, image, w.heldAlone)
	w.syncing(t, image)
	w.remove(t, snapshotOf(former))
	w.await(t, image, "known to be lost", func(i *v1alpha1.VMDiskImage) bool { return i.Status.LastLoss != nil && !i.IsReady() })
	assert.Equal(t, v1alpha1.LostSnapshot, image.Status.LastLoss.Kind)
	assert.Equal(t, snapshotOf(former).Name, image.Status.LastLoss.Name)
	assert.Equal(t, v1alpha1.PhaseSyncing, image.Status.Phase, "the update goes on")
	w.letGo(image)
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	w.checkArtifact(t, image)
	assert.Equal(t, 1, w.web.Of(w.path(image, "gate/"+gateOf(image))).Complete)
	assert.Equal(t, 1, w.web.Of(w.path(image, "ok")).Complete, "the former one is not downloaded again")
	w.gone(t, volumeOf(former))
}

// volumeLostDuringUpdate deletes the former volume while another revision is being downloaded: the snapshot serves on.
func volumeLostDuringUpdate(t *testing.T, w *world) {
	image := w.succeeded(t, w.namespace(t), "unlucky-too")
	former := image.DeepCopy()
	diary := w.diary(t, image)
	w.apply(t, image, w.heldAlone)
	w.syncing(t, image)
	w.remove(t, volumeOf(former))
	w.gone(t, volumeOf(former))
	w.letGo(image)
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	w.checkArtifact(t, image)
	stillReady(t, w.upTo(t, diary, image), former.Status.Artifact.Revision, v1alpha1.RevisionOf(image))
	assert.Equal(t, 1, w.web.Of(w.path(image, "gate/"+gateOf(image))).Complete)
	assert.Equal(t, 1, w.web.Of(w.path(image, "ok")).Complete, "the former one is not downloaded again")
	w.gone(t, snapshotOf(former))
}

// lostAfterFailedUpdate deletes the snapshot that an update which has failed had left: nothing can be cloned then, until the
// spec goes back to what there is a volume of.
func lostAfterFailedUpdate(t *testing.T, w *world) {
	image := w.succeeded(t, w.namespace(t), "stranded")
	former := image.DeepCopy()
	w.apply(t, image, w.served("status/404"))
	w.becomes(t, image, v1alpha1.PhaseFailed)
	w.remove(t, snapshotOf(former))
	w.await(t, image, "known to be lost", func(i *v1alpha1.VMDiskImage) bool { return i.Status.LastLoss != nil && !i.IsReady() })
	assert.Equal(t, v1alpha1.PhaseFailed, image.Status.Phase)
	assert.Equal(t, snapshotOf(former).Name, image.Status.LastLoss.Name)
	w.gone(t, snapshotOf(former))

	w.apply(t, image, w.served("ok"))
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	w.checkArtifact(t, image)
	assert.Equal(t, 1, w.web.Of(w.path(image, "ok")).Complete, "no download")
	w.cloned(t, w.clone(t, image.Namespace, "vm", w.ofSnapshot(image)))
}

// lostTwice deletes the volume, and the next one, too.
func lostTwice(t *testing.T, w *world) {
	image := w.succeeded(t, w.namespace(t), "unlucky-twice")
	revisions := map[string]bool{image.Status.Artifact.Revision: true}
	for n := int32(1); n <= 2; n++ {
		lost := volumeOf(image)
		w.remove(t, lost)
		w.await(t, image, "healed", func(i *v1alpha1.VMDiskImage) bool {
			return i.Status.Losses == n && i.Status.Phase == v1alpha1.PhaseSucceeded
		})
		assert.Equal(t, lost.Name, image.Status.LastLoss.Name)
		w.checkArtifact(t, image)
		revisions[image.Status.Artifact.Revision] = true
	}
	assert.Len(t, revisions, 3, "the children have other names each time")
	assert.Equal(t, 3, w.web.Of(w.path(image, "ok")).Complete, "one more download each time")
}

// heldSnapshot has somebody's finalizer on a snapshot that is deleted: it can be replaced only when it is gone.
func heldSnapshot(t *testing.T, w *world) {
	image := w.succeeded(t, w.namespace(t), "haunted")
	held := snapshotOf(image)
	w.there(t, held)
	before := held.DeepCopy()
	held.Finalizers = append(held.Finalizers, "example.com/backup")
	require.NoError(t, w.client.Patch(t.Context(), held, client.MergeFrom(before)))
	w.remove(t, held)
	w.await(t, image, "waiting", func(i *v1alpha1.VMDiskImage) bool {
		return i.Status.LastLoss != nil && i.Status.Phase == v1alpha1.PhaseSnapshotting && !i.IsReady()
	})
	time.Sleep(20 * w.poll)
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(image), image))
	assert.Contains(t, image.Status.Message, held.Name, "what it waits for")
	waiting := image.ResourceVersion
	time.Sleep(40 * w.poll)
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(image), image))
	assert.Equal(t, waiting, image.ResourceVersion, "it waits quietly")

	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(held), held))
	before = held.DeepCopy()
	held.Finalizers = slices.DeleteFunc(held.Finalizers, func(f string) bool { return f == "example.com/backup" })
	require.NoError(t, w.client.Patch(t.Context(), held, client.MergeFrom(before)))
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	w.checkArtifact(t, image)
	made := snapshotOf(image)
	w.there(t, made)
	assert.NotEqual(t, held.UID, made.UID)
	assert.Equal(t, 1, w.web.Of(w.path(image, "ok")).Complete, "no download")
}

// writesPerLoss is how often the image may be written for one lost snapshot: the loss, what it waits for, that it waits no
// longer, the end.
const writesPerLoss = 4

// deletedAgainAndAgain has an adversary that deletes each snapshot as soon as the image has succeeded with it.
func deletedAgainAndAgain(t *testing.T, w *world) {
	const deletions = 5
	image := w.succeeded(t, w.namespace(t), "hunted")
	diary := w.diary(t, image)
	for range deletions {
		snapshot := snapshotOf(image)
		w.there(t, snapshot)
		w.remove(t, snapshot)
		require.Eventually(t, func() bool {
			made := &snapshotv1.VolumeSnapshot{}
			return w.client.Get(context.Background(), client.ObjectKeyFromObject(snapshot), made) == nil && made.UID != snapshot.UID
		}, w.patience, w.poll, "another snapshot is made, after status has said that the former one is lost")
		w.becomes(t, image, v1alpha1.PhaseSucceeded)
	}
	w.checkArtifact(t, image)
	assert.Zero(t, image.Status.Losses)
	assert.Equal(t, 1, w.web.Of(w.path(image, "ok")).Complete, "no download")
	assert.LessOrEqual(t, len(w.upTo(t, diary, image)), deletions*writesPerLoss, "writes of the image")
}

// deletedAtOnce has an adversary that deletes each snapshot as soon as it is there, for a while.
func deletedAtOnce(t *testing.T, w *world) {
	const deletions = 8
	image := w.succeeded(t, w.namespace(t), "tormented")
	diary := w.diary(t, image)
	snapshot := snapshotOf(image)
	ctx, cancel := context.WithTimeout(t.Context(), w.patience)
	defer cancel()
	changes, err := w.client.Watch(ctx, &snapshotv1.VolumeSnapshotList{}, client.InNamespace(image.Namespace))
	require.NoError(t, err)
	defer changes.Stop()
	seen := map[string]bool{}
	for event := range changes.ResultChan() {
		made, is := event.Object.(*snapshotv1.VolumeSnapshot)
		if !is || seen[string(made.UID)] || made.DeletionTimestamp != nil {
			continue
		}
		if seen[string(made.UID)] = true; len(seen) > deletions {
			break
		}
		require.NoError(t, client.IgnoreNotFound(w.client.Delete(ctx, made)))
	}
	require.Len(t, seen, deletions+1, "each one is made again")
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	w.await(t, image, "healed", func(i *v1alpha1.VMDiskImage) bool {
		return w.client.Get(t.Context(), client.ObjectKeyFromObject(snapshot), snapshot) == nil && snapshot.DeletionTimestamp == nil && i.IsReady()
	})
	w.checkArtifact(t, image)
	assert.Equal(t, 1, w.web.Of(w.path(image, "ok")).Complete, "no download")
	assert.LessOrEqual(t, len(w.upTo(t, diary, image)), (deletions+1)*writesPerLoss, "writes of the image")
}

// lostUnnoticed deletes a snapshot, a volume and a claim while the operator is away.
func lostUnnoticed(t *testing.T, w *world) {
	w.policy(t, map[string]string{policy.KeyConcurrency: "2"})
	namespace := w.namespace(t)
	film := w.film(t, namespace)
	images := w.several(t, 4, []string{namespace})
	w.allSucceed(t, images)
	w.operator.Kill()
	former := []*v1alpha1.VMDiskImage{images[0].DeepCopy(), images[1].DeepCopy(), images[2].DeepCopy(), images[3].DeepCopy()}
	w.remove(t, snapshotOf(images[0]))
	w.gone(t, snapshotOf(images[0]))
	w.remove(t, volumeOf(images[1]))
	w.gone(t, claimOf(images[1]))
	w.remove(t, claimOf(images[2]))
	dv := volumeOf(images[2])
	require.Eventually(t, func() bool { // CDI downloads again
		return w.client.Get(t.Context(), client.ObjectKeyFromObject(dv), dv) == nil && dv.Status.Phase == cdiv1.Succeeded && w.web.Of(w.path(images[2], "ok")).Complete == 2
	}, w.patience, w.poll)

	w.startOperator(t)
	w.awaitReady(t)
	w.heals(t, images[0], v1alpha1.LostSnapshot, former[0].Status.Artifact.Snapshot)
	assert.Equal(t, 1, w.web.Of(w.path(images[0], "ok")).Complete)
	w.heals(t, images[1], v1alpha1.LostDataVolume, former[1].Status.Artifact.DataVolume)
	assert.Equal(t, 2, w.web.Of(w.path(images[1], "ok")).Complete)
	// What CDI has downloaded again by itself is complete and of the same revision: nothing is missing.
	for _, image := range images[2:] {
		w.becomes(t, image, v1alpha1.PhaseSucceeded)
		w.checkArtifact(t, image)
		assert.True(t, image.IsReady())
	}
	assert.Equal(t, 1, w.web.Of(w.path(images[3], "ok")).Complete)
	film.keptTo(t, 2)
}
