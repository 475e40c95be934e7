package scenario

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// foreign is an object of somebody else, who has made up his mind about its labels and its owner.
type foreign struct {
	object client.Object
	before client.Object
}

func (w *world) foreign(t *testing.T, object client.Object) *foreign {
	t.Helper()
	require.NoError(t, w.client.Create(t.Context(), object))
	return &foreign{object, object.DeepCopyObject().(client.Object)} //nolint:forcetypeassert // its own type
}

// untouched checks that nobody has changed what its owner has decided. Its status is CDI's or the snapshotter's.
func (f *foreign) untouched(t *testing.T, w *world) {
	t.Helper()
	w.there(t, f.object)
	assert.Equal(t, f.before.GetUID(), f.object.GetUID(), "%T %s", f.object, f.object.GetName())
	assert.Equal(t, f.before.GetLabels(), f.object.GetLabels(), "%T %s", f.object, f.object.GetName())
	assert.Equal(t, f.before.GetOwnerReferences(), f.object.GetOwnerReferences(), "%T %s", f.object, f.object.GetName())
	for _, entry := range f.object.GetManagedFields() {
		assert.NotContains(t, entry.Manager, operatorName, "%T %s", f.object, f.object.GetName())
	}
}

func containsAll(text string, words ...string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

func blankVolume(namespace, name string) *cdiv1.DataVolume {
	return &cdiv1.DataVolume{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Annotations: map[string]string{"cdi.kubevirt.io/storage.bind.immediate.requested": "true"},
		},
		Spec: cdiv1.DataVolumeSpec{
			Source: &cdiv1.DataVolumeSource{Blank: &cdiv1.DataVolumeBlankImage{}},
			Storage: &cdiv1.StorageSpec{
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("32Mi")}},
			},
		},
	}
}

func claimNamed(namespace, name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("32Mi")}},
		},
	}
}

// snapshotNamed is of a claim that may exist or not.
func snapshotNamed(namespace, name, claim string) *snapshotv1.VolumeSnapshot {
	return &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &claim}},
	}
}

// foreignClaim has somebody else's claim where the image's is to be: CDI refuses the DataVolume.
func foreignClaim(t *testing.T, w *world) {
	namespace := w.namespace(t)
	image := w.image(namespace, "taken")
	claim := w.foreign(t, claimNamed(namespace, childOf(image)))
	w.create(t, image)
	w.fails(t, image, v1alpha1.FailureUnknown, allAttempts)
	assert.Contains(t, image.Status.Message, claim.object.GetName())
	assert.Contains(t, image.Status.Message, "exists")
	assert.Zero(t, w.web.Of(w.path(image, "ok")).Requests)
	claim.untouched(t, w)
}

// foreignSnapshot has somebody else's VolumeSnapshot where the image's is to be, and then no longer.
func foreignSnapshot(t *testing.T, w *world) {
	namespace := w.namespace(t)
	image := w.image(namespace, "taken")
	snapshot := w.foreign(t, snapshotNamed(namespace, childOf(image), "nobodys"))
	w.create(t, image)
	w.await(t, image, "waiting", func(i *v1alpha1.VMDiskImage) bool {
		return i.Status.Phase == v1alpha1.PhaseSnapshotting && i.Status.Artifact == nil && containsAll(i.Status.Message, childOf(i), "does not belong")
	})
	time.Sleep(20 * w.poll)
	snapshot.untouched(t, w)
	w.remove(t, snapshot.object)
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	w.checkArtifact(t, image)
	assert.Equal(t, 1, w.web.Of(w.path(image, "ok")).Complete)
}

