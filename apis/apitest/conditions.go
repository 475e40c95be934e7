package apitest

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionOf is the condition as "Status Reason", such as "True SnapshotReady", or empty when there is none: fit to be
// compared in one assertion.
func ConditionOf(conditions []metav1.Condition, kind string) string {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

// ConditionsOf are all conditions by type, each as ConditionOf writes it.
func ConditionsOf(conditions []metav1.Condition) map[string]string {
	all := make(map[string]string, len(conditions))
	for _, c := range conditions {
		all[c.Type] = ConditionOf(conditions, c.Type)
	}
	return all
}

// Wrong lists what speaks against the conditions being well formed, one sentence a problem: a type twice, no reason, a
// status that does not exist, no transition time, another generation than the one given. Ready may be of a former one
// while an update is under way or has failed.
func Wrong(conditions []metav1.Condition, generation int64) []string {
	var wrong []string
	seen := map[string]bool{}
	for _, c := range conditions {
		complain := func(what string) { wrong = append(wrong, c.Type+": "+what) }
		if seen[c.Type] {
			complain("is there twice")
		}
		seen[c.Type] = true
		if c.Reason == "" || strings.ContainsAny(c.Reason, " .-") {
			complain("has no proper reason")
		}
		if !slices.Contains([]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}, c.Status) {
			complain("has no proper status")
		}
		if c.LastTransitionTime.IsZero() {
			complain("has no lastTransitionTime")
		}
		if c.ObservedGeneration > generation || c.ObservedGeneration < generation && !isFormer(c, conditions) {
			complain("is of another generation")
		}
	}
	return wrong
}

// isFormer says that the condition may be about what was there before an update.
func isFormer(c metav1.Condition, conditions []metav1.Condition) bool {
	return c.Type == "Ready" &&
		(meta.IsStatusConditionTrue(conditions, "Reconciling") || meta.IsStatusConditionTrue(conditions, "Stalled"))
}
