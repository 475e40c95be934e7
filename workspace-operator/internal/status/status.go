// Package status puts a decision into words: a pure function from the Workspace and the plan's report to the whole status.
package status

import (
	"fmt"
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/plan"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Of is the status that the report asks for. Transition times move only with a condition's status.
func Of(ws *v1alpha1.Workspace, report plan.Report, now metav1.Time) v1alpha1.WorkspaceStatus {
	if report.Silent {
		return *ws.Status.DeepCopy()
	}
	st := v1alpha1.WorkspaceStatus{
		ObservedGeneration: ws.Generation,
		Message:            message(report),
		Namespace:          report.NamespaceStatus,
		Queue:              queue(report),
		VirtualMachines:    count(report.VirtualMachines),
		Containers:         count(report.Containers),
		ResourceStatus:     resources(report),
		AdmittedAt:         report.AdmittedAt,
		ProvisionedAt:      report.ProvisionedAt,
		Deadline:           report.Deadline,
		TroubledSince:      report.TroubledSince,
	}
	st.Conditions = append(st.Conditions, ws.DeepCopy().Status.Conditions...)
	for _, c := range conditions(report) {
		c.ObservedGeneration, c.LastTransitionTime = ws.Generation, now
		meta.SetStatusCondition(&st.Conditions, c)
	}
	for _, gone := range absent(report) {
		meta.RemoveStatusCondition(&st.Conditions, gone)
	}
	st.Isolated = meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionNetworkIsolated).Status
	st.Phase = v1alpha1.WorkspacePhaseOf(st.Conditions)
	return st
}

// message is for people: what is waited for, why it failed, or that nothing is wrong.
func message(report plan.Report) string {
	if report.Stalled != nil {
		return clip(report.Stalled.Message)
	}
	return clip(report.Blocking.Message)
}

func queue(report plan.Report) *v1alpha1.WorkspaceQueueStatus {
	if report.Position == 0 {
		return nil
	}
	return &v1alpha1.WorkspaceQueueStatus{Position: int32(report.Position), Ticket: report.Ticket}
}

// count is how many are ready, of how many.
func count(members []plan.Member) string {
	ready := 0
	for _, m := range members {
		if m.Good {
			ready++
		}
	}
	return fmt.Sprintf("%d/%d", ready, len(members))
}

// maxMember is less than maxMessage: there may be many.
const maxMember = 1024

func resources(report plan.Report) *v1alpha1.WorkspaceResourceStatus {
	if len(report.VirtualMachines)+len(report.Containers) == 0 {
		return nil
	}
	st := &v1alpha1.WorkspaceResourceStatus{}
	for _, m := range report.VirtualMachines {
		st.VirtualMachines = append(st.VirtualMachines, v1alpha1.WorkspaceVirtualMachineStatus{
			Name: m.Name, Phase: m.Phase, DiskImagePhase: m.ImagePhase, Message: unready(m),
		})
	}
	for _, m := range report.Containers {
		st.Containers = append(st.Containers, v1alpha1.WorkspaceContainerStatus{Name: m.Name, Status: state(m), Message: unready(m)})
	}
	return st
}

// unready is the message of what is not ready.
func unready(m plan.Member) string {
	if m.Good {
		return ""
	}
	return clipTo(maxMember, m.Message)
}

// state of a container. A trouble is no failure of it until it has lasted; the whole workspace tells that.
func state(m plan.Member) v1alpha1.WorkspaceContainerState {
	switch {
	case m.Good:
		return v1alpha1.WorkspaceContainerReady
	case m.Weight >= plan.Troubled:
		return v1alpha1.WorkspaceContainerFailed
	}
	return v1alpha1.WorkspaceContainerPending
}

// maxMessage is less than what a condition's message may hold.
const maxMessage = 4096

func clip(message string) string { return clipTo(maxMessage, message) }

func clipTo(most int, message string) string {
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:most], "")
}
