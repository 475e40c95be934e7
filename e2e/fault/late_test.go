package fault

import (
	"context"
	"testing"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/fault/lab"
	"github.com/pelotech/open-terrain/e2e/faultproxy"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/pelotech/open-terrain/e2e/invariant"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const fence = "disk-sync-operator-slot-fence"

// lateWrites of a leader that was paused arrive when the image has failed and its slot is another's.
func lateWrites(t *testing.T, w *lab.World) {
	for name, rule := range map[string]faultproxy.Rule{
		"slot":       {Resource: "leases", Name: otv1alpha1.SlotName(0), Nth: 1, When: faultproxy.Hold},
		"status":     {Resource: "vmdiskimages", Subresource: "status", Nth: 1, When: faultproxy.Hold},
		"datavolume": {Resource: "datavolumes", Verb: "create", Nth: 1, When: faultproxy.Hold},
		"mark":       {Resource: "leases", Name: otv1alpha1.SlotName(0), Nth: 2, When: faultproxy.Hold},
		"failure":    {Resource: "vmdiskimages", Subresource: "status", Nth: 2, When: faultproxy.Hold},
		"deletion":   {Resource: "datavolumes", Verb: "delete", Nth: 1, When: faultproxy.Hold},
	} {
		t.Run(name, func(t *testing.T) {
			before := late(t, w, "late-"+name, rule)
			require.NoError(t, w.Check(before))
		})
	}
	t.Run("without the fence a late DataVolume breaks the limit", func(t *testing.T) {
		require.NoError(t, w.Client.Delete(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: fence}}))
		fenceIs(t, w, false)
		before := late(t, w, "late-without", faultproxy.Rule{Resource: "datavolumes", Verb: "create", Nth: 1, When: faultproxy.Hold})
		assert.ErrorContains(t, w.Check(before, invariant.Limit), "I1 broken")
	})
}

// late holds a write of the first process, lets a second one go on until the image has failed and another one has its
// slot, and then lets the write go.
func late(t *testing.T, w *lab.World, namespace string, rule faultproxy.Rule) int64 {
	t.Helper()
	require.NoError(t, w.SetPolicy(t.Context(), policy(1, 1, "3s")))
	before := now(t, w)
	first := w.Operator(t, []faultproxy.Rule{rule}, lab.Alone()...)
	path, _ := w.Serve(namespace)
	slow := "/slow/200000" + path[len("/ok"):]
	create(t, w, namespace, w.Sim.Images.URL("/status/404/"+namespace), w.Sim.Images.URL(slow))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	held, err := first.Proxy.WaitHeld(ctx)
	require.NoError(t, err)
	require.NoError(t, first.Pause())
	second := w.Operator(t, nil, lab.Alone()...)
	await(t, w, before, func(e history.Event) bool {
		dv, ok := history.As[*cdiv1.DataVolume](e)
		return ok && e.Namespace == namespace && dv.Spec.Source.HTTP.URL == w.Sim.Images.URL(slow) && dv.Status.Phase == cdiv1.ImportInProgress
	})
	first.Proxy.Release()
	await(t, w, now(t, w)-1, func(history.Event) bool {
		requests := first.Proxy.Requests()
		return requests[held.N-1].Code != 0
	})
	t.Logf("%s %s arrived late: %d", held.Verb, held.Resource, first.Proxy.Requests()[held.N-1].Code)
	first.End()
	err = w.Settle(ctx)
	assert.NoError(t, err)
	second.End()
	return before
}

// await an event after a revision.
func await(t *testing.T, w *lab.World, after int64, match func(history.Event) bool) history.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	event, err := w.Recorder.Wait(ctx, after, match)
	require.NoError(t, err)
	return event
}

// fenceIs waits until the API server sees that the fence is there, or that it is gone.
func fenceIs(t *testing.T, w *lab.World, there bool) {
	t.Helper()
	// Without any slot there is nobody whose it could be, and the fence is open.
	slot := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.Settings.Namespace, Name: otv1alpha1.SlotName(0), Labels: map[string]string{otv1alpha1.LabelSlot: otv1alpha1.DiskSyncQueue},
	}}
	require.NoError(t, client.IgnoreAlreadyExists(w.Client.Create(t.Context(), slot)))
	dv := strangersVolume()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		err := client.NewDryRunClient(w.Client).Create(ctx, dv.DeepCopy())
		return apierrors.IsForbidden(err) == there, nil
	})
	require.NoError(t, err)
}

// strangersVolume is of an image that never was, under a slot that it does not hold.
func strangersVolume() *cdiv1.DataVolume {
	image := lab.Image(corev1.NamespaceDefault, "stranger", "http://images.test/disk")
	image.UID = "stranger"
	return &cdiv1.DataVolume{ObjectMeta: metav1.ObjectMeta{
		Namespace: corev1.NamespaceDefault, Name: "stranger",
		Annotations:     map[string]string{otv1alpha1.AnnotationSlot: otv1alpha1.SlotName(0), otv1alpha1.AnnotationHolder: "a/stranger/uid"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(image, otv1alpha1.SchemeGroupVersion.WithKind("VMDiskImage"))},
	}}
}
