package plan

import (
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
		one := v.named(before, name, v.keep(child, func() Verdict {
			return deploymentVerdict(v.Snapshot, name, v.Deployments[child.Name])
		}), child)
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

// deploymentVerdict believes the Deployment of its newest generation only, and asks its pods for the cause when it is not done.
func deploymentVerdict(s Snapshot, entry string, deployment *appsv1.Deployment) Verdict {
	want, st := ptr.Deref(deployment.Spec.Replicas, 1), deployment.Status
	switch {
	case done(deployment) && want == 0:
		return good(v1alpha1.WorkspaceMembersReady, "It is to have no pods")
	case done(deployment):
		return good(v1alpha1.WorkspaceMembersReady, "All %d pods are ready", want)
	case st.ObservedGeneration == 0:
		return bad(Waits, v1alpha1.WorkspaceContainerStarting, beingMade, "It")
	case st.ObservedGeneration != deployment.Generation:
		return bad(Waits, v1alpha1.WorkspaceContainerStarting, beingChanged, "It")
	}
	if c := causeOf(s, deployment); c != nil {
		return c.verdict(s, entry)
	}
	if st.UpdatedReplicas >= want && st.AvailableReplicas >= want {
		return bad(Waits, v1alpha1.WorkspaceContainerStarting, "Pods of before are being stopped")
	}
	return bad(Waits, v1alpha1.WorkspaceContainerStarting, "%d of %d pods are ready", min(st.UpdatedReplicas, st.AvailableReplicas), want)
}

// done says that the Deployment has all that its newest generation wants, and nothing else.
func done(d *appsv1.Deployment) bool {
	want, st := ptr.Deref(d.Spec.Replicas, 1), d.Status
	return st.ObservedGeneration == d.Generation && st.Replicas == want && st.UpdatedReplicas == want && st.AvailableReplicas == want
}

// NeedsPods says that the ReplicaSets and Pods of the Deployment are to be read: it is ours, and not done.
func NeedsPods(s Snapshot, deployment *appsv1.Deployment) bool {
	return s.Workspace.DeletionTimestamp == nil && owned(s, deployment) && deployment.Status.ObservedGeneration > 0 && !done(deployment)
}
