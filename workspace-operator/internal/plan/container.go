package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

const aContainer = "container"

// containersStep keeps a Deployment for each entry, and the Service that gives it a name and an address.
func containersStep(v view, before, machines step) step {
	var all step
	for i := range v.Workspace.Spec.Containers {
		name := v.Workspace.Spec.Containers[i].Name
		child := v.child(Deployment, name)
		var until time.Time
		one := v.named(before, name, v.keep(child, func() (verdict Verdict) {
			verdict, until = deploymentVerdict(v, name, v.Deployments[child.Name])
			return verdict
		}), child)
		all.wakeAt = earliest(all.wakeAt, after(v.now, until))
		all.actions = append(all.actions, one.actions...)
		all.members = append(all.members, Member{Name: name, Verdict: indulged(one.Verdict, machines)})
	}
	all.Verdict = worstOf(aContainer, all.members)
	return all
}

// named is the step of an entry's child and of its Service, where it has one: together, and only when what comes before is
// there.
func (v view) named(before step, entry string, st step, child Child) step {
	if service := v.child(Service, entry); v.want[service] != nil {
		one := v.keep(service, func() Verdict { return good(v1alpha1.WorkspaceMembersReady, "") })
		st.actions = append(one.actions, st.actions...)
		if !one.Good && (st.Good || one.Weight > st.Weight) {
			st.Verdict = one.Verdict
		}
	}
	switch {
	case before.usable:
	case v.live(child) == nil:
		return step{Verdict: bad(Waits, v1alpha1.WorkspaceWaiting, "Waiting for the namespace and its network policies")}
	default:
		st.actions = nil
	}
	return st
}

// indulged takes it for no trouble of its own that a container ends again and again, as long as a virtual machine of the
// workspace is not ready: it may wait for that one, and be able to do nothing else.
func indulged(verdict Verdict, machines step) Verdict {
	if verdict.Reason == v1alpha1.WorkspaceCrashLooping && !machines.Good && machines.Weight <= Waits {
		verdict.Weight = min(verdict.Weight, machines.Weight)
	}
	return verdict
}

// deploymentVerdict believes the Deployment of its newest generation only, and asks its pods for the cause when it is not done, or
// is for a moment. It says when that is over if nothing happens.
func deploymentVerdict(v view, entry string, deployment *appsv1.Deployment) (verdict Verdict, until time.Time) {
	want, st := ptr.Deref(deployment.Spec.Replicas, 1), deployment.Status
	cause := causeOf(v, deployment)
	switch {
	case st.ObservedGeneration == 0:
		return bad(Waits, v1alpha1.WorkspaceContainerStarting, beingMade, "It"), until
	case st.ObservedGeneration != deployment.Generation:
		return bad(Waits, v1alpha1.WorkspaceContainerStarting, beingChanged, "It"), until
	case cause != nil && (!done(deployment) || cause.reason == v1alpha1.WorkspaceCrashLooping):
		return cause.verdict(v.Snapshot, entry), cause.until
	case done(deployment) && want == 0:
		return good(v1alpha1.WorkspaceMembersReady, "It is to have no pods"), until
	case done(deployment):
		return good(v1alpha1.WorkspaceMembersReady, "All %d pods are ready", want), until
	case st.UpdatedReplicas >= want && st.AvailableReplicas >= want:
		return bad(Waits, v1alpha1.WorkspaceContainerStarting, "Pods of before are being stopped"), until
	}
	return bad(Waits, v1alpha1.WorkspaceContainerStarting, "%d of %d pods are ready", min(st.UpdatedReplicas, st.AvailableReplicas), want), until
}

// done says that the Deployment has all that its newest generation wants, and nothing else.
func done(d *appsv1.Deployment) bool {
	want, st := ptr.Deref(d.Spec.Replicas, 1), d.Status
	return st.ObservedGeneration == d.Generation && st.Replicas == want && st.UpdatedReplicas == want && st.AvailableReplicas == want
}

// NeedsPods says that the ReplicaSets and Pods of the Deployment are to be read: it is ours, and not done, or its pods ended again
// and again when they were looked at last.
func NeedsPods(s Snapshot, deployment *appsv1.Deployment) bool {
	return s.Workspace.DeletionTimestamp == nil && owned(s, deployment) && deployment.Status.ObservedGeneration > 0 &&
		(!done(deployment) || toldCrashing(s.Workspace, deployment.Name))
}

func toldCrashing(ws *v1alpha1.Workspace, name string) bool {
	if ws.Status.ResourceStatus == nil {
		return false
	}
	return slices.ContainsFunc(ws.Status.ResourceStatus.Containers, func(c v1alpha1.WorkspaceContainerStatus) bool {
		return v1alpha1.WorkspaceChild(ws, c.Name) == name && strings.HasPrefix(c.Message, endsAgain)
	})
}
