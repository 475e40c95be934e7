package plan

import (
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NeedsSlot says that the workspace waits for a slot, or may not give the one up that it holds: it has not been Ready or Failed
// since it was admitted. One that is being deleted needs none: nothing is made for it any more.
func NeedsSlot(ws *v1alpha1.Workspace) bool {
	return ws.DeletionTimestamp == nil && ws.Status.ProvisionedAt == nil
}

// admitted goes by what status says, whatever has become of the slot since: children may be there.
func admitted(ws *v1alpha1.Workspace) bool { return ws.Status.AdmittedAt != nil }

var isAdmitted = good(v1alpha1.WorkspaceAdmitted, "The workspace may be provisioned")

// queued tells where in the queue the workspace waits. Nothing is made, and no deadline runs.
func queued(s Snapshot, now time.Time) Decision {
	if s.Slot.Position == 0 { // the queue looks at it in a moment, and most often has a slot
		return Decision{Report: Report{Silent: true}, WakeAt: now.Add(LookAgain)}
	}
	wait := bad(Patient, v1alpha1.WorkspaceQueued, "Waiting for a place: %d workspaces may be provisioned at once, and this one is number %d in the queue",
		s.Slot.Limit, s.Slot.Position)
	position := s.Slot.Position
	if told := toldQueued(s.Workspace); told != nil && !muchLess(position, int(s.Workspace.Status.Queue.Position)) {
		wait.Message, position = told.Message, int(s.Workspace.Status.Queue.Position)
	}
	later := bad(Patient, v1alpha1.WorkspaceWaiting, "Nothing is made before the workspace is admitted")
	r := Report{
		Admitted: wait, Namespace: later, Isolated: later, VirtualMachinesReady: later, ContainersReady: later,
		Blocking: wait, Position: position, Ticket: s.Slot.Ticket, NamespaceStatus: namespaceStatus(s),
	}
	for _, entry := range s.Workspace.Spec.VirtualMachines {
		r.VirtualMachines = append(r.VirtualMachines, Member{Name: entry.Name, Verdict: later, Phase: v1alpha1.VirtualMachineProvisioning})
	}
	for _, entry := range s.Workspace.Spec.Containers {
		r.Containers = append(r.Containers, Member{Name: entry.Name, Verdict: later})
	}
	return Decision{Report: r}
}

// toldQueued is the condition that tells the place in the queue already, for this generation.
func toldQueued(ws *v1alpha1.Workspace) *metav1.Condition {
	c := meta.FindStatusCondition(ws.Status.Conditions, v1alpha1.ConditionAdmitted)
	if c == nil || ws.Status.Queue == nil || c.Reason != string(v1alpha1.WorkspaceQueued) || c.ObservedGeneration != ws.Generation {
		return nil
	}
	return c
}

// muchLess says that a place in the queue is worth a write of status: the way is half as long as when it was told last, or it
// is the first, or it has become longer. So a long queue that moves on costs each workspace few writes, not one for each move.
func muchLess(position, told int) bool {
	return position > told || position < told && (position == 1 || 2*position <= told)
}
