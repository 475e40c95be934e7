package status

import (
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditions are those that are always there, for any report, and the two that are there while they are True.
func conditions(report plan.Report) []metav1.Condition {
	all := []metav1.Condition{
		of(v1alpha1.ConditionImageReady, report.Image),
		of(v1alpha1.ConditionDiskReady, report.Disk),
		of(v1alpha1.ConditionVirtualMachineReady, report.Machine),
		readyCondition(report),
		stalledCondition(report),
	}
	if len(report.Mismatch) > 0 {
		all = append(all, metav1.Condition{
			Type: v1alpha1.ConditionImageMismatch, Status: metav1.ConditionTrue, Reason: string(v1alpha1.ReasonTemplateDiffers),
			Message: clip("The image is used as it is; it differs from vmDiskImageTemplate in " + strings.Join(report.Mismatch, ", ")),
		})
	}
	if report.RestartRequired != "" {
		all = append(all, metav1.Condition{
			Type: v1alpha1.ConditionRestartRequired, Status: metav1.ConditionTrue, Reason: string(v1alpha1.ReasonSpecChanged),
			Message: clip(report.RestartRequired),
		})
	}
	return all
}

// absent are the conditions that are not there any more.
func absent(report plan.Report) []string {
	var gone []string
	if len(report.Mismatch) == 0 {
		gone = append(gone, v1alpha1.ConditionImageMismatch)
	}
	if report.RestartRequired == "" {
		gone = append(gone, v1alpha1.ConditionRestartRequired)
	}
	return gone
}

func of(kind string, verdict plan.Verdict) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: string(verdict.Reason), Message: clip(verdict.Message)}
	if verdict.Good {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// readyCondition is about disk and machine: a guest that runs is ready, whatever becomes of the image.
func readyCondition(report plan.Report) metav1.Condition {
	if report.Ready {
		return metav1.Condition{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: string(report.Machine.Reason), Message: message(report),
		}
	}
	c := of(v1alpha1.ConditionReady, report.Blocking)
	c.Status = metav1.ConditionFalse
	return c
}

// stalledCondition is True while the VM is Failed.
func stalledCondition(report plan.Report) metav1.Condition {
	if report.Stalled == nil {
		return metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonProgressing}
	}
	c := of(v1alpha1.ConditionStalled, *report.Stalled)
	c.Status = metav1.ConditionTrue
	return c
}
