package plan_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/desired"
	"github.com/pelotech/open-terrain/workspace-operator/internal/plan"
	"github.com/pelotech/open-terrain/workspace-operator/internal/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

var epoch = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// settings of all tests.
var settings = plan.Settings{Desired: desired.DefaultSettings(), TroubleDebounce: time.Minute, StatusInterval: time.Second}

type wsMod = apitest.WorkspaceMod

// newWorkspace is one as the API server holds it: two virtual machines and a container, as in the proposal.
func newWorkspace(mods ...wsMod) *v1alpha1.Workspace {
	ws := apitest.Workspace("lab", apitest.Member("db", "db-image"), apitest.Member("tools", "tools-image"),
		apitest.Runs("api", "my-registry/api:1", apitest.Listens(8080)))
	ws.CreationTimestamp = metav1.NewTime(epoch)
	for _, mod := range mods {
		mod(ws)
	}
	return ws
}

// world is one Workspace, its namespace and its children, in memory. Mutators play the queue, the vm-operator, the controllers of
// Deployments and namespaces, the garbage collector, people and the clock; reconcile plays the operator. Each write and each
// mutation is a line of the transcript, and the laws of package plan are checked at each write.
type world struct {
	fail func(format string, args ...any) // a broken law
	now  time.Time

	ws        *v1alpha1.Workspace // nil when it is gone
	slot      plan.Slot
	namespace *corev1.Namespace
	children
	running  map[string]plan.Remnant // pods, by the name of what they were made for
	refusals map[plan.Child]plan.Refusal

	wanted map[plan.Child]*unstructured.Unstructured // of the snapshot of this reconcile
	guards map[int64][]*unstructured.Unstructured    // the policies that each generation wants

	uids, writes, crashAt, told int
	wakeAt, toldAt              time.Time
	lines                       []string
	marks                       []int // how many lines there were after each write
}

// children are what a snapshot has of them.
type children struct {
	vms         map[string]*v1alpha1.VirtualMachine
	deployments map[string]*appsv1.Deployment
	services    map[string]*corev1.Service
	policies    map[string]*networkingv1.NetworkPolicy
	sets        map[string][]*appsv1.ReplicaSet
	pods        map[string][]*corev1.Pod
}

func newWorld(fail func(string, ...any), mods ...wsMod) *world {
	w := &world{fail: fail, now: epoch, ws: newWorkspace(mods...), running: map[string]plan.Remnant{}, refusals: map[plan.Child]plan.Refusal{}, uids: 1}
	w.guards = map[int64][]*unstructured.Unstructured{}
	w.children = children{
		map[string]*v1alpha1.VirtualMachine{}, map[string]*appsv1.Deployment{}, map[string]*corev1.Service{}, map[string]*networkingv1.NetworkPolicy{},
		map[string][]*appsv1.ReplicaSet{}, map[string][]*corev1.Pod{},
	}
	w.slot = plan.Slot{Position: 3, Limit: 4, Ticket: 100}
	return w
}

func (w *world) line(who, format string, args ...any) {
	at := w.now.Sub(epoch).Truncate(time.Second)
	w.lines = append(w.lines, fmt.Sprintf("%-8s %-10s %s", "+"+at.String(), who, fmt.Sprintf(format, args...)))
}

func (w *world) transcript() string { return strings.Join(w.lines, "\n") + "\n" }

// snapshot is what the operator reads.
func (w *world) snapshot() plan.Snapshot {
	s := plan.Snapshot{
		Workspace: w.ws.DeepCopy(), Slot: w.slot, ToldAt: w.toldAt, Namespace: w.namespace.DeepCopy(),
		VirtualMachines: copied(w.vms), Deployments: copied(w.deployments), Services: copied(w.services), Policies: copied(w.policies),
		ReplicaSets: map[string][]*appsv1.ReplicaSet{}, Pods: map[string][]*corev1.Pod{},
	}
	for name, deployment := range s.Deployments {
		if plan.NeedsPods(s, deployment) {
			s.ReplicaSets[name], s.Pods[name] = w.sets[name], w.pods[name]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.running)) {
		s.Remnants = append(s.Remnants, w.running[name])
	}
	return s
}

func copied[T interface{ DeepCopy() T }](from map[string]T) map[string]T {
	to := map[string]T{}
	for name, object := range from {
		to[name] = object.DeepCopy()
	}
	return to
}

