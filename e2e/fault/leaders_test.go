package fault

import (
	"fmt"
	"testing"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/fault/lab"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// mixed URLs: half of them good, the others fail once, for want of the file, or for their content.
func mixed(w *lab.World, namespace string, n int) (urls, paths []string) {
	for i := range n {
		name := fmt.Sprintf("%s-%d", namespace, i)
		switch i % 6 {
		case 1:
			name += "-first-fails"
		case 3:
			urls = append(urls, w.Sim.Images.URL("/status/404/"+name))
			continue
		}
		path, _ := w.Serve(name)
		url := w.Sim.Images.URL(path)
		if i%6 == 5 {
			url = wrongChecksum + url
		}
		urls, paths = append(urls, url), append(paths, path)
	}
	return urls, paths
}

// twoLeaders live at once, as when the lock of leader election fails: each does all the work.
func twoLeaders(t *testing.T, w *lab.World) {
	require.NoError(t, w.SetPolicy(t.Context(), policy(3, 1, "300ms")))
	before := now(t, w)
	one := w.Operator(t, nil, lab.Alone()...)
	two := w.Operator(t, nil, lab.Alone()...)
	urls, paths := mixed(w, "two-leaders", 24)
	create(t, w, "two-leaders", urls...)
	settle(t, w, before, 2*time.Minute)
	for _, path := range paths {
		assert.LessOrEqual(t, w.Sim.Images.Of(path).Complete, 1, path)
	}
	t.Logf("writes: %d and %d", len(one.Proxy.Requests()), len(two.Proxy.Requests()))
}

// election makes a takeover quick.
func election() []string {
	return []string{"--leader-elect-lease-duration=2s", "--leader-elect-renew-deadline=1500ms", "--leader-elect-retry-period=300ms"}
}

// pausedLeader sleeps in the middle of its work, wakes up when another one has taken over, and believes for a moment
// that nothing has happened.
func pausedLeader(t *testing.T, w *lab.World) {
	require.NoError(t, w.SetPolicy(t.Context(), policy(2, 1, "300ms")))
	before := now(t, w)
	first := w.Operator(t, nil, election()...)
	urls, paths := mixed(w, "paused", 12)
	create(t, w, "paused", urls...)
	volume := await(t, w, before, func(e history.Event) bool {
		_, ok := history.As[*cdiv1.DataVolume](e)
		return ok && e.Created()
	})
	require.NoError(t, first.Pause())
	second := w.Operator(t, nil, election()...)
	await(t, w, volume.Revision, func(e history.Event) bool {
		image, ok := history.As[*otv1alpha1.VMDiskImage](e)
		return ok && image.Status.Phase == otv1alpha1.PhaseFailed
	})
	require.NoError(t, first.Resume())
	settle(t, w, before, 2*time.Minute)
	for _, path := range paths {
		assert.LessOrEqual(t, w.Sim.Images.Of(path).Complete, 1, path)
	}
	t.Logf("writes: %d and %d", len(first.Proxy.Requests()), len(second.Proxy.Requests()))
	select {
	case <-first.Done():
	case <-time.After(20 * time.Second):
		assert.Fail(t, "who has lost the lock must end")
	}
}
