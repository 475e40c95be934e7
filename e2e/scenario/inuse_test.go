package scenario

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	ac "github.com/pelotech/open-terrain/apis/ot/v1alpha1/applyconfiguration/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/pelotech/open-terrain/e2e/chart"
	"github.com/pelotech/open-terrain/e2e/faultproxy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const inUseBinding = operatorName + "-inuse-protection"

// tryClaim writes the references as whoever uses an image has to: under a field manager of its own, and bound to the object
// that was looked at.
func (w *world) tryClaim(image *v1alpha1.VMDiskImage, count int32, users ...string) error {
	references := ac.References().WithCount(count).WithSample(users...).WithLastReferencedAt(metav1.Now())
	apply := ac.VMDiskImage(image.Name, image.Namespace).WithUID(image.UID).WithResourceVersion(image.ResourceVersion).
		WithStatus(ac.VMDiskImageStatus().WithReferences(references))
	return w.client.Status().Apply(context.Background(), apply, client.FieldOwner("vm-operator"), client.ForceOwnership)
}

// claim tries until nobody else writes the image at the same time.
func (w *world) claim(t *testing.T, image *v1alpha1.VMDiskImage, count int32, users ...string) {
	t.Helper()
	if count > 0 {
		w.released(t, image)
	}
	require.Eventually(t, func() bool {
		require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(image), image))
		err := w.tryClaim(image, count, users...)
		require.True(t, err == nil || apierrors.IsConflict(err), "%v", err)
		return err == nil
	}, w.patience, w.poll)
}

// released when the story is over: otherwise its namespace would wait for ever.
func (w *world) released(t *testing.T, image *v1alpha1.VMDiskImage) {
	t.Helper()
	key := client.ObjectKeyFromObject(image)
	t.Cleanup(func() {
		assert.Eventually(t, func() bool {
			current := &v1alpha1.VMDiskImage{}
			err := w.client.Get(context.Background(), key, current)
			return apierrors.IsNotFound(err) || err == nil && w.tryClaim(current, 0) == nil
		}, w.patience, w.poll, "%s is released", key)
	})
}

func isProtected(i *v1alpha1.VMDiskImage) bool {
	return slices.Contains(i.Finalizers, v1alpha1.FinalizerProtection)
}

func (w *world) protected(t *testing.T, image *v1alpha1.VMDiskImage) {
	t.Helper()
	w.await(t, image, "protected", isProtected)
}

// settledAt has the operator look at the image again, and sees that it writes nothing.
func (w *world) settledAt(t *testing.T, image *v1alpha1.VMDiskImage) {
	t.Helper()
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(image), image))
	before := image.ResourceVersion
	_, err := w.cluster.Kubectl(t.Context(), "", "annotate", "dv/"+childOf(image), "-n", image.Namespace, "--overwrite", "example.com/look=again")
	require.NoError(t, err)
	time.Sleep(time.Second)
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(image), image))
	assert.Equal(t, before, image.ResourceVersion, "nothing has changed, and nothing is written: %s", image.Status.Message)
}

// withChildren says that volume and snapshot are there and are not being deleted.
func (w *world) withChildren(t *testing.T, image *v1alpha1.VMDiskImage) {
	t.Helper()
	for _, child := range []client.Object{&cdiv1.DataVolume{}, &snapshotv1.VolumeSnapshot{}} {
		require.NoError(t, w.client.Get(t.Context(), client.ObjectKey{Namespace: image.Namespace, Name: childOf(image)}, child))
		assert.Nil(t, child.GetDeletionTimestamp(), "%T", child)
	}
}

func (w *world) withoutChildren(t *testing.T, image *v1alpha1.VMDiskImage) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: image.Namespace, Name: childOf(image)}
	w.gone(t, &cdiv1.DataVolume{ObjectMeta: meta})
	w.gone(t, &snapshotv1.VolumeSnapshot{ObjectMeta: meta})
}

func unusedTTL(ttl time.Duration) func(*v1alpha1.VMDiskImage) {
	return func(i *v1alpha1.VMDiskImage) { i.Spec.UnusedTTL = &metav1.Duration{Duration: ttl} }
}

