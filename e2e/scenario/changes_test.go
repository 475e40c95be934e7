package scenario

import (
	"context"
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func changedWhileSyncing(t *testing.T, w *world) {
	image := w.create(t, w.image(w.namespace(t), "moved", w.heldAlone))
	w.syncing(t, image)
	former := childOf(image)
	w.change(t, image, w.served("noranges"))
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	assert.EqualValues(t, 1, image.Status.Attempts, "of the new spec")
	w.checkArtifact(t, image)
	assert.Equal(t, 1, w.web.Of(w.path(image, "noranges")).Complete)
	assert.Zero(t, w.web.Of(w.path(image, "gate/"+gateOf(image))).Complete)
	w.gone(t, &cdiv1.DataVolume{ObjectMeta: metav1.ObjectMeta{Namespace: image.Namespace, Name: former}})
}

func (w *world) gone(t *testing.T, object client.Object) {
	t.Helper()
	require.Eventually(t, func() bool {
		return apierrors.IsNotFound(w.client.Get(context.Background(), client.ObjectKeyFromObject(object), object))
	}, w.patience, w.poll, "%T %s goes", object, object.GetName())
}

func changedWhenFailed(t *testing.T, w *world) {
	image := w.create(t, w.image(w.namespace(t), "lost", w.served("status/404")))
	w.fails(t, image, v1alpha1.FailureSourceNotFound, allAttempts)
	w.change(t, image, w.served("ok"))
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	assert.EqualValues(t, 1, image.Status.Attempts, "of the new spec")
	assert.Nil(t, image.Status.LastFailure)
	assert.Equal(t, allAttempts, w.web.Of(w.path(image, "status/404")).PlainGets)
	w.checkArtifact(t, image)
}

// request asks for a fresh sync as docs tell people to.
func (w *world) request(t *testing.T, image *v1alpha1.VMDiskImage) {
	t.Helper()
	_, err := w.cluster.Kubectl(t.Context(), "", "annotate", "vmdi/"+image.Name, "-n", image.Namespace, "--overwrite",
		v1alpha1.AnnotationSyncRequestedAt+"=2026-01-01T00:00:00Z")
	require.NoError(t, err)
}

func requestedWhenFailed(t *testing.T, w *world) {
	const mode = "failfirst/6" // HEAD and GET of three attempts
	image := w.create(t, w.image(w.namespace(t), "tired", w.served(mode)))
	w.fails(t, image, v1alpha1.FailureUnreachable, allAttempts)
	w.request(t, image)
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	assert.EqualValues(t, 1, image.Status.Attempts)
	w.checkArtifact(t, image)
}

func requestedWhenSucceeded(t *testing.T, w *world) {
	image := w.create(t, w.image(w.namespace(t), "old"))
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	former := image.Status.Artifact.Revision
	w.request(t, image)
	w.await(t, image, "made afresh", func(i *v1alpha1.VMDiskImage) bool {
		assert.True(t, meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionReady), "the former copy is there to be cloned")
		return i.Status.Artifact.Revision != former && i.Status.Phase == v1alpha1.PhaseSucceeded
	})
	w.checkArtifact(t, image)
	assert.Equal(t, 2, w.web.Of(w.path(image, "ok")).Complete, "downloads")
}

func deletedAndCreatedAgain(t *testing.T, w *world) {
	namespace := w.namespace(t)
	first := w.create(t, w.image(namespace, "again", w.heldAlone))
	w.syncing(t, first)
	require.NoError(t, w.client.Delete(t.Context(), first))
	second := w.create(t, w.image(namespace, "again", w.heldAlone))
	require.NotEqual(t, first.UID, second.UID)
	w.letGo(second)
	w.becomes(t, second, v1alpha1.PhaseSucceeded)
	assert.EqualValues(t, 1, second.Status.Attempts)
	w.checkArtifact(t, second)
	w.holdsNothing(t, first)
}

// foreignDataVolume has somebody else's DataVolume where the image's is to be.
func foreignDataVolume(t *testing.T, w *world) {
	namespace := w.namespace(t)
	image := w.image(namespace, "taken")
	foreign := &cdiv1.DataVolume{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: childOf(image), Labels: map[string]string{"app": "somebody"},
			Annotations: map[string]string{"cdi.kubevirt.io/storage.bind.immediate.requested": "true"},
		},
		Spec: cdiv1.DataVolumeSpec{
			Source: &cdiv1.DataVolumeSource{Blank: &cdiv1.DataVolumeBlankImage{}},
			Storage: &cdiv1.StorageSpec{Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: image.Spec.DiskSize},
			}},
		},
	}
	require.NoError(t, w.client.Create(t.Context(), foreign))
	uid := foreign.UID
	require.Eventually(t, func() bool {
		return w.client.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign) == nil && foreign.Status.Phase == cdiv1.Succeeded
	}, w.patience, w.poll)

	w.create(t, image)
	w.fails(t, image, v1alpha1.FailureUnknown, allAttempts)
	assert.Contains(t, image.Status.Message, foreign.Name)
	assert.Regexp(t, "exists", image.Status.Message)
	assert.Zero(t, w.web.Of(w.path(image, "ok")).Requests)
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign))
	assert.Equal(t, uid, foreign.UID)
	assert.Nil(t, foreign.DeletionTimestamp)
	assert.Empty(t, foreign.OwnerReferences)
	assert.Equal(t, map[string]string{"app": "somebody"}, foreign.Labels)
}
