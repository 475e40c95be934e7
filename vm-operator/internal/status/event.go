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

// EventsOf are the events of a transition from one status to the next: the VM is Ready, or Failed, or is it no more; and what
// somebody should know of image and disk. None is told for a wait.
func EventsOf(before, after *v1alpha1.VirtualMachineStatus) []Event {
	var all []Event
	if c := becameTrue(before, after, v1alpha1.ConditionImageMismatch); c != nil {
		all = append(all, Event{Warning: true, Reason: v1alpha1.ConditionImageMismatch, Action: "UseImage", Note: c.Message})
	}
	if lostAt(after) != nil && !lostAt(after).Equal(lostAt(before)) {
		all = append(all, Event{Warning: true, Reason: string(v1alpha1.ReasonDiskLost), Action: "CloneDisk", Note: "The disk was lost; another one is cloned from the image"})
	}
	if c := tookReason(before, after, v1alpha1.ConditionDiskReady, v1alpha1.ReasonDiskDeleted); c != nil {
		all = append(all, Event{Warning: true, Reason: c.Reason, Action: "KeepDisk", Note: c.Message})
	}
	if c := tookReason(before, after, v1alpha1.ConditionImageReady, v1alpha1.ReasonImageNotAllowed); c != nil {
		all = append(all, Event{Warning: true, Reason: c.Reason, Action: "UseImage", Note: c.Message})
	}
	if c := becameTrue(before, after, v1alpha1.ConditionRestartRequired); c != nil {
		all = append(all, Event{Reason: c.Type, Action: "Apply", Note: c.Message})
	}
	all = append(all, phaseEvents(before, after)...)
	for i := range all {
		all[i].Note = clipTo(maxNote, all[i].Note)
	}
	return all
}

func phaseEvents(before, after *v1alpha1.VirtualMachineStatus) []Event {
	stalled := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionStalled)
	was := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionStalled)
	switch {
	case after.Phase == v1alpha1.VirtualMachineFailed && stalled != nil && (before.Phase != after.Phase || was == nil || was.Reason != stalled.Reason):
		return []Event{{Warning: true, Reason: stalled.Reason, Action: "Provision", Note: stalled.Message}}
	case after.Phase == before.Phase:
		return nil
	case after.Phase == v1alpha1.VirtualMachineReady:
		return []Event{{Reason: "Ready", Action: "Provision", Note: after.Message}}
	case before.Phase == v1alpha1.VirtualMachineReady:
		return []Event{{Reason: "NotReady", Action: "Provision", Note: after.Message}}
	case before.Phase == v1alpha1.VirtualMachineFailed:
		return []Event{{Reason: "Recovering", Action: "Provision", Note: after.Message}}
	}
	return nil
}

func becameTrue(before, after *v1alpha1.VirtualMachineStatus, kind string) *metav1.Condition {
	if meta.IsStatusConditionTrue(before.Conditions, kind) || !meta.IsStatusConditionTrue(after.Conditions, kind) {
		return nil
	}
	return meta.FindStatusCondition(after.Conditions, kind)
}

func tookReason(before, after *v1alpha1.VirtualMachineStatus, kind string, reason v1alpha1.VirtualMachineReason) *metav1.Condition {
	now, was := meta.FindStatusCondition(after.Conditions, kind), meta.FindStatusCondition(before.Conditions, kind)
	if now == nil || now.Reason != string(reason) || was != nil && was.Reason == now.Reason {
		return nil
	}
	return now
}

func lostAt(st *v1alpha1.VirtualMachineStatus) *metav1.Time {
	if st.Disk == nil {
		return nil
	}
	return st.Disk.LostAt
}