// finalizerFollowsTheReferences through all the phases of an image.
func finalizerFollowsTheReferences(t *testing.T, w *world) {
	image := w.create(t, w.image(w.namespace(t), "claimed", w.heldAlone))
	w.syncing(t, image)
	assert.Empty(t, image.Finalizers)
	w.claim(t, image, 1, "lab/web")
	w.protected(t, image)
	w.letGo(image)
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	assert.EqualValues(t, 1, image.Status.Attempts)
	assert.EqualValues(t, 1, image.Status.References.Count, "the operator's writes leave it alone")
	_, err := w.cluster.Kubectl(t.Context(), "", "delete", "vmdi/claimed", "-n", image.Namespace)
	assert.ErrorContains(t, err, "1 virtual machine uses this image (lab/web)")
	w.claim(t, image, 2, "lab/web", "lab/db")
	w.settledAt(t, image)
	require.True(t, isProtected(image))

	w.change(t, image, func(i *v1alpha1.VMDiskImage) { i.Finalizers = nil })
	w.protected(t, image) // whoever takes it away

	w.claim(t, image, 0)
	w.await(t, image, "released", func(i *v1alpha1.VMDiskImage) bool { return !isProtected(i) })
	w.settledAt(t, image)
	_, err = w.cluster.Kubectl(t.Context(), "", "delete", "vmdi/claimed", "-n", image.Namespace)
	require.NoError(t, err)
	w.withoutChildren(t, image)
}

// restoredWithFinalizer came with the finalizer, under somebody else's name, as from a backup.
func restoredWithFinalizer(t *testing.T, w *world) {
	image := w.create(t, w.image(w.namespace(t), "restored", func(i *v1alpha1.VMDiskImage) {
		i.Finalizers = []string{v1alpha1.FinalizerProtection}
	}))
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	w.await(t, image, "rid of it", func(i *v1alpha1.VMDiskImage) bool { return !isProtected(i) })
}

func prunedWhenUnused(t *testing.T, w *world) {
	const ttl = 4 * time.Second
	image := w.create(t, w.image(w.namespace(t), "forgotten", unusedTTL(ttl)))
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	require.NotNil(t, image.Status.ExpiresAt, "it is told beforehand")
	assert.Equal(t, ttl, image.Status.ExpiresAt.Sub(image.Status.CompletedAt.Time))
	expires := image.Status.ExpiresAt.Time
	w.settledAt(t, image)
	w.gone(t, image)
	assert.False(t, time.Now().Before(expires), "not before its time")
	w.withoutChildren(t, image)
	w.told(t, image, map[string]int{"Syncing": 1, "Succeeded": 1, "Pruned": 1})
	if !w.real {
		assert.Regexp(t, `disksync_pruned_images_total [1-9]`, w.metric(t, "disksync_pruned_images_total"))
		assert.Regexp(t, `disksync_pruned_bytes_total [1-9]`, w.metric(t, "disksync_pruned_bytes_total"))
	}
}

func keptWhileUsed(t *testing.T, w *world) {
	const ttl = 3 * time.Second
	image := w.create(t, w.image(w.namespace(t), "needed", unusedTTL(ttl)))
	w.claim(t, image, 1, "lab/web")
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	w.protected(t, image)
	assert.Nil(t, image.Status.ExpiresAt)
	time.Sleep(ttl + 2*time.Second)
	w.settledAt(t, image)
	require.Nil(t, image.DeletionTimestamp)

	w.claim(t, image, 0)
	w.await(t, image, "to be pruned", func(i *v1alpha1.VMDiskImage) bool { return i.Status.ExpiresAt != nil })
	last := image.Status.References.LastReferencedAt.Time
	assert.Equal(t, ttl, image.Status.ExpiresAt.Sub(last), "its last use moves the deadline")
	w.gone(t, image)
	assert.False(t, time.Now().Before(last.Add(ttl)))
}

