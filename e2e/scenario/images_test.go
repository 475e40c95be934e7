package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namespace makes one for a story and lets it go, with all that is in it, when the story is over.
func (w *world) namespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "ot-e2e-", Labels: map[string]string{labelTest: "story"}}}
	require.NoError(t, w.client.Create(t.Context(), namespace))
	t.Cleanup(func() {
		if t.Failed() {
			w.show(t, namespace.Name)
		}
		assert.NoError(t, client.IgnoreNotFound(w.client.Delete(context.Background(), namespace)))
	})
	return namespace.Name
}

// show prints what there is of a story that has failed.
func (w *world) show(t *testing.T, namespace string) {
	t.Helper()
	for _, args := range [][]string{
		{"get", "dsync,vmdi,dv,pvc,pods,volumesnapshots,events", "-n", namespace, "-o", "wide"},
		{"get", "dsync,vmdi,dv,pods", "-n", namespace, "-o", "yaml", "--show-managed-fields=false"},
		{"get", "leases", "-n", harness.DefaultNamespace, "-o", "wide"},
	} {
		out, err := w.cluster.Kubectl(context.Background(), "", args...)
		t.Logf("kubectl %s\n%s%v", strings.Join(args, " "), out, err)
	}
}

// image is one that the story's server gives out properly; mods make it what the story wants.
func (w *world) image(namespace, name string, mods ...func(*v1alpha1.VMDiskImage)) *v1alpha1.VMDiskImage {
	image := &v1alpha1.VMDiskImage{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.VMDiskImageSpec{SourceType: v1alpha1.SourceHTTP, DiskSize: resource.MustParse("32Mi")},
	}
	image.Spec.URL = w.web.URL(w.path(image, "ok"))
	for _, mod := range mods {
		mod(image)
	}
	return image
}

// path is one that only this image asks for, in a mode of the image server such as ok or cut/1000.
func (w *world) path(image *v1alpha1.VMDiskImage, mode string) string {
	file := image.Namespace + "-" + image.Name + ".qcow2"
	w.web.Add(file, w.disk.Bytes)
	w.tls.Add(file, w.disk.Bytes)
	return "/" + mode + "/" + file
}

// served is a mode in which the image server serves the image.
func (w *world) served(mode string) func(*v1alpha1.VMDiskImage) {
	return func(image *v1alpha1.VMDiskImage) { image.Spec.URL = w.web.URL(w.path(image, mode)) }
}

// held is an image that is not sent before the gate is opened.
func (w *world) held(gate string) func(*v1alpha1.VMDiskImage) { return w.served("gate/" + gate) }

func (w *world) create(t *testing.T, image *v1alpha1.VMDiskImage) *v1alpha1.VMDiskImage {
	t.Helper()
	require.NoError(t, w.client.Create(t.Context(), image))
	return image
}

// change writes a change of the image, again if somebody else writes it at the same time.
func (w *world) change(t *testing.T, image *v1alpha1.VMDiskImage, change func(*v1alpha1.VMDiskImage)) {
	t.Helper()
	before := image.DeepCopy()
	change(image)
	require.NoError(t, w.client.Patch(t.Context(), image, client.MergeFrom(before)))
}

// await returns when the image is as it should be, or says what it is instead.
func (w *world) await(t *testing.T, image *v1alpha1.VMDiskImage, what string, holds func(*v1alpha1.VMDiskImage) bool) {
	t.Helper()
	deadline := time.Now().Add(w.patience)
	for {
		require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(image), image))
		if holds(image) {
			return
		}
		require.True(t, time.Now().Before(deadline), "%s is not %s but %s: %s", image.Name, what, image.Status.Phase, image.Status.Message)
		time.Sleep(w.poll)
	}
}