// ourLabels stand on objects of somebody else, some of which have an owner: labels mean nothing.
func ourLabels(t *testing.T, w *world) {
	namespace := w.namespace(t)
	image := w.succeeded(t, namespace, "owner")
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"}}
	require.NoError(t, w.client.Create(t.Context(), other))
	var all []*foreign
	for i, object := range []client.Object{
		blankVolume(namespace, "owner-00000001"), claimNamed(namespace, "owner-00000002"), snapshotNamed(namespace, "owner-00000003", "owner-00000001"),
		blankVolume(namespace, "owner-00000004"), snapshotNamed(namespace, "owner-00000005", "owner-00000004"),
	} {
		object.SetLabels(map[string]string{v1alpha1.LabelImage: string(image.UID)})
		if i > 2 {
			object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(other, corev1.SchemeGroupVersion.WithKind("ConfigMap"))})
		}
		all = append(all, w.foreign(t, object))
	}
	former := image.DeepCopy()
	w.apply(t, image, w.served("noranges"))
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	w.gone(t, volumeOf(former))
	w.remove(t, snapshotOf(image))
	w.heals(t, image, v1alpha1.LostSnapshot, image.Status.Artifact.Snapshot)
	w.remove(t, image)
	w.gone(t, image.DeepCopy())
	w.gone(t, volumeOf(image))
	w.gone(t, snapshotOf(image))
	time.Sleep(10 * w.poll)
	for _, f := range all {
		f.untouched(t, w)
	}
}

// recreated deletes a good image and creates it again at once: the new one has the same names for its children.
func recreated(t *testing.T, w *world) {
	namespace := w.namespace(t)
	first := w.succeeded(t, namespace, "again")
	second := w.image(namespace, "again")
	require.NoError(t, w.client.Delete(t.Context(), first, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	w.create(t, second)
	require.NotEqual(t, first.UID, second.UID)
	w.becomes(t, second, v1alpha1.PhaseSucceeded)
	w.checkArtifact(t, second)
	assert.EqualValues(t, 1, second.Status.Attempts)
	assert.Nil(t, second.Status.LastLoss)
	assert.Equal(t, 2, w.web.Of(w.path(second, "ok")).Complete, "one download each")
	w.holdsNothing(t, second)
}

// orphaned deletes a good image and leaves its children, which are nobody's then: they are in the way of another image.
func orphaned(t *testing.T, w *world) {
	namespace := w.namespace(t)
	first := w.succeeded(t, namespace, "left")
	_, err := w.cluster.Kubectl(t.Context(), "", "delete", "vmdi/left", "-n", namespace, "--cascade=orphan")
	require.NoError(t, err)
	dv, snapshot := volumeOf(first), snapshotOf(first)
	w.there(t, dv)
	w.there(t, snapshot)
	uids := []string{string(dv.UID), string(snapshot.UID)}

	second := w.create(t, w.image(namespace, "left"))
	w.fails(t, second, v1alpha1.FailureUnknown, allAttempts)
	assert.Contains(t, second.Status.Message, dv.Name)
	w.there(t, dv)
	w.there(t, snapshot)
	assert.Equal(t, uids, []string{string(dv.UID), string(snapshot.UID)})
	assert.Empty(t, dv.OwnerReferences)
	assert.Empty(t, snapshot.OwnerReferences)
	assert.Equal(t, 1, w.web.Of(w.path(second, "ok")).Complete, "no download")
	w.cloned(t, w.clone(t, namespace, "vm", w.ofSnapshot(first)))
}

// namesakes are two images of one name in two namespaces.
func namesakes(t *testing.T, w *world) {
	here, there := w.namespace(t), w.namespace(t)
	mine, yours := w.succeeded(t, here, "ubuntu"), w.succeeded(t, there, "ubuntu")
	diary := w.diary(t, yours)
	w.remove(t, volumeOf(mine))
	w.heals(t, mine, v1alpha1.LostDataVolume, mine.Status.Artifact.DataVolume)
	w.apply(t, mine, w.served("status/404"))
	w.becomes(t, mine, v1alpha1.PhaseFailed)
	w.remove(t, mine)
	w.gone(t, mine)
	time.Sleep(10 * w.poll)
	version := yours.ResourceVersion
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(yours), yours))
	assert.Equal(t, version, yours.ResourceVersion, "the other one is not even written")
	w.checkArtifact(t, yours)
	assert.Empty(t, diary.pages)
	assert.Equal(t, 1, w.web.Of(w.path(yours, "ok")).Complete)
}

