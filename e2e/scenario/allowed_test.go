package scenario

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sources are prefixes that cover the servers of images.
func (w *world) sources() []string {
	if w.simulated == nil {
		return nil
	}
	return append(w.simulated.Sources(), w.tls.URL("/"), "https://s3.us-gov-west-1.amazonaws.com/") // of an example
}

// ledger notes who holds slots, from now to the end of the story.
func (w *world) ledger(t *testing.T) (everHeld func(*v1alpha1.VMDiskImage) bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	changes, err := w.client.Watch(ctx, &coordinationv1.LeaseList{}, client.InNamespace(harness.DefaultNamespace), client.HasLabels{v1alpha1.LabelSlot})
	require.NoError(t, err)
	var mu sync.Mutex
	var holders []string
	var done sync.WaitGroup
	t.Cleanup(func() { cancel(); changes.Stop(); done.Wait() })
	done.Go(func() {
		for event := range changes.ResultChan() {
			if lease, is := event.Object.(*coordinationv1.Lease); is {
				mu.Lock()
				holders = append(holders, ptr.Deref(lease.Spec.HolderIdentity, ""))
				mu.Unlock()
			}
		}
	})
	return func(image *v1alpha1.VMDiskImage) bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Contains(holders, v1alpha1.SlotHolder(client.ObjectKeyFromObject(image), image.UID))
	}
}

// sourceNotAllowed has the servers of images refused, for they have no public addresses, and admits them later.
func sourceNotAllowed(t *testing.T, w *world) {
	w.policy(t, map[string]string{policy.KeyConcurrency: "7", policy.KeyAllowedSources: ""})
	namespace := w.namespace(t)
	everHeld := w.ledger(t)
	image := w.create(t, w.image(namespace, "refused"))
	w.fails(t, image, v1alpha1.FailureSourceNotAllowed, 0)
	assert.Contains(t, image.Status.Message, "Nothing was downloaded: SourceNotAllowed: ")
	assert.Contains(t, image.Status.Message, "allowedSources of the ConfigMap sync-operator-policy", "what to change")
	w.told(t, image, map[string]int{"Failed": 1})
	assert.Zero(t, w.web.Of(w.path(image, "ok")).Requests)
	assert.False(t, everHeld(image), "it never held a slot")

	w.policy(t, map[string]string{policy.KeyConcurrency: "6", policy.KeyAllowedSources: "https://images.example.com/"})
	w.change(t, image, func(i *v1alpha1.VMDiskImage) { i.Spec.URL = "https://images.example.com.evil.example.org/disk" })
	w.fails(t, image, v1alpha1.FailureSourceNotAllowed, 0)
	assert.False(t, everHeld(image))

	w.change(t, image, w.served("ok"))
	w.fails(t, image, v1alpha1.FailureSourceNotAllowed, 0)
	w.policy(t, nil)
	w.await(t, image, "Succeeded, by itself", func(i *v1alpha1.VMDiskImage) bool { return i.Status.Phase == v1alpha1.PhaseSucceeded })
	assert.EqualValues(t, 1, image.Status.Attempts)
	assert.Nil(t, image.Status.LastFailure)
	assert.Equal(t, 1, w.web.Of(w.path(image, "ok")).Complete)
	assert.True(t, everHeld(image), "a slot that is held is noticed")
	w.checkArtifact(t, image)
}

// policyTightened refuses the source of an image that syncs, of one that waits and of one that is being updated.
func policyTightened(t *testing.T, w *world) {
	w.policy(t, map[string]string{policy.KeyConcurrency: "1"})
	namespace := w.namespace(t)
	film := w.film(t, namespace)
	ready := w.create(t, w.image(namespace, "ready"))
	w.becomes(t, ready, v1alpha1.PhaseSucceeded)
	former := ready.Status.Artifact.Revision
	syncing := w.create(t, w.image(namespace, "syncing", w.heldAlone))
	w.syncing(t, syncing)
	waiting := w.create(t, w.image(namespace, "waiting"))
	w.becomes(t, waiting, v1alpha1.PhaseQueued)

	w.policy(t, map[string]string{policy.KeyConcurrency: "2", policy.KeyAllowedSources: ""})
	w.fails(t, waiting, v1alpha1.FailureSourceNotAllowed, 0)
	w.change(t, ready, w.served("noranges"))
	w.becomes(t, ready, v1alpha1.PhaseFailed)
	assert.True(t, ready.IsReady(), "with what it has")
	assert.Equal(t, former, ready.Status.Artifact.Revision)
	w.letGo(syncing)
	w.becomes(t, syncing, v1alpha1.PhaseSucceeded)
	assert.EqualValues(t, 1, syncing.Status.Attempts, "what runs is not stopped")

	w.policy(t, nil)
	for _, image := range []*v1alpha1.VMDiskImage{waiting, ready} {
		w.await(t, image, "Succeeded, by itself", func(i *v1alpha1.VMDiskImage) bool { return i.Status.Phase == v1alpha1.PhaseSucceeded })
		w.checkArtifact(t, image)
	}
	assert.Equal(t, 1, w.web.Of(w.path(waiting, "ok")).Complete)
	assert.Equal(t, 1, w.web.Of(w.path(ready, "noranges")).Complete)
	film.keptTo(t, 2)
}
