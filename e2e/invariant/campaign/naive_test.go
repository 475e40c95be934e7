package campaign

import (
	"context"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/e2e/invariant"
	"github.com/pelotech/open-terrain/e2e/invariant/lab"
	"github.com/pelotech/open-terrain/e2e/invariant/naive"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// naiveTurnsRed: checks that find nothing here find nothing anywhere. It leaves the world's history broken.
func naiveTurnsRed(t *testing.T, w *lab.World) {
	require.NoError(t, w.Client.Delete(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: fence}}))
	fenceIs(t, w, false)
	require.NoError(t, w.SetPolicy(t.Context(), policy(2, 1, "2s")))
	before := now(t, w)
	urls := good(11)
	create(t, w, "naive", append(urls, "http://images.test/status/404")...)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	operator := &naive.Operator{Client: w.Client, Concurrency: 2, Stale: 200 * time.Millisecond}
	require.NoError(t, operator.Run(ctx))
	now(t, w)
	for name, check := range map[string]invariant.Check{
		"I1": invariant.Limit, "I2": invariant.Order, "I3": invariant.NoLoss, "I4": invariant.Attempts, "I10": invariant.Truth,
	} {
		assert.ErrorContains(t, w.Check(before, check), name+" broken", "%s must turn red", name)
	}
}
