package status

import (
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/plan"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditions are those that are always there, for any report, and the two that are there while they are True.
func conditions(report plan.Report) []metav1.Condition {
	all := []metav1.Condition{
		of(v1alpha1.ConditionAdmitted, report.Admitted),
		of(v1alpha1.ConditionNamespaceReady, report.Namespace),
		of(v1alpha1.ConditionNetworkIsolated, report.Isolated),
		of(v1alpha1.ConditionVirtualMachinesReady, report.VirtualMachinesReady),
		of(v1alpha1.ConditionContainersReady, report.ContainersReady),
		is(v1alpha1.ConditionReady, report.Ready, report.Blocking),
	}
	if report.Stalled != nil {
		all = append(all, is(v1alpha1.ConditionStalled, true, *report.Stalled))
	}
	if report.Blocked != nil {
		all = append(all, is(v1alpha1.ConditionDeletionBlocked, true, *report.Blocked))
	}
	return all
}

// absent are the conditions that are not there any more.
func absent(report plan.Report) []string {
	var gone []string
	if report.Stalled == nil {
		gone = append(gone, v1alpha1.ConditionStalled)
	}
	if report.Blocked == nil {
		gone = append(gone, v1alpha1.ConditionDeletionBlocked)
	}
	return gone
}

func of(kind string, verdict plan.Verdict) metav1.Condition { return is(kind, verdict.Good, verdict) }

func is(kind string, yes bool, verdict plan.Verdict) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: string(verdict.Reason), Message: clip(verdict.Message)}
	if yes {
		c.Status = metav1.ConditionTrue
	}
	return c
}
