package plan_test

import (
	"maps"
	"slices"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/plan"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// step is a mutator.
type step = func(*world)

// The queue.

func (w *world) granted() {
	if w.ws != nil && plan.NeedsSlot(w.ws) {
		w.slot.Held = true
		w.line("queue", "a slot")
	}
}

func place(n int) step {
	return func(w *world) {
		w.slot.Position = n
		w.line("queue", "number %d", n)
	}
}

// The vm-operator, and what is behind it.

func machine(entry string, phase v1alpha1.VirtualMachinePhase, image v1alpha1.Phase, reason v1alpha1.VirtualMachineReason, message string) step {
	return func(w *world) {
		vm := w.vms[child(w, entry)]
		if vm == nil || w.ws == nil || !metav1.IsControlledBy(vm, w.ws) || vm.DeletionTimestamp != nil {
			return
		}
		key := vm.ImageKey()
		vm.Status = v1alpha1.VirtualMachineStatus{
			Phase: phase, Message: message, ObservedGeneration: vm.Generation,
			Image: &v1alpha1.VirtualMachineImageStatus{Namespace: key.Namespace, Name: key.Name, Phase: image},
		}
		is := func(kind string, yes bool) {
			c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: string(reason), Message: message, ObservedGeneration: vm.Generation}
			if yes {
				c.Status = metav1.ConditionTrue
			}
			vm.Status.Conditions = append(vm.Status.Conditions, c)
		}
		is(v1alpha1.ConditionReady, phase == v1alpha1.VirtualMachineReady)
		is(v1alpha1.ConditionStalled, phase == v1alpha1.VirtualMachineFailed)
		if phase == v1alpha1.VirtualMachineReady {
			w.running[entry] = plan.Remnant{Kind: "Pod", Name: "virt-launcher-" + entry, Node: "node-1"}
		}
		w.line("vm", "%s is %s: %s", entry, phase, message)
	}
}

// child is the name of an entry's children.
func child(w *world, entry string) string {
	if w.ws == nil {
		return entry
	}
	return v1alpha1.WorkspaceChild(w.ws, entry)
}

func imageQueued(entry string) step {
	return machine(entry, v1alpha1.VirtualMachineProvisioning, v1alpha1.PhaseQueued, v1alpha1.ReasonImageNotReady,
		"The image vm-images/"+entry+"-image is Queued: Waiting for a slot; 2 were ahead when it was queued")
}

func imageSyncing(entry string) step {
	return machine(entry, v1alpha1.VirtualMachineProvisioning, v1alpha1.PhaseSyncing, v1alpha1.ReasonImageNotReady, "The image vm-images/"+entry+"-image is Syncing")
}

func cloning(entry string) step {
	return machine(entry, v1alpha1.VirtualMachineProvisioning, v1alpha1.PhaseSucceeded, v1alpha1.ReasonDiskCloning, "The disk is being cloned from the snapshot s")
}

func runs(entry string) step {
	return machine(entry, v1alpha1.VirtualMachineReady, v1alpha1.PhaseSucceeded, v1alpha1.ReasonRunning, "The guest is running")
}

func fails(entry string) step {
	return machine(entry, v1alpha1.VirtualMachineFailed, v1alpha1.PhaseFailed, v1alpha1.ReasonImageFailed, "The image failed: SourceNotFound: 404")
}

// The controllers of Deployments, the scheduler and the kubelet.

func deployment(entry string, says string, change func(*world, *appsv1.Deployment)) step {
	return func(w *world) {
		d := w.deployments[child(w, entry)]
		if d == nil || w.ws == nil || !metav1.IsControlledBy(d, w.ws) || d.DeletionTimestamp != nil {
			return
		}
		want := ptr.Deref(d.Spec.Replicas, 1)
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: want, UpdatedReplicas: want}
		w.sets[d.Name] = []*appsv1.ReplicaSet{{ObjectMeta: metav1.ObjectMeta{Name: d.Name + "-1", UID: types.UID("set-" + d.Name), Annotations: map[string]string{"deployment.kubernetes.io/revision": "1"}}}}
		w.pods[d.Name] = nil
		change(w, d)
		w.line("kubelet", "%s: %s", entry, says)
	}
}

func serves(entry string) step {
	return deployment(entry, "its pods are ready", func(w *world, d *appsv1.Deployment) {
		d.Status.AvailableReplicas, d.Status.ReadyReplicas = d.Status.Replicas, d.Status.Replicas
		if delete(w.running, entry); d.Status.Replicas > 0 {
			w.running[entry] = plan.Remnant{Kind: "Pod", Name: d.Name + "-1-x", Node: "node-1"}
		}
	})
}

