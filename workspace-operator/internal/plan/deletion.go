package plan

import (
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
)

// leaving takes a workspace away, in every state that it can be in:
//
//	what runs, and its pods -> Services -> policies -> the namespace, if it is ours -> our finalizer
//
// Each begins when the former is gone, so that nothing ever runs without the policies, and nothing is left behind. A namespace
// that somebody else deleted meanwhile takes all of it along in its own order; nothing is made in it.
func leaving(s Snapshot, set Settings, now time.Time) Decision {
	if !protected(s.Workspace) { // it is gone, or nothing was ever made for it
		return Decision{Report: Report{Silent: true}}
	}
	v := viewOf(s, set)
	for _, stage := range []struct {
		kinds []Kind
		says  string
	}{
		{[]Kind{VirtualMachine, Deployment}, "The workspace is being deleted: waiting until nothing of it runs any more"},
		{[]Kind{Service}, "The workspace is being deleted: waiting until its Services are gone"},
		{[]Kind{NetworkPolicy}, "The workspace is being deleted: waiting until its network policies are gone"},
	} {
		left := v.ownedOf(stage.kinds...)
		if len(left) > 0 || stage.kinds[0] == VirtualMachine && len(s.Remnants) > 0 {
			return going(v, stage.says, left, now)
		}
	}
	if s.Namespace != nil && s.Workspace.OwnsNamespace() && owned(s, s.Namespace) {
		return going(v, "The workspace is being deleted: waiting until its namespace is gone", []Child{{Namespace, s.Namespace.Name}}, now)
	}
	return Decision{Actions: []Action{{Release, Child{Workspace, s.Workspace.Name}}}, Report: Report{Silent: true}}
}

// going deletes what nobody has deleted yet, and tells what is waited for.
func going(v view, says string, left []Child, now time.Time) Decision {
	wait := bad(Waits, v1alpha1.WorkspaceDeleting, "%s", says)
	d := Decision{Report: goingReport(v, wait)}
	for _, child := range left {
		if v.live(child).GetDeletionTimestamp() == nil {
			d.Actions = append(d.Actions, Action{Delete, child})
		}
	}
	for _, child := range left {
		if refusal, refusedIt := v.Refusals[child]; refusedIt {
			d.Report.Blocking.Message = "The workspace is being deleted: the " + string(child.Kind) + " " + child.Name + " cannot be: " + refusal.Message
			d.WakeAt = now.Add(LookAgain)
			break
		}
	}
	var late time.Time
	d.Report.Blocked, late = blocked(v, now)
	if d.Report.Blocked != nil {
		d.Report.Blocking.Message = "The workspace is being deleted: " + lowered(d.Report.Blocked.Message)
	}
	d.WakeAt = earliest(d.WakeAt, late)
	return d
}

// goingReport has all conditions say that the workspace goes. Only isolation is told as it is: the policies are the last.
func goingReport(v view, wait Verdict) Report {
	gone := bad(Waits, v1alpha1.WorkspaceDeleting, "The workspace is being deleted")
	st := v.Workspace.Status
	r := Report{
		Admitted: gone, Namespace: gone, VirtualMachinesReady: gone, ContainersReady: gone, Isolated: gone, Blocking: wait,
		NamespaceStatus: namespaceStatus(v.Snapshot), AdmittedAt: st.AdmittedAt, ProvisionedAt: st.ProvisionedAt,
	}
	if policies := isolationStep(v, step{}); policies.Good {
		r.Isolated = isolated(v.Snapshot, policies)
	}
	if admitted(v.Workspace) {
		r.Admitted = isAdmitted
	}
	for _, entry := range v.Workspace.Spec.VirtualMachines {
		r.VirtualMachines = append(r.VirtualMachines, Member{Name: entry.Name, Verdict: gone, Phase: v1alpha1.VirtualMachineProvisioning})
	}
	for _, entry := range v.Workspace.Spec.Containers {
		r.Containers = append(r.Containers, Member{Name: entry.Name, Verdict: gone})
	}
	return r
}
