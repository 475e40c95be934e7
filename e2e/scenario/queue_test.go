package scenario

import (
	"fmt"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// several creates images one after the other, in the namespaces by turns.
func (w *world) several(t *testing.T, n int, namespaces []string, mods ...func(*v1alpha1.VMDiskImage)) []*v1alpha1.VMDiskImage {
	t.Helper()
	var images []*v1alpha1.VMDiskImage
	for i := range n {
		images = append(images, w.create(t, w.image(namespaces[i%len(namespaces)], fmt.Sprintf("image-%02d", n-i), mods...)))
	}
	return images
}

func (w *world) allSucceed(t *testing.T, images []*v1alpha1.VMDiskImage) {
	t.Helper()
	for _, image := range images {
		w.becomes(t, image, v1alpha1.PhaseSucceeded)
		assert.EqualValues(t, 1, image.Status.Attempts, "attempts of %s", image.Name)
	}
}

// held by a gate of its own name.
func (w *world) heldAlone(image *v1alpha1.VMDiskImage) { w.held(gateOf(image))(image) }

func gateOf(image *v1alpha1.VMDiskImage) string { return image.Namespace + "-" + image.Name }

func (w *world) letGo(images ...*v1alpha1.VMDiskImage) {
	for _, image := range images {
		w.web.Open(gateOf(image))
	}
}

// syncing waits until the image has a slot and its importer stands before the gate.
func (w *world) syncing(t *testing.T, image *v1alpha1.VMDiskImage) {
	t.Helper()
	w.becomes(t, image, v1alpha1.PhaseSyncing)
	require.Eventually(t, func() bool { return w.web.Of(w.path(image, "gate/"+gateOf(image))).Active > 0 }, w.patience, w.poll)
}

func limitAndOrder(t *testing.T, w *world) {
	const limit = 3
	w.policy(t, map[string]string{policy.KeyConcurrency: fmt.Sprint(limit)})
	namespaces := []string{w.namespace(t), w.namespace(t)}
	film := w.film(t, namespaces...)
	began := time.Now()
	images := w.several(t, 12, namespaces)
	w.allSucceed(t, images)
	t.Logf("12 images after %s", time.Since(began).Round(time.Millisecond))
	film.keptTo(t, limit)
	assert.Equal(t, keysOf(images), film.order(), "the order of creation")
	for _, image := range images {
		assert.Equal(t, 1, w.web.Of(w.path(image, "ok")).Complete, "downloads of %s", image.Name)
	}
}

func limitChanges(t *testing.T, w *world) {
	w.policy(t, map[string]string{policy.KeyConcurrency: "1"})
	namespace := w.namespace(t)
	film := w.film(t, namespace)
	images := w.several(t, 6, []string{namespace}, w.heldAlone)
	w.syncing(t, images[0])
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(images[1]), images[1]))
	assert.NotEqual(t, v1alpha1.PhaseSyncing, images[1].Status.Phase)

	w.policy(t, map[string]string{policy.KeyConcurrency: "4"})
	for _, image := range images[:4] {
		w.syncing(t, image)
	}
	w.policy(t, map[string]string{policy.KeyConcurrency: "1"})
	w.letGo(images[:3]...)
	w.allSucceed(t, images[:3])
	w.becomes(t, images[3], v1alpha1.PhaseSyncing) // it goes on, above the limit as it was
	w.letGo(images[3:]...)
	w.allSucceed(t, images)

	film.keptTo(t, 4)
	assert.Equal(t, keysOf(images), film.order())
	for _, image := range images[4:] {
		assert.Equal(t, 1, film.startOf(t, image).syncing, "%s begins alone", image.Name)
	}
}

func changedWhileQueued(t *testing.T, w *world) {
	w.policy(t, map[string]string{policy.KeyConcurrency: "1"})
	namespace := w.namespace(t)
	film := w.film(t, namespace)
	first := w.create(t, w.image(namespace, "first", w.heldAlone))
	second := w.create(t, w.image(namespace, "second"))
	third := w.create(t, w.image(namespace, "third"))
	w.syncing(t, first)
	w.becomes(t, second, v1alpha1.PhaseQueued)
	former := second.Status.Ticket
	w.change(t, second, w.served("noranges"))
	w.await(t, second, "queued anew", func(i *v1alpha1.VMDiskImage) bool { return i.Status.Ticket > former })
	w.letGo(first)
	w.allSucceed(t, []*v1alpha1.VMDiskImage{first, second, third})
	assert.Zero(t, w.web.Of(w.path(second, "ok")).Requests, "of the former url")
	assert.Equal(t, 1, w.web.Of(w.path(second, "noranges")).Complete)
	assert.Equal(t, keysOf([]*v1alpha1.VMDiskImage{first, third, second}), film.order(), "a changed image is a new one in the queue")
}

func stalled(t *testing.T, w *world) {
	w.policy(t, map[string]string{policy.KeyConcurrency: "1", policy.KeyRetryLimit: "0", policy.KeyStallTimeout: w.stall.String()})
	namespace := w.namespace(t)
	film := w.film(t, namespace)
	mute := w.create(t, w.image(namespace, "mute", w.served("hang")))
	next := w.create(t, w.image(namespace, "next"))
	w.becomes(t, mute, v1alpha1.PhaseSyncing)
	began := mute.Status.StartedAt.Time
	w.fails(t, mute, v1alpha1.FailureStalled, 1)
	assert.GreaterOrEqual(t, mute.Status.LastFailure.Time.Sub(began), w.stall.Truncate(time.Second)-time.Second)
	w.becomes(t, next, v1alpha1.PhaseSucceeded)
	assert.Greater(t, film.startOf(t, next).revision, film.goneAt(t, mute), "the next one begins when the DataVolume is gone")
	assert.Zero(t, w.web.Of(w.path(mute, "hang")).Active, "nobody waits for the image any more")
}

func deletedWhileSyncing(t *testing.T, w *world) {
	w.policy(t, map[string]string{policy.KeyConcurrency: "1"})
	namespace := w.namespace(t)
	film := w.film(t, namespace)
	unwanted := w.create(t, w.image(namespace, "unwanted", w.heldAlone))
	next := w.create(t, w.image(namespace, "next"))
	w.syncing(t, unwanted)
	_, err := w.cluster.Kubectl(t.Context(), "", "delete", "vmdi/unwanted", "-n", namespace)
	require.NoError(t, err)
	w.becomes(t, next, v1alpha1.PhaseSucceeded)
	assert.Greater(t, film.startOf(t, next).revision, film.goneAt(t, unwanted), "the slot is free when the DataVolume is gone")
	film.keptTo(t, 1)
	require.Eventually(t, func() bool { return w.web.Of(w.path(unwanted, "gate/"+gateOf(unwanted))).Active == 0 }, w.patience, w.poll)
	w.told(t, next, map[string]int{"Syncing": 1, "Succeeded": 1})
}
