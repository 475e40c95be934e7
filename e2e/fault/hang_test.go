package fault

import (
	"testing"
	"time"

	"github.com/pelotech/open-terrain/e2e/fault/lab"
	"github.com/pelotech/open-terrain/e2e/faultproxy"
	"github.com/stretchr/testify/require"
)

// requestHangs: the answer to the first DataVolume never comes, and nothing breaks the connection. There is one worker for all
// DataVolumes.
func requestHangs(t *testing.T, w *lab.World) {
	require.NoError(t, w.SetPolicy(t.Context(), policy(3, 1, "300ms")))
	settings := w.Settings
	defer func() { w.Settings = settings }()
	w.Settings.Idle, w.Settings.Late, w.Settings.OrderedStarts = 100*time.Second, 100*time.Second, false
	before := now(t, w)
	operator := w.Operator(t, []faultproxy.Rule{
		{Resource: "datavolumes", Verb: "create", Nth: 1, When: faultproxy.Hold},
	}, lab.Alone()...)
	urls, _ := mixed(w, "hang", 3)
	create(t, w, "hang", urls...)
	settle(t, w, before, 100*time.Second)
	operator.End()
}