// takenWhileAway has somebody put a snapshot where the lost one was, before the operator can.
func takenWhileAway(t *testing.T, w *world) {
	w.policy(t, nil)
	namespace := w.namespace(t)
	image := w.succeeded(t, namespace, "squatted")
	w.operator.Kill()
	lost := snapshotOf(image)
	w.there(t, lost)
	w.remove(t, lost)
	w.gone(t, snapshotOf(image))
	squatter := w.foreign(t, snapshotNamed(namespace, lost.Name, image.Status.Artifact.DataVolume))
	w.startOperator(t)
	w.awaitReady(t)
	w.await(t, image, "waiting", func(i *v1alpha1.VMDiskImage) bool {
		return !i.IsReady() && i.Status.LastLoss != nil && containsAll(i.Status.Message, lost.Name, "does not belong")
	})
	time.Sleep(20 * w.poll)
	squatter.untouched(t, w)
	w.remove(t, squatter.object)
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	w.checkArtifact(t, image)
	assert.Equal(t, v1alpha1.LostSnapshot, image.Status.LastLoss.Kind)
	assert.Equal(t, 1, w.web.Of(w.path(image, "ok")).Complete, "no download")
}

// everyEnd has an image in each state that lasts, and starts the operator again: it looks at all of them and writes nothing.
func everyEnd(t *testing.T, w *world) {
	w.policy(t, nil)
	namespace := w.namespace(t)
	taken := w.image(namespace, "taken")
	w.foreign(t, snapshotNamed(namespace, childOf(taken), "nobodys"))
	w.create(t, taken)
	healed, replaced := w.succeeded(t, namespace, "healed"), w.succeeded(t, namespace, "replaced")
	updated, kept := w.succeeded(t, namespace, "updated"), w.succeeded(t, namespace, "kept")
	thin := w.succeeded(t, namespace, "thin", snapshotOnly)
	w.remove(t, snapshotOf(healed))
	w.remove(t, volumeOf(replaced))
	former := updated.DeepCopy()
	w.apply(t, updated, w.served("noranges"))
	w.apply(t, kept, w.served("status/404"))
	failed := w.create(t, w.image(namespace, "failed", w.served("status/404")))
	w.heals(t, healed, v1alpha1.LostSnapshot, healed.Status.Artifact.Snapshot)
	w.heals(t, replaced, v1alpha1.LostDataVolume, replaced.Status.Artifact.DataVolume)
	w.becomes(t, updated, v1alpha1.PhaseSucceeded)
	w.gone(t, volumeOf(former))
	w.gone(t, snapshotOf(former))
	w.becomes(t, kept, v1alpha1.PhaseFailed)
	w.becomes(t, failed, v1alpha1.PhaseFailed)
	w.checkSnapshotOnly(t, thin)
	w.becomes(t, taken, v1alpha1.PhaseSnapshotting)
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Empty(c, w.holders(c)) }, w.patience, w.poll)
	time.Sleep(2 * time.Second) // the last events are on their way

	before, requests := w.versionsIn(t, namespace), len(w.audit(t))
	w.operator.Kill()
	w.startOperator(t)
	w.awaitReady(t)
	w.leads(t)
	time.Sleep(3 * time.Second)
	assert.Equal(t, before, w.versionsIn(t, namespace), "nothing is written")
	for _, r := range w.audit(t)[requests:] {
		leader := r.ObjectRef.Namespace == harness.DefaultNamespace && strings.HasPrefix(r.ObjectRef.Name, operatorName) // and its event
		reads := slices.Contains([]string{"get", "list", "watch"}, r.Verb)
		refused := r.ResponseStatus.Code == http.StatusConflict // what is in the way is in no cache
		assert.True(t, leader || reads || refused || r.ObjectRef.Namespace != namespace && r.ObjectRef.Namespace != harness.DefaultNamespace,
			"%s %s %s/%s", r.Verb, r.ObjectRef.Resource, r.ObjectRef.Namespace, r.ObjectRef.Name)
	}
}