// reconcile is one run of the operator, and says whether it wrote anything. A crash leaves the rest of it undone.
func (w *world) reconcile() (wrote bool) {
	if w.ws == nil {
		return false
	}
	s := w.snapshot()
	d := plan.Next(s, settings, w.now)
	s.Refusals = map[plan.Child]plan.Refusal{}
	if len(d.Actions) > 0 {
		w.wanted = plan.Wanted(s, settings)
	}
	for _, action := range d.Actions {
		if !plan.Possible(s, action) {
			continue
		}
		if refusal, refused := w.refusals[action.Child]; refused {
			s.Refusals[action.Child] = refusal
			continue
		}
		w.line("operator", "%s %s %s", action.Verb, action.Kind, action.Name)
		w.act(action)
		if wrote = true; w.dies() {
			return true
		}
	}
	if len(s.Refusals) > 0 {
		d = plan.Next(s, settings, w.now)
	}
	w.wakeAt = d.WakeAt
	next := persisted(status.Of(s.Workspace, d.Report, metav1.NewTime(w.now)))
	if w.ws == nil || equality.Semantic.DeepEqual(w.ws.Status, next) {
		return wrote
	}
	w.writeStatus(next)
	w.dies()
	return true
}

func (w *world) dies() bool {
	w.marks = append(w.marks, len(w.lines))
	if w.writes++; w.writes == w.crashAt {
		w.line("operator", "crashes")
		w.toldAt = time.Time{}
		return true
	}
	return false
}

// persisted is the status as it comes back from the API server.
func persisted(st v1alpha1.WorkspaceStatus) v1alpha1.WorkspaceStatus {
	raw, err := json.Marshal(st)
	if err != nil {
		panic(err)
	}
	var back v1alpha1.WorkspaceStatus
	if err := json.Unmarshal(raw, &back); err != nil {
		panic(err)
	}
	return back
}

func (w *world) writeStatus(next v1alpha1.WorkspaceStatus) {
	if next.Phase != v1alpha1.WorkspacePhaseOf(next.Conditions) {
		w.fail("the phase %s is not that of the conditions", next.Phase)
	}
	if wrong := apitest.Wrong(next.Conditions, w.ws.Generation); len(wrong) > 0 {
		w.fail("conditions: %v", wrong)
	}
	if next.Phase == v1alpha1.WorkspaceReady {
		w.isReady()
	}
	w.namesTheWorst(next)
	before := w.ws.Status
	if next.Phase == before.Phase && (next.Queue == nil) == (before.Queue == nil) && (next.AdmittedAt == nil) == (before.AdmittedAt == nil) &&
		w.now.Sub(w.toldAt) < settings.StatusInterval && len(next.Conditions) == len(before.Conditions) && next.Queue == nil {
		w.fail("a step in between is told at once:\n%s\n%s", before.Message, next.Message)
	}
	w.ws.Status, w.toldAt = next, w.now
	w.told++
	w.line("status", "%s: %s [%s]", next.Phase, next.Message, reasons(next))
	for _, event := range status.EventsOf(&before, &next) {
		w.line("event", "%s", event.Reason)
	}
}

// isReady fails where Ready would be told on hope.
func (w *world) isReady() {
	for _, entry := range w.ws.Spec.VirtualMachines {
		vm := w.vms[v1alpha1.WorkspaceChild(w.ws, entry.Name)]
		if vm == nil || vm.Status.Phase != v1alpha1.VirtualMachineReady || vm.Status.ObservedGeneration != vm.Generation {
			w.fail("Ready is written while %s is not", entry.Name)
		}
	}
	for _, entry := range w.ws.Spec.Containers {
		d := w.deployments[v1alpha1.WorkspaceChild(w.ws, entry.Name)]
		if d == nil || d.Status.ObservedGeneration != d.Generation || d.Status.AvailableReplicas != entry.WantedReplicas() {
			w.fail("Ready is written while %s is not", entry.Name)
		}
	}
	if w.unguarded() != "" || w.namespace == nil || w.namespace.DeletionTimestamp != nil {
		w.fail("Ready is written without namespace or policies: %s", w.unguarded())
	}
}

// namesTheWorst: whoever waits for a member is told which.
func (w *world) namesTheWorst(next v1alpha1.WorkspaceStatus) {
	for _, kind := range []string{v1alpha1.ConditionVirtualMachinesReady, v1alpha1.ConditionContainersReady} {
		c := meta.FindStatusCondition(next.Conditions, kind)
		if c.Status == metav1.ConditionTrue || next.AdmittedAt == nil || w.ws.DeletionTimestamp != nil {
			continue
		}
		if !strings.Contains(c.Message, `"`) || len(c.Message) < 10 {
			w.fail("%s does not name the worst: %s", kind, c.Message)
		}
	}
}

