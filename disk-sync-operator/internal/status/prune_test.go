package status_test

import (
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/status"
	"github.com/stretchr/testify/assert"
)

func expiring(r *plan.Report)   { artifact(r); r.ExpiresAt = now.Add(time.Hour) }
func wouldPrune(r *plan.Report) { r.ExpiresAt, r.WouldPrune = now.Add(time.Hour), true }
func held(r *plan.Report)       { r.Deletion = "Deletion waits for somebody" }

func TestExpiry(t *testing.T) {
	image := of(report(plan.Succeeded, expiring))
	assert.Equal(t, now.Add(time.Hour), image.Status.ExpiresAt.Time)
	assert.Nil(t, status.Of(image, report(plan.Succeeded), 3, later).ExpiresAt, "it is kept")
	assert.Nil(t, status.Of(image, report(plan.Queued, expiring), 3, later).ExpiresAt, "it is being made anew")
}

func TestADryRunIsToldByTheMessage(t *testing.T) {
	image := of(report(plan.Succeeded, expiring))
	next := status.Of(image, report(plan.Succeeded, wouldPrune), 3, later)
	event, is := status.EventOf(&image.Status, &next)
	assert.True(t, is)
	assert.Equal(t, "WouldPrune", event.Reason)
	assert.False(t, event.Warning)
	assert.Contains(t, event.Note, "2026-01-02T04:00:00Z")

	image.Status = next
	again := status.Of(image, report(plan.Succeeded, wouldPrune), 3, later)
	assert.Equal(t, next, again, "no second write")
	_, is = status.EventOf(&next, &again)
	assert.False(t, is)
	assert.Equal(t, "The snapshot is ready to be cloned", status.Of(image, report(plan.Succeeded), 3, later).Message)
}

// TestAHeldDeletion: the attempt that was ended shows as waiting, and what can be cloned stays Ready.
func TestAHeldDeletion(t *testing.T) {
	image := of(report(plan.Queued), report(plan.Syncing))
	st := status.Of(image, report(plan.Queued, held), 3, later)
	assert.Equal(t, v1alpha1.PhaseQueued, st.Phase)
	assert.Equal(t, "Deletion waits for somebody", st.Message)
	_, is := status.EventOf(&image.Status, &st)
	assert.False(t, is)

	image = of(report(plan.Succeeded, artifact))
	st = status.Of(image, report(plan.Succeeded, held), 3, later)
	assert.Equal(t, "Deletion waits for somebody", st.Message)
	assert.Equal(t, "True SnapshotReady", apitest.ConditionOf(st.Conditions, v1alpha1.ConditionReady))
}