// becomes waits for the phase. An image that has come to another end will not get there.
func (w *world) becomes(t *testing.T, image *v1alpha1.VMDiskImage, phase v1alpha1.Phase) {
	t.Helper()
	generation := image.Generation
	w.await(t, image, string(phase), func(i *v1alpha1.VMDiskImage) bool {
		if i.Status.ObservedGeneration < generation {
			return false // of the former spec
		}
		if phase == v1alpha1.PhaseSucceeded && i.Status.Revision == v1alpha1.RevisionOf(i) {
			require.NotEqual(t, v1alpha1.PhaseFailed, i.Status.Phase, "%s: %s", i.Name, i.Status.Message)
		}
		return i.Status.Phase == phase && i.Status.Revision == v1alpha1.RevisionOf(i)
	})
}

// fails waits for the end of an image that cannot be had.
func (w *world) fails(t *testing.T, image *v1alpha1.VMDiskImage, reason v1alpha1.FailureReason, attempts int32) {
	t.Helper()
	w.becomes(t, image, v1alpha1.PhaseFailed)
	require.NotNil(t, image.Status.LastFailure)
	assert.Equal(t, reason, image.Status.LastFailure.Reason, image.Status.LastFailure.Message)
	assert.Equal(t, attempts, image.Status.Attempts, "attempts")
	stalled := meta.FindStatusCondition(image.Status.Conditions, v1alpha1.ConditionStalled)
	assert.Equal(t, metav1.ConditionTrue, stalled.Status)
	assert.Equal(t, string(reason), stalled.Reason)
	assert.False(t, image.IsReady())
	assert.Contains(t, image.Status.Message, string(reason))
	w.holdsNothing(t, image)
}

// holdsNothing waits until the image has no slot, and then no DataVolume, claim or pod either.
func (w *world) holdsNothing(t *testing.T, image *v1alpha1.VMDiskImage) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.NotContains(c, w.holders(c), v1alpha1.SlotHolder(client.ObjectKeyFromObject(image), image.UID))
	}, w.patience, w.poll, "the slot is given up")
	dv := &cdiv1.DataVolume{}
	err := w.client.Get(t.Context(), client.ObjectKey{Namespace: image.Namespace, Name: childOf(image)}, dv)
	if err == nil && metav1.IsControlledBy(dv, image) {
		assert.Equal(t, cdiv1.Succeeded, dv.Status.Phase, "the slot was given up, so that the DataVolume must have succeeded or be gone")
		return
	}
	assert.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
}

// holders are those of the slots.
func (w *world) holders(t require.TestingT) []string {
	leases := &coordinationv1.LeaseList{}
	require.NoError(t, w.client.List(context.Background(), leases, client.InNamespace(harness.DefaultNamespace), client.HasLabels{v1alpha1.LabelSlot}))
	var holders []string
	for _, lease := range leases.Items {
		if lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
			holders = append(holders, *lease.Spec.HolderIdentity)
		}
	}
	return holders
}

// childOf is the name of the image's children, for the spec that it has.
func childOf(image *v1alpha1.VMDiskImage) string {
	return v1alpha1.ChildName(image.Name, v1alpha1.RevisionOf(image))
}

// told waits until the object's events are those, in any order, and no more: each is a reason, with a number for repeats.
func (w *world) told(t *testing.T, about client.Object, want map[string]int) {
	t.Helper()
	var last map[string]int
	assert.Eventually(t, func() bool {
		events := &eventsv1.EventList{}
		if w.client.List(t.Context(), events, client.InNamespace(about.GetNamespace())) != nil {
			return false
		}
		last = map[string]int{}
		for _, event := range events.Items {
			if event.Regarding.UID == about.GetUID() {
				last[event.Reason]++
				if event.Series != nil {
					last[event.Reason] += int(event.Series.Count) - 1
				}
			}
		}
		return fmt.Sprint(last) == fmt.Sprint(want)
	}, w.patience/4, w.poll, "the events")
	assert.Equal(t, want, last, "the events of %s", about.GetName())
}

// messages are what was said of the image, for an assertion's message.
func (w *world) messages(image *v1alpha1.VMDiskImage) string {
	var lines []string
	for _, c := range image.Status.Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