func dryRunTells(t *testing.T, w *world) {
	image := w.create(t, w.image(w.namespace(t), "looked-at", unusedTTL(2*time.Second), func(i *v1alpha1.VMDiskImage) {
		i.Annotations = map[string]string{v1alpha1.AnnotationDryRun: "true"}
	}))
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	w.wouldGo(t, image)
	w.settledAt(t, image)
	w.told(t, image, map[string]int{"Syncing": 1, "Succeeded": 1, "WouldPrune": 1})
	w.withChildren(t, image)

	_, err := w.cluster.Kubectl(t.Context(), "", "annotate", "vmdi/looked-at", "-n", image.Namespace, v1alpha1.AnnotationDryRun+"-")
	require.NoError(t, err)
	w.gone(t, image)
	w.told(t, image, map[string]int{"Syncing": 1, "Succeeded": 1, "WouldPrune": 1, "Pruned": 1})
}

func (w *world) wouldGo(t *testing.T, image *v1alpha1.VMDiskImage) {
	t.Helper()
	w.await(t, image, "about to be pruned but for the dry run", func(i *v1alpha1.VMDiskImage) bool {
		require.Nil(t, i.DeletionTimestamp)
		return i.Status.ExpiresAt != nil && i.Status.Message ==
			"The snapshot is ready to be cloned, and nothing uses it: without the dry run it would have been pruned at "+i.Status.ExpiresAt.UTC().Format(time.RFC3339)
	})
}

// expiryByPolicy begins and ends with the policy, dry run first as people would.
func expiryByPolicy(t *testing.T, w *world) {
	w.policy(t, nil)
	namespace := w.namespace(t)
	owner := w.image(namespace, "owner", w.heldAlone, unusedTTL(0)) // any object will do
	w.create(t, owner)
	common := w.create(t, w.image(namespace, "common"))
	pinned := w.create(t, w.image(namespace, "pinned", unusedTTL(0)))
	owned := w.create(t, w.image(namespace, "owned", func(i *v1alpha1.VMDiskImage) {
		i.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1alpha1.SchemeGroupVersion.WithKind("VMDiskImage"))}
	}))
	all := []*v1alpha1.VMDiskImage{common, pinned, owned}
	w.allSucceed(t, all)
	for _, image := range all {
		assert.Nil(t, image.Status.ExpiresAt, image.Name)
	}

	w.dryRun(t, "true")
	t.Cleanup(func() { w.dryRun(t, "") })
	w.policy(t, map[string]string{policy.KeyUnusedImageTTL: "2s"})
	w.wouldGo(t, common)
	w.policy(t, map[string]string{policy.KeyUnusedImageTTL: "1h"})
	w.await(t, common, "given more time", func(i *v1alpha1.VMDiskImage) bool {
		return i.Status.ExpiresAt.Sub(i.Status.CompletedAt.Time) == time.Hour && i.Status.Message == "The snapshot is ready to be cloned"
	})
	w.policy(t, map[string]string{policy.KeyUnusedImageTTL: "2s"})
	w.wouldGo(t, common)

	w.dryRun(t, "")
	w.gone(t, common)
	w.policy(t, nil)
	for _, image := range all[1:] {
		w.settledAt(t, image)
		assert.Nil(t, image.Status.ExpiresAt, image.Name)
		assert.Nil(t, image.DeletionTimestamp, image.Name)
	}
}

// dryRun sets the annotation of the policy's ConfigMap.
func (w *world) dryRun(t *testing.T, value string) {
	t.Helper()
	change := v1alpha1.AnnotationDryRun + "=" + value
	if value == "" {
		change = v1alpha1.AnnotationDryRun + "-"
	}
	_, err := w.cluster.Kubectl(context.Background(), "", "annotate", "--overwrite", "cm/"+v1alpha1.PolicyConfigMapName, "-n", chart.Namespace, change)
	assert.NoError(t, err)
}

