package status_test

import (
	"testing"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/status"
	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
)

var (
	lost   = &v1alpha1.Loss{Time: now, Kind: v1alpha1.LostSnapshot, Name: "s"}
	resync = plan.Report{Stage: plan.Queued, Revision: "next", Ticket: 9, Loss: lost, Resync: true}
	again  = report(plan.Snapshotting, func(r *plan.Report) { r.Loss, r.Unready = lost, true })
)

func TestALossIsTold(t *testing.T) {
	unready := resync
	unready.Unready = true
	cases := map[string]struct {
		loss        plan.Report
		ready, note string
		losses      int32
	}{
		"the snapshot is taken again": {again, "False ArtifactLost", "VolumeSnapshot s was lost; the snapshot is taken again from the volume", 0},
		"the volume, not the snapshot": {
			resync, "True SnapshotReady", "VolumeSnapshot s was lost; the image is synced again, and its snapshot can be cloned meanwhile", 1,
		},
		"all of it": {unready, "False ArtifactLost", "VolumeSnapshot s was lost; the image is synced again", 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			image := of(report(plan.Succeeded, artifact))
			next := status.Of(image, c.loss, 3, later)
			assert.Equal(t, c.ready, apitest.ConditionOf(next.Conditions, v1alpha1.ConditionReady))
			assert.Equal(t, lost, next.LastLoss)
			assert.Equal(t, c.losses, next.Losses)
			assert.Equal(t, c.loss.Unready, next.Artifact == nil)
			event, is := status.EventOf(&image.Status, &next)
			assert.True(t, is && event.Warning)
			assert.Equal(t, "Lost", event.Reason)
			assert.Equal(t, c.note, event.Note)
			if c.loss.Unready {
				message := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionReady).Message
				assert.Contains(t, message, "VolumeSnapshot s was lost, as was noticed at 2026-01-02T03:00:00Z. ")
				assert.Contains(t, message, next.Message)
			}
		})
	}
}

func TestALossIsForgottenWhenItIsMadeGood(t *testing.T) {
	st := of(report(plan.Succeeded, artifact), again, report(plan.Succeeded, artifact)).Status
	assert.Equal(t, "True SnapshotReady", apitest.ConditionOf(st.Conditions, v1alpha1.ConditionReady))
	assert.Equal(t, "The snapshot a-r can be cloned", meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionReady).Message)
	assert.Equal(t, lost, st.LastLoss, "it stays on record")
}

// kubectl wait takes a condition for outdated by its generation; kstatus asks for Reconciling.
func TestWhoWaitsForReadyDuringAnUpdateWaitsForTheNewArtifact(t *testing.T) {
	image := of(report(plan.Succeeded, artifact))
	former := image.Generation
	image.Generation++
	image.Status = status.Of(image, plan.Report{Stage: plan.Queued, Revision: "next", Ticket: 9}, 3, later)
	ready := meta.FindStatusCondition(image.Status.Conditions, v1alpha1.ConditionReady)
	assert.Equal(t, former, ready.ObservedGeneration)
	assert.Equal(t, image.Generation, image.Status.ObservedGeneration)
	assert.Equal(t, "True Updating", apitest.ConditionOf(image.Status.Conditions, v1alpha1.ConditionReconciling))

	image.Status = status.Of(image, plan.Report{Stage: plan.Syncing, Revision: "next", Attempt: 1, Starts: true}, 3, later)
	image.Status = status.Of(image, plan.Report{Stage: plan.Failed, Revision: "next", Attempt: 1, Failure: wrong}, 3, later)
	assert.Empty(t, apitest.ConditionOf(image.Status.Conditions, v1alpha1.ConditionReconciling), "nothing more is tried")
	assert.Equal(t, former, meta.FindStatusCondition(image.Status.Conditions, v1alpha1.ConditionReady).ObservedGeneration)

	image.Status = status.Of(image, plan.Report{Stage: plan.Succeeded, Revision: "next", Attempt: 1, Artifact: &v1alpha1.Artifact{Revision: "next"}}, 3, later)
	assert.Equal(t, image.Generation, meta.FindStatusCondition(image.Status.Conditions, v1alpha1.ConditionReady).ObservedGeneration)
}

func TestWhatIsHeldByACloneIsNamed(t *testing.T) {
	image := of(report(plan.Succeeded, artifact))
	st := status.Of(image, report(plan.Succeeded, func(r *plan.Report) { r.Held = "vms/a" }), 3, later)
	assert.Equal(t, "The snapshot is ready to be cloned; what it replaces stays until the DataVolume vms/a has been cloned from it", st.Message)
	image.Status = st
	assert.Equal(t, "The snapshot is ready to be cloned", status.Of(image, report(plan.Succeeded), 3, later).Message)
}