// reasons of the conditions that say how far it is, those that are True with a +, and how many members are ready.
func reasons(st v1alpha1.WorkspaceStatus) string {
	all := apitest.ConditionsOf(st.Conditions)
	var words []string
	for _, kind := range []string{
		v1alpha1.ConditionAdmitted, v1alpha1.ConditionNamespaceReady, v1alpha1.ConditionNetworkIsolated, v1alpha1.ConditionVirtualMachinesReady,
		v1alpha1.ConditionContainersReady, v1alpha1.ConditionStalled, v1alpha1.ConditionDeletionBlocked,
	} {
		if value, reason, _ := strings.Cut(all[kind], " "); value == "True" {
			words = append(words, "+"+reason)
		} else if reason != "" {
			words = append(words, reason)
		}
	}
	return strings.Join(append(words, st.VirtualMachines, st.Containers), " ")
}

// act carries out an action, as the API server would, and checks the laws.
func (w *world) act(action plan.Action) {
	switch action.Verb {
	case plan.Protect:
		w.ws.Finalizers = append(w.ws.Finalizers, v1alpha1.FinalizerWorkspace)
	case plan.Release:
		w.mayRelease()
		w.ws = nil
		w.line("api", "the workspace is gone")
	case plan.Delete:
		w.mayDelete(action.Child)
		w.deletes(action.Child)
	case plan.Apply:
		want := w.wanted[action.Child]
		if want == nil {
			w.fail("%s %s is applied, and not wanted", action.Kind, action.Name)
		}
		w.mayApply(action.Child)
		w.apply(action.Child, want)
	}
}

func (w *world) mayApply(c plan.Child) {
	if w.ws.Status.AdmittedAt == nil || !slices.Contains(w.ws.Finalizers, v1alpha1.FinalizerWorkspace) || w.ws.DeletionTimestamp != nil {
		w.fail("%s %s is applied for a workspace that is not admitted, not protected, or going", c.Kind, c.Name)
	}
	if live := w.live(c); live != nil && !metav1.IsControlledBy(live, w.ws) {
		w.fail("%s %s is somebody else's", c.Kind, c.Name)
	}
	if c.Kind == plan.Namespace {
		return
	}
	if w.namespace == nil || w.namespace.DeletionTimestamp != nil || w.ws.OwnsNamespace() && !metav1.IsControlledBy(w.namespace, w.ws) {
		w.fail("%s %s is applied without a namespace", c.Kind, c.Name)
	}
	if missing := w.unguarded(); c.Kind != plan.NetworkPolicy && missing != "" {
		w.fail("%s %s is applied before the policy %s", c.Kind, c.Name, missing)
	}
}

// unguarded is a policy that is not as it shall be.
func (w *world) unguarded() string {
	if _, known := w.guards[w.ws.Generation]; !known {
		w.guards[w.ws.Generation] = desired.NetworkPolicies(w.ws, nil, settings.Desired)
	}
	for _, want := range w.guards[w.ws.Generation] {
		policy := w.policies[want.GetName()]
		if policy == nil || !metav1.IsControlledBy(policy, w.ws) {
			return want.GetName()
		}
		if paths := desired.Differences(want, policy); len(paths) > 0 {
			return want.GetName() + ": " + strings.Join(paths, ", ")
		}
	}
	return ""
}

func (w *world) mayDelete(c plan.Child) {
	if live := w.live(c); live == nil || !metav1.IsControlledBy(live, w.ws) {
		w.fail("%s %s is deleted, and is not ours", c.Kind, c.Name)
	}
	if w.ws.DeletionTimestamp != nil {
		w.inOrder(c)
		return
	}
	if want := w.wanted[c]; want != nil && c.Kind != plan.VirtualMachine && len(desired.Fixed(want, w.live(c).(runtime.Object))) == 0 {
		w.fail("%s %s is deleted, and wanted", c.Kind, c.Name)
	}
}

// inOrder of the deletion: nothing ever runs without the policies.
func (w *world) inOrder(c plan.Child) {
	runs := len(w.running) + ours(w, w.vms) + ours(w, w.deployments)
	switch {
	case c.Kind == plan.VirtualMachine, c.Kind == plan.Deployment:
	case runs > 0:
		w.fail("%s %s is deleted while something runs", c.Kind, c.Name)
	case c.Kind != plan.Service && ours(w, w.services) > 0:
		w.fail("%s %s is deleted before the Services", c.Kind, c.Name)
	case c.Kind == plan.Namespace && ours(w, w.policies) > 0:
		w.fail("the namespace is deleted before the policies")
	}
}

func (w *world) mayRelease() {
	left := len(w.running) + ours(w, w.vms) + ours(w, w.deployments) + ours(w, w.services) + ours(w, w.policies)
	if left > 0 || w.namespace != nil && metav1.IsControlledBy(w.namespace, w.ws) {
		w.fail("the workspace is let go while something of it is there")
	}
}