func expiryOutlivesTheOperator(t *testing.T, w *world) {
	w.policy(t, nil)
	namespace := w.namespace(t)
	long, short := w.create(t, w.image(namespace, "long", unusedTTL(time.Hour))), w.create(t, w.image(namespace, "short", unusedTTL(5*time.Second)))
	w.becomes(t, short, v1alpha1.PhaseSucceeded)
	w.becomes(t, long, v1alpha1.PhaseSucceeded)
	events := map[string]int{"Syncing": 1, "Succeeded": 1}
	w.told(t, long, events)
	before := long.ResourceVersion
	w.operator.Kill()
	time.Sleep(time.Until(short.Status.ExpiresAt.Time) + 500*time.Millisecond)
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(short), short), "nobody else prunes it")
	w.startOperator(t)
	w.awaitReady(t)
	w.gone(t, short)
	w.settledAt(t, long)
	assert.Equal(t, before, long.ResourceVersion)
	w.told(t, long, events)
}

// deletionIsHeld by the finalizer alone, where the policy is not installed.
func deletionIsHeld(t *testing.T, w *world) {
	w.policy(t, map[string]string{policy.KeyConcurrency: "1"})
	namespace := w.namespace(t)
	used := w.create(t, w.image(namespace, "used"))
	w.becomes(t, used, v1alpha1.PhaseSucceeded)
	awaited := w.create(t, w.image(namespace, "awaited", w.heldAlone))
	w.syncing(t, awaited)
	for _, image := range []*v1alpha1.VMDiskImage{used, awaited} {
		w.claim(t, image, 1, "lab/web")
		w.protected(t, image)
	}
	w.withoutInUsePolicy(t, used)
	next := w.create(t, w.image(namespace, "next"))

	_, err := w.cluster.Kubectl(t.Context(), "", "delete", "vmdi/used", "vmdi/awaited", "-n", namespace, "--wait=false")
	require.NoError(t, err)
	for _, image := range []*v1alpha1.VMDiskImage{used, awaited} {
		w.await(t, image, "held", func(i *v1alpha1.VMDiskImage) bool {
			return i.DeletionTimestamp != nil && i.Status.Message == "Deletion waits for the virtual machine that uses it: lab/web"
		})
	}
	w.becomes(t, next, v1alpha1.PhaseSucceeded) // in the slot of the one whose sync was ended
	w.holdsNothing(t, awaited)
	assert.Equal(t, v1alpha1.PhaseQueued, awaited.Status.Phase)
	w.withoutChildren(t, awaited)
	w.settledAt(t, used)
	w.withChildren(t, used)
	assert.True(t, used.IsReady())
	w.claim(t, used, 2, "lab/web", "lab/db")
	w.await(t, used, "held by both", func(i *v1alpha1.VMDiskImage) bool {
		return i.Status.Message == "Deletion waits for the 2 virtual machines that use it: lab/web, lab/db"
	})

	w.claim(t, used, 0)
	w.claim(t, awaited, 0)
	w.gone(t, used)
	w.gone(t, awaited)
	w.withoutChildren(t, used)
	again := w.create(t, w.image(namespace, "used"))
	w.becomes(t, again, v1alpha1.PhaseSucceeded)
	w.told(t, used, map[string]int{"Syncing": 1, "Succeeded": 1})
}

// namespaceGoesWhileUsed: its volumes and snapshots are gone at once, and cannot be made again; the image stays until it is
// released, and keeps nobody from his turn.
func namespaceGoesWhileUsed(t *testing.T, w *world) {
	w.policy(t, map[string]string{policy.KeyConcurrency: "1", policy.KeyRetryLimit: "0"})
	namespace := w.namespace(t)
	used := w.create(t, w.image(namespace, "used"))
	w.becomes(t, used, v1alpha1.PhaseSucceeded)
	w.claim(t, used, 1, "lab/web")
	w.protected(t, used)
	require.NoError(t, w.client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	w.withoutChildren(t, used)
	w.await(t, used, "given up", func(i *v1alpha1.VMDiskImage) bool { return i.Status.Phase == v1alpha1.PhaseFailed })
	assert.Contains(t, used.Status.Message, "is being terminated")
	assert.Nil(t, used.DeletionTimestamp)
	w.holdsNothing(t, used)
	next := w.create(t, w.image(w.namespace(t), "next"))
	w.becomes(t, next, v1alpha1.PhaseSucceeded)

	w.claim(t, used, 0)
	w.gone(t, used)
	w.gone(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
}

// withoutInUsePolicy takes the policy away for this story; the image is one that is in use.
func (w *world) withoutInUsePolicy(t *testing.T, image *v1alpha1.VMDiskImage) {
	t.Helper()
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: inUseBinding}}
	require.NoError(t, w.client.Delete(t.Context(), binding))
	t.Cleanup(func() { assert.NoError(t, chart.Install(context.Background(), w.client, chartValues(w)...)) })
	require.Eventually(t, func() bool {
		return w.client.Delete(t.Context(), image.DeepCopy(), client.DryRunAll) == nil
	}, w.patience, w.poll, "the API server hears that the policy is gone")
}

