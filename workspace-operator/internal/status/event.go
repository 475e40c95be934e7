package status

import (
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Event is what people are told about a transition.
type Event struct {
	Warning      bool
	Reason       string
	Action, Note string
}

// The most that the API server takes.
const maxNote = 1000

// EventsOf are the events of a transition from one status to the next: the workspace is admitted, Ready, or Failed, or is it no
// more; a virtual machine is made anew; a network goes around the policies; something holds a deletion back. None is told for a
// wait.
func EventsOf(before, after *v1alpha1.WorkspaceStatus) []Event {
	var all []Event
	if c := became(before, after, v1alpha1.ConditionAdmitted); c != nil {
		all = append(all, Event{Reason: c.Reason, Action: "Admit", Note: c.Message})
	}
	if c := took(before, after, v1alpha1.ConditionVirtualMachinesReady, v1alpha1.WorkspaceReplacing); c != nil {
		all = append(all, Event{Warning: true, Reason: c.Reason, Action: "Provision", Note: c.Message})
	}
	if c := took(before, after, v1alpha1.ConditionNetworkIsolated, v1alpha1.WorkspaceSecondaryNetworks); c != nil {
		all = append(all, Event{Warning: true, Reason: c.Reason, Action: "Isolate", Note: c.Message})
	}
	if c := became(before, after, v1alpha1.ConditionDeletionBlocked); c != nil {
		all = append(all, Event{Warning: true, Reason: c.Type, Action: "Delete", Note: c.Message})
	}
	all = append(all, phaseEvents(before, after)...)
	for i := range all {
		all[i].Note = clipTo(maxNote, all[i].Note)
	}
	return all
}

func phaseEvents(before, after *v1alpha1.WorkspaceStatus) []Event {
	stalled, was := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionStalled), meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionStalled)
	switch {
	case isDeleting(after): // whoever deleted it knows
		return nil
	case stalled != nil && (was == nil || was.Reason != stalled.Reason):
		return []Event{{Warning: true, Reason: stalled.Reason, Action: "Provision", Note: stalled.Message}}
	case after.Phase == before.Phase:
		return nil
	case after.Phase == v1alpha1.WorkspaceReady:
		return []Event{{Reason: "Ready", Action: "Provision", Note: after.Message}}
	case before.Phase == v1alpha1.WorkspaceReady:
		return []Event{{Reason: "NotReady", Action: "Provision", Note: after.Message}}
	case before.Phase == v1alpha1.WorkspaceFailed:
		return []Event{{Reason: "Recovering", Action: "Provision", Note: after.Message}}
	}
	return nil
}

func isDeleting(st *v1alpha1.WorkspaceStatus) bool {
	c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionReady)
	return c != nil && c.Reason == string(v1alpha1.WorkspaceDeleting)
}

// became is the condition if it is True now, and was not.
func became(before, after *v1alpha1.WorkspaceStatus, kind string) *metav1.Condition {
	if meta.IsStatusConditionTrue(before.Conditions, kind) || !meta.IsStatusConditionTrue(after.Conditions, kind) {
		return nil
	}
	return meta.FindStatusCondition(after.Conditions, kind)
}

// took is the condition if it has the reason now, and had another.
func took(before, after *v1alpha1.WorkspaceStatus, kind string, reason v1alpha1.WorkspaceReason) *metav1.Condition {
	now, was := meta.FindStatusCondition(after.Conditions, kind), meta.FindStatusCondition(before.Conditions, kind)
	if now == nil || now.Reason != string(reason) || was != nil && was.Reason == now.Reason {
		return nil
	}
	return now
}