func ours[T metav1.Object](w *world, objects map[string]T) (n int) {
	for _, object := range objects {
		if metav1.IsControlledBy(object, w.ws) {
			n++
		}
	}
	return n
}

func (w *world) live(c plan.Child) metav1.Object {
	var object metav1.Object
	switch c.Kind {
	case plan.Namespace:
		if w.namespace != nil {
			object = w.namespace
		}
	case plan.NetworkPolicy:
		object = found(w.policies, c.Name)
	case plan.Service:
		object = found(w.services, c.Name)
	case plan.VirtualMachine:
		object = found(w.vms, c.Name)
	case plan.Deployment:
		object = found(w.deployments, c.Name)
	}
	return object
}

func found[T metav1.Object](objects map[string]T, name string) metav1.Object {
	if object, ok := objects[name]; ok {
		return object
	}
	return nil
}

// apply puts an object in the place of the one that is there: its status and identity stay.
func (w *world) apply(c plan.Child, want *unstructured.Unstructured) {
	switch c.Kind {
	case plan.Namespace:
		next := made[corev1.Namespace](w, want, w.live(c))
		if w.namespace != nil {
			next.Status = w.namespace.Status
		}
		w.namespace = next
	case plan.NetworkPolicy:
		w.policies[c.Name] = made[networkingv1.NetworkPolicy](w, want, w.live(c))
	case plan.Service:
		w.services[c.Name] = made[corev1.Service](w, want, w.live(c))
	case plan.VirtualMachine:
		next := made[v1alpha1.VirtualMachine](w, want, w.live(c))
		if is := w.vms[c.Name]; is != nil {
			if next.Spec.VMDiskImageRef != is.Spec.VMDiskImageRef {
				w.fail("the image of %s is changed, which is immutable", c.Name)
			}
			next.Status = is.Status
		}
		w.vms[c.Name] = next
	case plan.Deployment:
		next := made[appsv1.Deployment](w, want, w.live(c))
		if is := w.deployments[c.Name]; is != nil {
			next.Status = is.Status
		}
		w.deployments[c.Name] = next
	}
}

func made[T any, P interface {
	*T
	metav1.Object
}](w *world, want *unstructured.Unstructured, is metav1.Object) P {
	next := P(new(T))
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(want.Object, next); err != nil {
		panic(err)
	}
	if is == nil {
		w.uids++
		next.SetUID(types.UID("child-" + strconv.Itoa(w.uids)))
		next.SetGeneration(1)
		next.SetCreationTimestamp(metav1.NewTime(w.now.Truncate(time.Second)))
		return next
	}
	next.SetUID(is.GetUID())
	next.SetCreationTimestamp(is.GetCreationTimestamp())
	next.SetFinalizers(is.GetFinalizers())
	next.SetGeneration(is.GetGeneration() + 1)
	return next
}

// deletes as the API server does: what makes things of its own is there until these are gone, and a namespace, too.
func (w *world) deletes(c plan.Child) {
	live := w.live(c)
	at := metav1.NewTime(w.now.Truncate(time.Second))
	live.SetDeletionTimestamp(&at)
	switch c.Kind {
	case plan.VirtualMachine, plan.Deployment:
		live.SetFinalizers(append(live.GetFinalizers(), metav1.FinalizerDeleteDependents))
	case plan.Service, plan.NetworkPolicy:
		if len(live.GetFinalizers()) == 0 {
			w.removes(c)
		}
	}
}

func (w *world) removes(c plan.Child) {
	switch c.Kind {
	case plan.NetworkPolicy:
		delete(w.policies, c.Name)
	case plan.Service:
		delete(w.services, c.Name)
	case plan.VirtualMachine:
		delete(w.vms, c.Name)
	case plan.Deployment:
		delete(w.deployments, c.Name)
		delete(w.sets, c.Name)
		delete(w.pods, c.Name)
	}
}

// settle runs the operator until it has nothing to write.
func (w *world) settle() {
	for range 20 {
		if !w.reconcile() {
			return
		}
	}
	w.fail("the operator does not settle")
}

// breathes settles, and lets the moment pass in which steps in between are not told.
func (w *world) breathes() {
	w.settle()
	if wait := w.wakeAt.Sub(w.now); wait > 0 && wait <= settings.StatusInterval {
		w.now = w.wakeAt
		w.settle()
	}
}

func (w *world) passes(d time.Duration) { w.now = w.now.Add(d) }

// sleeps until the operator wants to be woken.
func (w *world) sleeps() {
	if w.wakeAt.After(w.now) {
		w.now = w.wakeAt
		w.line("clock", "wakes the operator")
	}
}