func pending(entry string) step {
	return deployment(entry, "its pods are being made", func(*world, *appsv1.Deployment) {})
}

func quota(entry string) step {
	return deployment(entry, "a quota is exceeded", func(w *world, d *appsv1.Deployment) {
		d.Status.Replicas, d.Status.UpdatedReplicas = 0, 0
		w.sets[d.Name][0].Status.Conditions = []appsv1.ReplicaSetCondition{{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate",
			Message: `pods "api-1-abcde" is forbidden: exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3`,
		}}
	})
}

// pod is one whose container waits, or has ended.
func pod(entry, says string, change func(*corev1.Pod, *corev1.ContainerStatus)) step {
	return deployment(entry, says, func(w *world, d *appsv1.Deployment) {
		p := &corev1.Pod{}
		p.OwnerReferences = []metav1.OwnerReference{{UID: types.UID("set-" + d.Name), Controller: new(true)}}
		c := corev1.ContainerStatus{Image: d.Spec.Template.Spec.Containers[0].Image}
		change(p, &c)
		p.Status.ContainerStatuses = []corev1.ContainerStatus{c}
		w.pods[d.Name] = []*corev1.Pod{p}
		w.running[entry] = plan.Remnant{Kind: "Pod", Name: d.Name + "-1-x", Node: "node-1"}
	})
}

func waits(entry, reason, message string) step {
	return pod(entry, reason, func(_ *corev1.Pod, c *corev1.ContainerStatus) {
		c.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
	})
}

func pullFails(entry string) step {
	return waits(entry, "ImagePullBackOff", `Back-off pulling image "x": ErrImagePull: not found`)
}

func crashes(entry string) step {
	return pod(entry, "CrashLoopBackOff", func(_ *corev1.Pod, c *corev1.ContainerStatus) {
		c.RestartCount, c.State.Waiting = 3, &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
		c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}
	})
}

// runsAgain is a container that was started again, and is ready: for a moment, or for good.
func runsAgain(entry string) step {
	return func(w *world) {
		pod(entry, "runs again", func(_ *corev1.Pod, c *corev1.ContainerStatus) {
			c.RestartCount, c.Ready, c.State.Running = 4, true, &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(w.now)}
			c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}
		})(w)
		if d := w.deployments[child(w, entry)]; d != nil {
			d.Status.AvailableReplicas = d.Status.Replicas
		}
	}
}

func noNode(entry, message string) step {
	return pod(entry, "Unschedulable", func(p *corev1.Pod, _ *corev1.ContainerStatus) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message}}
	})
}

// People.

func edit(says string, change func(*v1alpha1.WorkspaceSpec)) step {
	return func(w *world) {
		if w.ws != nil {
			change(&w.ws.Spec)
			w.ws.Generation++
			w.line("user", "%s", says)
		}
	}
}

func (w *world) deleted() {
	if w.ws == nil || w.ws.DeletionTimestamp != nil {
		return
	}
	w.line("user", "deletes the workspace")
	if len(w.ws.Finalizers) == 0 {
		w.ws = nil
		w.line("api", "the workspace is gone")
		return
	}
	w.ws.DeletionTimestamp = &metav1.Time{Time: w.now}
	w.ws.Generation++
}

// loses deletes a child by hand.
func loses(kind plan.Kind, name string) step {
	return func(w *world) {
		c := plan.Child{Kind: kind, Name: name}
		if live := w.live(c); live != nil && live.GetDeletionTimestamp() == nil {
			w.line("user", "deletes %s %s", kind, name)
			w.deletes(c)
		}
	}
}

func (w *world) opensPolicy() {
	if policy := w.policies[v1alpha1.WorkspacePolicy]; policy != nil && w.ws != nil && metav1.IsControlledBy(policy, w.ws) {
		policy.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{}}
		w.line("user", "opens the policy by hand")
	}
}

// takes makes somebody else's object under a name of ours.
func takes(kind plan.Kind, name string) step {
	return func(w *world) {
		if w.live(plan.Child{Kind: kind, Name: name}) != nil {
			return
		}
		meta := metav1.ObjectMeta{Name: name, UID: types.UID("foreign-" + name)}
		switch kind {
		case plan.Namespace:
			w.namespace = &corev1.Namespace{ObjectMeta: meta}
		case plan.NetworkPolicy:
			w.policies[name] = &networkingv1.NetworkPolicy{ObjectMeta: meta}
		case plan.Service:
			w.services[name] = &corev1.Service{ObjectMeta: meta}
		case plan.VirtualMachine:
			w.vms[name] = &v1alpha1.VirtualMachine{ObjectMeta: meta}
		case plan.Deployment:
			w.deployments[name] = &appsv1.Deployment{ObjectMeta: meta}
		}
		w.line("stranger", "has made %s %s", kind, name)
	}
}

