package v1alpha1_test

import (
	"slices"
	"testing"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPhaseOf(t *testing.T) {
	cond := func(kind, status, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason}
	}
	cases := map[string]struct {
		conditions []metav1.Condition
		want       v1alpha1.Phase
	}{
		"nothing is known":     {nil, v1alpha1.PhaseQueued},
		"it waits for a slot":  {[]metav1.Condition{cond("Synced", "False", "Queued")}, v1alpha1.PhaseQueued},
		"it backs off":         {[]metav1.Condition{cond("Synced", "False", "BackingOff")}, v1alpha1.PhaseQueued},
		"it downloads":         {[]metav1.Condition{cond("Synced", "False", "Syncing")}, v1alpha1.PhaseSyncing},
		"it waits for a snap":  {[]metav1.Condition{cond("Synced", "True", "Synced"), cond("SnapshotReady", "False", "Snapshotting")}, v1alpha1.PhaseSnapshotting},
		"all is there":         {[]metav1.Condition{cond("Synced", "True", "Synced"), cond("SnapshotReady", "True", "SnapshotReady")}, v1alpha1.PhaseSucceeded},
		"it is stalled":        {[]metav1.Condition{cond("Synced", "False", "SourceNotFound"), cond("Stalled", "True", "SourceNotFound")}, v1alpha1.PhaseFailed},
		"the snap is overdue":  {[]metav1.Condition{cond("Synced", "True", "Synced"), cond("Stalled", "True", "TimedOut")}, v1alpha1.PhaseFailed},
		"Ready says nothing":   {[]metav1.Condition{cond("Ready", "True", "SnapshotReady"), cond("Synced", "False", "Syncing")}, v1alpha1.PhaseSyncing},
		"a snap without sync":  {[]metav1.Condition{cond("SnapshotReady", "True", "SnapshotReady")}, v1alpha1.PhaseQueued},
		"Unknown is not True":  {[]metav1.Condition{cond("Synced", "Unknown", "Synced")}, v1alpha1.PhaseQueued},
		"Stalled=False passes": {[]metav1.Condition{cond("Stalled", "False", "Progressing")}, v1alpha1.PhaseQueued},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, v1alpha1.PhaseOf(c.conditions)) })
	}
}

// Every combination of conditions, absent ones and foreign reasons among them, has exactly one phase, whatever the order.
func TestPhaseOfIsTotal(t *testing.T) {
	phases := []v1alpha1.Phase{
		v1alpha1.PhaseQueued, v1alpha1.PhaseSyncing, v1alpha1.PhaseSnapshotting, v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed,
	}
	seen := map[v1alpha1.Phase]int{}
	kinds := []string{v1alpha1.ConditionReady, v1alpha1.ConditionSynced, v1alpha1.ConditionSnapshotReady, v1alpha1.ConditionStalled}
	each(kinds, nil, func(conditions []metav1.Condition) {
		phase := v1alpha1.PhaseOf(conditions)
		seen[phase]++
		backwards := make([]metav1.Condition, len(conditions))
		for i, c := range conditions {
			backwards[len(conditions)-1-i] = c
		}
		if !assert.Contains(t, phases, phase) || !assert.Equal(t, phase, v1alpha1.PhaseOf(backwards), "order does not matter") {
			t.Fatal(apitest.ConditionsOf(conditions))
		}
	})
	assert.Len(t, seen, len(phases), "each phase is reached")
}

func each(kinds []string, conditions []metav1.Condition, visit func([]metav1.Condition)) {
	if len(kinds) == 0 {
		visit(conditions)
		return
	}
	each(kinds[1:], conditions, visit) // absent
	for _, status := range []metav1.ConditionStatus{"True", "False", "Unknown"} {
		for _, reason := range []string{v1alpha1.ReasonSyncing, v1alpha1.ReasonQueued, v1alpha1.ReasonBackingOff, "Foreign"} {
			c := metav1.Condition{Type: kinds[0], Status: status, Reason: reason}
			each(kinds[1:], append(slices.Clip(conditions), c), visit)
		}
	}
}

func TestFinalReasons(t *testing.T) {
	final := map[v1alpha1.FailureReason]bool{
		v1alpha1.FailureSourceNotFound: false, v1alpha1.FailureAccessDenied: false, v1alpha1.FailureTLSFailed: false,
		v1alpha1.FailureUnreachable: false, v1alpha1.FailureDiskTooSmall: true, v1alpha1.FailureInvalidFormat: true,
		v1alpha1.FailureChecksumMismatch: true, v1alpha1.FailureStalled: false, v1alpha1.FailureTimedOut: false,
		v1alpha1.FailureQuotaExceeded: false, v1alpha1.FailureUnschedulable: false, v1alpha1.FailureSecretMissing: false,
		v1alpha1.FailureSourceNotAllowed: true, v1alpha1.FailureUnknown: false,
	}
	for reason, want := range final {
		assert.Equal(t, want, reason.Final(), reason)
	}
	schema := crd(t, "vmdiskimages").Spec.Versions[0].Schema.OpenAPIV3Schema
	enum := schema.Properties["status"].Properties["lastFailure"].Properties["reason"].Enum
	assert.Len(t, enum, len(final), "the list in the CRD is the closed list")
}

func TestIsReadyNeedsTheArtifactAndTheCondition(t *testing.T) {
	ready := apitest.Condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSnapshotReady, metav1.Time{})
	artifact := apitest.Status(func(s *v1alpha1.VMDiskImageStatus) { s.Artifact = &v1alpha1.Artifact{} })
	assert.False(t, apitest.Image("a").IsReady())
	assert.False(t, apitest.Image("a", ready).IsReady())
	assert.False(t, apitest.Image("a", artifact).IsReady())
	assert.True(t, apitest.Image("a", artifact, ready).IsReady())
}
