package plan

import (
	"slices"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/desired"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Snapshot is all that one reconcile read; nil and zero where there is nothing.
type Snapshot struct {
	Workspace *v1alpha1.Workspace
	// Slot is where the workspace stands in the queue.
	Slot Slot
	// Friends are the Workspaces that network.allowFrom names, by name: those that exist.
	Friends map[string]*v1alpha1.Workspace
	// Shall are desired.Children of Workspace and Friends. They may be remembered as long as neither changes, and are only read
	// here; nil has them built anew.
	Shall []*unstructured.Unstructured
	// Namespace has the name of Workspace.ChildNamespace, whoever's it is.
	Namespace *corev1.Namespace

	// The children by name: those in that namespace which the Workspace controls, whatever their names; and those that have a
	// name that the Workspace needs (see Names), whoever's they are.
	VirtualMachines map[string]*v1alpha1.VirtualMachine
	Deployments     map[string]*appsv1.Deployment
	Services        map[string]*corev1.Service
	Policies        map[string]*networkingv1.NetworkPolicy

	// ReplicaSets and Pods of own Deployments that are not done, by the name of the Deployment: they hold the cause. Nothing
	// is decided by them but what is told. See NeedsPods.
	ReplicaSets map[string][]*appsv1.ReplicaSet
	Pods        map[string][]*corev1.Pod

	// Remnants are what runs in that namespace for a Workspace that is being deleted, besides its children: pods with its UID
	// in the label, virt-launchers among them. It matters only while Workspace is being deleted.
	Remnants []Remnant

	// Untaken are fields of children that the API server did not take from us when they were applied for this generation:
	// applying them again would change nothing, for ever.
	Untaken map[Child][]string
	// Refusals are what the API server, a webhook or a quota said against an action of this reconcile.
	Refusals map[Child]Refusal
	// Failing says that an action of this reconcile failed, and is tried again.
	Failing bool
	// ToldAt is when this process wrote the status last; zero when it has not.
	ToldAt time.Time
}

// Slot is the place of a workspace in the queue.
type Slot struct {
	// Held says that the workspace holds a slot's Lease.
	Held bool
	// Position in the queue, from 1; 0 while the queue has not looked at the workspace yet.
	Position int
	// Ticket orders the queue; it is told with the position.
	Ticket int64
	// Limit is how many may be provisioned at once.
	Limit int
}

// Remnant is something that must be gone before the policies go.
type Remnant struct {
	Kind, Name string
	Finalizers []string
	// Node is that of a pod.
	Node string
	// DeletedAt is its deletionTimestamp: for a pod the time by which it should have stopped. nil when nobody has deleted it.
	DeletedAt *metav1.Time
}

// Kind is one of the kinds of objects that the operator makes for a Workspace, or the Workspace itself.
type Kind string

// The kinds.
const (
	Workspace      Kind = "Workspace"
	Namespace      Kind = "Namespace"
	NetworkPolicy  Kind = "NetworkPolicy"
	Service        Kind = "Service"
	VirtualMachine Kind = "VirtualMachine"
	Deployment     Kind = "Deployment"
)

// Child is an object by kind and name, in the namespace of the children. For the Workspace and its Namespace it is the name
// alone.
type Child struct {
	Kind Kind
	Name string
}

// Refusal is why a child cannot be made, or changed.
type Refusal struct {
	Reason  v1alpha1.WorkspaceReason
	Message string
}

// Settings are what the decisions depend on besides the Snapshot.
type Settings struct {
	// Desired are those of the children.
	Desired desired.Settings
	// TroubleDebounce is how long a state that usually passes must last to be a failure.
	TroubleDebounce time.Duration
	// StatusInterval is the least time between two writes of status that change neither the phase nor the place in the queue.
	StatusInterval time.Duration
}

// Verb is what is done to a child.
type Verb string

// The verbs that there are.
const (
	// Protect sets our finalizer on the Workspace, by a patch with its resourceVersion.
	Protect Verb = "Protect"
	// Apply makes a child, or makes it right: by server-side apply of what Desired gives.
	Apply Verb = "Apply"
	// Delete takes away a child of ours, with a precondition on its UID; VirtualMachines and Deployments in the foreground, so
	// that they are there until what they made is gone.
	Delete Verb = "Delete"
	// Release takes our finalizer off the Workspace, by a patch with its resourceVersion.
	Release Verb = "Release"
)

// Action is a change of a child.
type Action struct {
	Verb Verb
	Child
}

// Stage of the action, in the order of a decision: those of one stage may be carried out at the same time, after all of the
// stages before.
func (a Action) Stage() int {
	switch {
	case a.Verb == Protect:
		return 0
	case a.Verb != Apply: // what a decision deletes waits for nothing of the same decision but the policies
		return 3
	case a.Kind == Namespace:
		return 1
	case a.Kind == NetworkPolicy:
		return 2
	}
	return 3
}

// Decision is what to do, in this order, and what status shall say afterwards.
type Decision struct {
	Actions []Action
	Report  Report
	// Doubtful says that something is to go because other things are gone: decide again on the API server's own word.
	Doubtful bool
	// Again says that status has to tell first: decide anew as soon as it is written.
	Again bool
	// WakeAt is when to look again without an event; zero for never.
	WakeAt time.Time
}

// Report is what status shall say; the status package turns it into conditions.
type Report struct {
	// Silent leaves status as it is.
	Silent bool

	Admitted, Namespace, VirtualMachinesReady, ContainersReady Verdict
	// Isolated is Good when the condition is True: it need not be for the workspace to be Ready.
	Isolated Verdict
	Ready    bool
	// Blocking is what stands between the workspace and Ready: the worst, with its child's name in the message.
	Blocking Verdict
	// Stalled is why the workspace is Failed; nil when it is not.
	Stalled *Verdict
	// Blocked is what holds back the deletion; nil when nothing does.
	Blocked *Verdict

	// The members, in the order of the spec.
	VirtualMachines, Containers []Member

	NamespaceStatus                                    *v1alpha1.WorkspaceNamespaceStatus
	Position                                           int // in the queue; 0 when it does not wait
	Ticket                                             int64
	AdmittedAt, ProvisionedAt, Deadline, TroubledSince *metav1.Time
}

// Member is where an entry of the spec stands.
type Member struct {
	Name string
	Verdict
	// Phase and ImagePhase are those of a virtual machine.
	Phase      v1alpha1.VirtualMachinePhase
	ImagePhase v1alpha1.Phase
}

// Next is the decision for what was read.
func Next(s Snapshot, set Settings, now time.Time) Decision {
	d := Decision{}
	switch {
	case s.Workspace.DeletionTimestamp != nil:
		d = leaving(s, set, now)
	case !admitted(s.Workspace) && !s.Slot.Held:
		d = queued(s, now)
	default:
		d = provisioning(s, set, now)
	}
	d.Doubtful = slices.ContainsFunc(d.Actions, func(a Action) bool { return a.Verb == Delete || a.Verb == Release })
	if slices.ContainsFunc(d.Actions, func(a Action) bool { return a.Verb == Apply && hopeful(s, a.Child) }) {
		d.WakeAt = earliest(d.WakeAt, now.Add(settleTime))
	}
	quietly(s, set, &d, now)
	return d
}

// hopeful says that an apply of the child has not been tried in vain.
func hopeful(s Snapshot, c Child) bool {
	_, refusedIt := s.Refusals[c]
	return !refusedIt && len(s.Untaken[c]) == 0
}

// settleTime is when to look at what was applied, where nobody says anything of it: a policy or a Service is done when it is
// written. It is long enough for a field that somebody else changes each time not to be a loop.
const settleTime = time.Second

// provisioning is the way of a workspace that holds a slot, or has held one: to Ready, and from then on whatever is needed to
// stay so.
func provisioning(s Snapshot, set Settings, now time.Time) Decision {
	v := viewOf(s, set)
	v.now = now
	namespace := namespaceStep(v)
	isolation := isolationStep(v, namespace)
	machines := machinesStep(v, isolation)
	containers := containersStep(v, isolation, machines)

	d := Decision{Actions: slices.Concat(protect(s), namespace.actions, isolation.actions, surplus(v), machines.actions, containers.actions)}
	d.Report = Report{
		Admitted:  isAdmitted,
		Namespace: namespace.Verdict, NamespaceStatus: namespaceStatus(s), Isolated: isolated(s, isolation),
		VirtualMachines: machines.members, VirtualMachinesReady: machines.Verdict,
		Containers: containers.members, ContainersReady: containers.Verdict,
		AdmittedAt: s.Workspace.Status.AdmittedAt, ProvisionedAt: s.Workspace.Status.ProvisionedAt,
	}
	d.Report.Blocking = worst(namespace.Verdict, isolation.Verdict, machines, containers)
	d.Report.Ready = d.Report.Blocking.Good
	if !admitted(s.Workspace) { // that is told first, and the finalizer set
		d.Actions, d.Again = protect(s), true
		d.Report.AdmittedAt = &metav1.Time{Time: now}
	}
	judge(s, set, &d, now)
	var late time.Time
	d.Report.Blocked, late = blocked(v, now)
	d.WakeAt = earliest(d.WakeAt, late, containers.wakeAt)
	return d
}

// step is what one of the steps comes to.
type step struct {
	Verdict
	actions []Action
	// usable says that what comes next may be made, once the actions are done.
	usable  bool
	members []Member
	// wakeAt is when a verdict changes without an event.
	wakeAt time.Time
}

// protect sets the finalizer where it is not: nothing is made before.
func protect(s Snapshot) []Action {
	if protected(s.Workspace) {
		return nil
	}
	return []Action{{Protect, Child{Workspace, s.Workspace.Name}}}
}

func protected(ws *v1alpha1.Workspace) bool {
	return slices.Contains(ws.Finalizers, v1alpha1.FinalizerWorkspace)
}

// worst is what stands between the workspace and Ready. What comes before counts first: without it, the members only wait. Of
// the members it is the one that matters most, virtual machines first: containers often wait for them.
func worst(namespace, isolation Verdict, machines, containers step) Verdict {
	switch {
	case !namespace.Good:
		return namespace
	case !isolation.Good:
		return isolation
	case !machines.Good && (containers.Good || machines.Weight >= containers.Weight):
		return machines.Verdict
	case !containers.Good:
		return containers.Verdict
	}
	return good(v1alpha1.WorkspaceAllReady, "All members of the workspace are ready")
}

// Possible says that an action makes sense after what was refused before it: nothing is made in a namespace that could not be
// made, or without the policies.
func Possible(s Snapshot, action Action) bool {
	if action.Verb != Apply {
		return true
	}
	for child := range s.Refusals {
		switch child.Kind {
		case Workspace:
			return false
		case Namespace, NetworkPolicy:
			if action.Stage() > (Action{Apply, child}).Stage() {
				return false
			}
		}
	}
	return true
}

// earliest of those that are set.
func earliest(times ...time.Time) time.Time {
	var first time.Time
	for _, t := range times {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}