// strangersGo takes away what is somebody else's.
func (w *world) strangersGo() {
	if w.namespace != nil && isForeign(w.namespace) && (w.ws == nil || w.ws.OwnsNamespace()) {
		w.namespace = nil
	}
	maps.DeleteFunc(w.policies, func(_ string, o *networkingv1.NetworkPolicy) bool { return isForeign(o) })
	maps.DeleteFunc(w.services, func(_ string, o *corev1.Service) bool { return isForeign(o) })
	maps.DeleteFunc(w.vms, func(_ string, o *v1alpha1.VirtualMachine) bool { return isForeign(o) })
	maps.DeleteFunc(w.deployments, func(_ string, o *appsv1.Deployment) bool { return isForeign(o) })
	w.line("stranger", "takes away what is his")
}

func isForeign(o metav1.Object) bool { return metav1.GetControllerOf(o) == nil }

const heldBy = "example.com/hold"

// holds puts a finalizer on a child.
func holds(kind plan.Kind, name string) step {
	return func(w *world) {
		if live := w.live(plan.Child{Kind: kind, Name: name}); live != nil && live.GetDeletionTimestamp() == nil {
			live.SetFinalizers([]string{heldBy})
			w.line("stranger", "holds %s %s", kind, name)
		}
	}
}

// letsGo takes all such finalizers off.
func (w *world) letsGo() {
	w.line("stranger", "lets go")
	for _, kind := range []plan.Kind{plan.NetworkPolicy, plan.Service, plan.VirtualMachine, plan.Deployment} {
		for _, name := range w.names(kind) {
			c := plan.Child{Kind: kind, Name: name}
			live := w.live(c)
			live.SetFinalizers(slices.DeleteFunc(live.GetFinalizers(), func(f string) bool { return f == heldBy }))
			if live.GetDeletionTimestamp() != nil && len(live.GetFinalizers()) == 0 {
				w.removes(c)
			}
		}
	}
}

func (w *world) names(kind plan.Kind) []string {
	switch kind {
	case plan.NetworkPolicy:
		return slices.Sorted(maps.Keys(w.policies))
	case plan.Service:
		return slices.Sorted(maps.Keys(w.services))
	case plan.VirtualMachine:
		return slices.Sorted(maps.Keys(w.vms))
	}
	return slices.Sorted(maps.Keys(w.deployments))
}

func refuses(kind plan.Kind, name string, reason v1alpha1.WorkspaceReason, message string) step {
	return func(w *world) {
		w.refusals[plan.Child{Kind: kind, Name: name}] = plan.Refusal{Reason: reason, Message: message}
		w.line("api", "refuses %s %s", kind, name)
	}
}

// heals takes away whatever stands in the way.
func (w *world) heals() {
	maps.DeleteFunc(w.refusals, func(plan.Child, plan.Refusal) bool { return true })
	w.line("api", "refuses nothing")
}

// The garbage collector, the kubelet and the controller of namespaces.

// collects has the objects go whose deletion waits for what they have made, but for the pods.
func (w *world) collects() {
	w.line("gc", "collects")
	for _, kind := range []plan.Kind{plan.VirtualMachine, plan.Deployment} {
		for _, name := range w.names(kind) {
			c := plan.Child{Kind: kind, Name: name}
			live := w.live(c)
			if live.GetDeletionTimestamp() == nil {
				continue
			}
			live.SetFinalizers(slices.DeleteFunc(live.GetFinalizers(), func(f string) bool { return f == metav1.FinalizerDeleteDependents }))
			if len(live.GetFinalizers()) == 0 {
				w.removes(c)
			}
		}
	}
}

// stops has the pods go whose owners are gone.
func (w *world) stops() {
	for _, entry := range slices.Sorted(maps.Keys(w.running)) {
		if name := child(w, entry); w.vms[name] == nil && w.deployments[name] == nil {
			delete(w.running, entry)
			w.line("kubelet", "the pods of %s have stopped", entry)
		}
	}
}

// namespaceGoes takes everything that is in a namespace that is being deleted along.
func (w *world) namespaceGoes() {
	if w.namespace == nil || w.namespace.DeletionTimestamp == nil {
		return
	}
	w.namespace = nil
	clear(w.running)
	clear(w.vms)
	clear(w.deployments)
	clear(w.services)
	clear(w.policies)
	w.line("namespace", "is gone, and all that was in it")
}