// claimBeforePrune: the claim comes when the operator has decided to prune, and before its deletion arrives.
func claimBeforePrune(t *testing.T, w *world) {
	w.policy(t, nil)
	proxy := w.behindProxy(t, faultproxy.Rule{Verb: "delete", Resource: "vmdiskimages", When: faultproxy.Hold})
	image := w.create(t, w.image(w.namespace(t), "contested", unusedTTL(2*time.Second)))
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	held := w.parked(t, proxy)
	assert.Equal(t, image.Name, held.Name)
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(image), image))
	w.released(t, image)
	require.NoError(t, w.tryClaim(image, 1, "lab/web"))
	proxy.Release()
	w.protected(t, image)
	assert.Equal(t, 409, proxy.Requests()[held.N-1].Code, "it is not what was to be deleted any more")
	w.await(t, image, "kept", func(i *v1alpha1.VMDiskImage) bool { return i.Status.ExpiresAt == nil })
	assert.Nil(t, image.DeletionTimestamp)
	w.withChildren(t, image)
	w.told(t, image, map[string]int{"Syncing": 1, "Succeeded": 1})
}

// pruneBeforeClaim: the image goes between the look of whoever wants it and his claim.
func pruneBeforeClaim(t *testing.T, w *world) {
	w.policy(t, nil)
	proxy := w.behindProxy(t, faultproxy.Rule{Verb: "delete", Resource: "vmdiskimages", When: faultproxy.Hold})
	image := w.create(t, w.image(w.namespace(t), "contested", unusedTTL(2*time.Second)))
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	w.parked(t, proxy)
	wanted := &v1alpha1.VMDiskImage{}
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(image), wanted))
	proxy.Release()
	w.gone(t, image)
	err := w.tryClaim(wanted, 1, "lab/web")
	assert.True(t, apierrors.IsNotFound(err) || apierrors.IsConflict(err), "%v", err)
	again := w.create(t, w.image(wanted.Namespace, wanted.Name))
	assert.True(t, apierrors.IsConflict(w.tryClaim(wanted, 1, "lab/web")), "another image of that name is not meant")
	w.becomes(t, again, v1alpha1.PhaseSucceeded)
	assert.Nil(t, again.Status.References)
}

// behindProxy runs the operator behind a fault proxy for the rest of the story.
func (w *world) behindProxy(t *testing.T, rules ...faultproxy.Rule) *faultproxy.Proxy {
	t.Helper()
	proxy, err := faultproxy.Start(faultproxy.Options{Config: w.cluster.Config, Rules: rules})
	require.NoError(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, proxy.WriteKubeconfig(kubeconfig))
	require.NoError(t, w.operator.Terminate(20*time.Second))
	w.startOperatorWith(t, kubeconfig)
	t.Cleanup(func() {
		w.operator.Kill()
		assert.NoError(t, proxy.Close())
		w.startOperator(t)
		w.awaitReady(t)
	})
	w.awaitReady(t)
	return proxy
}

// parked is the request that the proxy holds back.
func (w *world) parked(t *testing.T, proxy *faultproxy.Proxy) faultproxy.Request {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), w.patience)
	defer cancel()
	held, err := proxy.WaitHeld(ctx)
	require.NoError(t, err)
	return held
}
