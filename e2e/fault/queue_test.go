package fault

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/fault/lab"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/pelotech/open-terrain/e2e/invariant"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// good URLs, that only the simulator looks at.
func good(n int) []string {
	urls := make([]string, n)
	for i := range urls {
		urls[i] = fmt.Sprintf("http://images.test/%d", i)
	}
	return urls
}

// freshStart finds images in the order of their creation, though their names say another, and again in the middle.
func freshStart(t *testing.T, w *lab.World) {
	require.NoError(t, w.SetPolicy(t.Context(), policy(2, 1, "300ms")))
	before := now(t, w)
	create(t, w, "fresh", good(20)...)
	first := w.Operator(t, nil, lab.Alone()...)
	awaitSucceeded(t, w, before, 5)
	first.End()
	second := w.Operator(t, nil, lab.Alone()...)
	settle(t, w, before, time.Minute)
	second.End()
}

// policyChanges: the limit goes from 4 to 1 and, with another process that knows of no former one, to 6.
func policyChanges(t *testing.T, w *lab.World) {
	require.NoError(t, w.SetPolicy(t.Context(), policy(4, 1, "300ms")))
	before := now(t, w)
	first := w.Operator(t, nil, lab.Alone()...)
	urls := good(40)
	for i := 0; i < len(urls); i += 8 {
		urls[i] += "/first-fails"
	}
	create(t, w, "policy", urls...)
	awaitSucceeded(t, w, before, 6)
	require.NoError(t, w.SetPolicy(t.Context(), policy(1, 1, "300ms")))
	lowered := now(t, w)
	first.End()
	second := w.Operator(t, nil, lab.Alone()...)
	awaitSucceeded(t, w, lowered, 8)
	require.NoError(t, w.SetPolicy(t.Context(), policy(6, 1, "300ms")))
	raised := now(t, w)
	awaitSucceeded(t, w, raised, 8)
	require.NoError(t, w.SetPolicy(t.Context(), policy(1, 1, "300ms")))
	awaitSucceeded(t, w, raised, 14)
	require.NoError(t, w.SetPolicy(t.Context(), policy(4, 1, "300ms")))
	settle(t, w, before, time.Minute)
	assert.Greater(t, mostHeld(w, raised), 4, "the raised limit is used")
	second.End()
}

// mostHeld is the highest number of a slot that was held after a revision, plus one.
func mostHeld(w *lab.World, after int64) int {
	most := 0
	for _, e := range w.Recorder.All() {
		lease, ok := history.As[*coordinationv1.Lease](e)
		if !ok || e.Revision <= after || lease.Spec.HolderIdentity == nil {
			continue
		}
		var i int
		if n, _ := fmt.Sscanf(lease.Name, otv1alpha1.DiskSyncSlotPrefix+"%d", &i); n == 1 {
			most = max(most, i+1)
		}
	}
	return most
}

func apiServerRestarts(t *testing.T, w *lab.World) {
	require.NoError(t, w.SetPolicy(t.Context(), policy(3, 1, "300ms")))
	settings := w.Settings
	defer func() { w.Settings = settings }()
	w.Settings.Idle, w.Settings.Late, w.Settings.OrderedStarts = 40*time.Second, 40*time.Second, false
	before := now(t, w)
	operator := w.Operator(t, nil, lab.Alone()...)
	create(t, w, "restart", good(24)...)
	awaitSucceeded(t, w, before, 6)
	require.NoError(t, w.RestartAPIServer())
	settle(t, w, before, 2*time.Minute)
	operator.End()
}

// fenceLetsPass counts rightful DataVolumes that the API server refuses because it has not yet heard of the slot's new
// holder. OT_FENCE_IMAGES sets how many images there are.
func fenceLetsPass(t *testing.T, w *lab.World) {
	number := 120
	if text := os.Getenv("OT_FENCE_IMAGES"); text != "" {
		var err error
		number, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	fenceIs(t, w, true)
	require.NoError(t, w.SetPolicy(t.Context(), policy(20, 1, "300ms")))
	before := now(t, w)
	start := time.Now()
	operator := w.Operator(t, nil, lab.Alone()...)
	create(t, w, "fence", good(number)...)
	settle(t, w, before, 5*time.Minute)
	created, refused := 0, 0
	for _, request := range operator.Proxy.Requests() {
		if request.Resource == "datavolumes" && request.Verb == "create" {
			created++
			if request.Code == http.StatusForbidden {
				refused++
			}
		}
	}
	t.Logf("%d DataVolumes asked for, %d refused, in %s", created, refused, time.Since(start))
	assert.LessOrEqual(t, refused, number/100)
	operator.End()
}

// quiet: whoever starts where all is done writes nothing.
func quiet(t *testing.T, w *lab.World) {
	operator := w.Operator(t, nil, lab.Alone()...)
	before := now(t, w)
	time.Sleep(4 * time.Second)
	now(t, w)
	var window []history.Event
	for _, e := range w.Recorder.All() {
		if e.Revision > before {
			window = append(window, e)
		}
	}
	assert.Empty(t, invariant.Quiet(w.Settings, window))
	assert.Empty(t, operator.Proxy.Requests(), "nor asks for a write that would change nothing")
	operator.End()
}

func awaitSucceeded(t *testing.T, w *lab.World, after int64, n int) {
	t.Helper()
	seen := map[string]bool{}
	await(t, w, after, func(e history.Event) bool {
		if dv, ok := history.As[*cdiv1.DataVolume](e); ok && dv.Status.Phase == cdiv1.Succeeded {
			seen[string(dv.UID)] = true
		}
		return len(seen) >= n
	})
}
