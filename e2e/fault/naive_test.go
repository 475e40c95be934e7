package fault

import (
	"context"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/e2e/fault/lab"
	"github.com/pelotech/open-terrain/e2e/invariant"
	"github.com/pelotech/open-terrain/e2e/invariant/naive"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// naiveTurnsRed: checks that find nothing here find nothing anywhere. It leaves the world's history broken.
func naiveTurnsRed(t *testing.T, w *lab.World) {
	for _, name := range []string{fence, "disk-sync-operator-slot-named"} {
		require.NoError(t, w.Client.Delete(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	fenceIs(t, w, false)
	namedIsGone(t, w)
	require.NoError(t, w.SetPolicy(t.Context(), policy(2, 1, "2s")))
	before := now(t, w)
	urls := good(11)
	create(t, w, "naive", append(urls, "http://images.test/status/404")...)
	operator := &naive.Operator{Client: w.Client, Concurrency: 2, Stale: 200 * time.Millisecond}
	assert.EventuallyWithT(t, func(c *assert.CollectT) { // on a busy machine it takes its time to do everything wrong
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		require.NoError(c, operator.Run(ctx))
		now(t, w)
		for name, check := range map[string]invariant.Check{
			"I1": invariant.Limit, "I2": invariant.Order, "I3": invariant.NoLoss, "I4": invariant.Attempts, "I10": invariant.Truth,
		} {
			assert.ErrorContains(c, w.Check(before, check), name+" broken", "%s must turn red", name)
		}
	}, time.Minute, 10*time.Millisecond)
}

// namedIsGone waits until the API server takes a DataVolume of an image that names no slot.
func namedIsGone(t *testing.T, w *lab.World) {
	t.Helper()
	dv := strangersVolume()
	dv.Annotations = nil
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		return client.NewDryRunClient(w.Client).Create(ctx, dv.DeepCopy()) == nil, nil
	})
	require.NoError(t, err)
}
