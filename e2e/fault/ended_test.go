package fault

import (
	"net/http"
	"testing"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/fault/lab"
	"github.com/pelotech/open-terrain/e2e/faultproxy"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// wordKept is how long the operator takes the API server's answer to its own write of a Lease for its word.
const wordKept = 2 * time.Second

// endedAttempts are those whose slot is still the image's when the first process wants to begin them: the second one has
// ended them, and waits for a claim that does not go.
func endedAttempts(t *testing.T, w *lab.World) {
	t.Run("decided late", func(t *testing.T) {
		e := endAttempt(t, w, "ended-decided")
		e.first.Proxy.Drop() // it decides anew, by what it knows
		time.Sleep(time.Second)
		e.finish(t, w)
	})
	t.Run("sent late", func(t *testing.T) {
		e := endAttempt(t, w, "ended-sent")
		time.Sleep(time.Second) // the fence hears of Leases from a watch
		e.first.Proxy.Release()
		require.Eventually(t, func() bool { return e.late() != 0 }, 10*time.Second, 10*time.Millisecond)
		assert.Equal(t, http.StatusForbidden, e.late())
		e.finish(t, w)
	})
}

// children of an image, while it is downloaded.
var children = []string{"datavolumes", "persistentvolumeclaims", "pods"}

// ended is an attempt that is over, and that the first process knows as one that is about to begin.
type ended struct {
	first, second *lab.Life
	held          faultproxy.Request // the first one's creation of the DataVolume
	claim         history.Key        // that does not go
	before        int64
}

func endAttempt(t *testing.T, w *lab.World, namespace string) ended {
	t.Helper()
	require.NoError(t, w.SetPolicy(t.Context(), policy(1, 1, "3s")))
	e := ended{before: now(t, w)}
	e.first = w.Operator(t, []faultproxy.Rule{{Resource: "datavolumes", Verb: "create", Nth: 1, When: faultproxy.Hold}}, lab.Alone()...)
	path, _ := w.Serve(namespace)
	create(t, w, namespace, wrongChecksum+w.Sim.Images.URL("/slow/200000"+path[len("/ok"):]))
	var err error
	e.held, err = e.first.Proxy.WaitHeld(t.Context())
	require.NoError(t, err)
	word := time.After(wordKept)
	for _, resource := range children {
		e.first.Proxy.HoldWatches(resource) // also so that none of them has it look at the API server itself
	}
	e.second = w.Operator(t, nil, lab.Alone()...)
	claim := await(t, w, e.before, func(event history.Event) bool {
		return event.Resource == "persistentvolumeclaims" && event.Namespace == namespace
	})
	e.first.Proxy.HoldWatches("vmdiskimages") // it knows of Syncing, and will know of nothing later
	e.claim = claim.Key
	e.keep(t, w, `["kubernetes.io/pvc-protection", "fault.test/kept"]`)
	await(t, w, claim.Revision, func(event history.Event) bool {
		image, ok := history.As[*otv1alpha1.VMDiskImage](event)
		return ok && event.Namespace == namespace && image.Status.Phase == otv1alpha1.PhaseFailed
	})
	await(t, w, claim.Revision, func(event history.Event) bool {
		dv, ok := history.PrevAs[*cdiv1.DataVolume](event)
		return ok && event.Deleted && dv.Namespace == namespace
	})
	<-word
	return e
}

// late is the answer to the first process' creation of the DataVolume, or 0.
func (e ended) late() int { return e.first.Proxy.Requests()[e.held.N-1].Code }

// keep sets the finalizers of the claim.
func (e ended) keep(t *testing.T, w *lab.World, finalizers string) {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name = e.claim.Namespace, e.claim.Name
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`))
	require.NoError(t, w.Client.Patch(t.Context(), claim, patch))
}

// finish lets the claim go and the first process see, and checks everything.
func (e ended) finish(t *testing.T, w *lab.World) {
	t.Helper()
	assert.NotNil(t, w.Recorder.At(now(t, w))[e.claim], "what kept the slot")
	e.keep(t, w, "null")
	for _, resource := range append(children, "vmdiskimages") {
		e.first.Proxy.ReleaseWatches(resource)
	}
	settle(t, w, e.before, time.Minute)
	e.first.End()
	e.second.End()
}
