package plan_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/desired"
	"github.com/pelotech/open-terrain/workspace-operator/internal/plan"
	"github.com/pelotech/open-terrain/workspace-operator/internal/status"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
)

var kinds = []plan.Kind{plan.NetworkPolicy, plan.Service, plan.VirtualMachine, plan.Deployment}

// anyWorld is one that need not have come about in any way: caches may show anything.
func anyWorld(t *rapid.T) *world {
	yes := func(what string) bool { return rapid.Bool().Draw(t, what) }
	var mods []wsMod
	if yes("shared") {
		mods = append(mods, inShared)
	}
	w := newWorld(t.Fatalf, mods...)
	w.slot.Held = yes("slot")
	if yes("was admitted") {
		w.ws.Status.AdmittedAt = &metav1.Time{Time: epoch}
	}
	if yes("is protected") {
		w.ws.Finalizers = []string{v1alpha1.FinalizerWorkspace}
	}
	wanted := plan.Wanted(plan.Snapshot{Workspace: w.ws}, settings)
	for _, child := range plan.Names(plan.Snapshot{Workspace: w.ws}, settings) {
		if yes("has " + child.Name) {
			w.apply(child, wanted[child])
		}
	}
	if !w.ws.OwnsNamespace() && yes("has the shared namespace") {
		takes(plan.Namespace, "shared")(w)
	}
	anyState(t, w)
	for _, change := range []step{isolate(false), dropsTools, renamed("web"), image(0, "another"), scalesDown} {
		if rapid.IntRange(0, 4).Draw(t, "edited") == 0 {
			change(w)
		}
	}
	if yes("goes") {
		w.ws.DeletionTimestamp = &metav1.Time{Time: epoch}
	}
	return w
}

// anyState of what is there: of somebody else, going, changed by hand, or as its controller says.
func anyState(t *rapid.T, w *world) {
	rarely := func(what string) bool { return rapid.IntRange(0, 5).Draw(t, what) == 0 }
	for _, entry := range []string{"db", "tools"} {
		rapid.SampledFrom([]step{runs(entry), imageQueued(entry), cloning(entry), fails(entry), func(*world) {}}).Draw(t, entry)(w)
	}
	rapid.SampledFrom([]step{serves("api"), pending("api"), crashes("api"), quota("api"), pullFails("api"), noNode("api", "0/3"), func(*world) {}}).Draw(t, "api")(w)
	if rarely("the policy is open") {
		w.opensPolicy()
	}
	all := []metav1.Object{}
	if w.namespace != nil {
		all = append(all, w.namespace)
	}
	for _, kind := range kinds {
		for _, name := range w.names(kind) {
			all = append(all, w.live(plan.Child{Kind: kind, Name: name}))
		}
	}
	for _, object := range all {
		if rarely("is foreign") {
			object.SetOwnerReferences(nil)
		}
		if rarely("is going") {
			object.SetDeletionTimestamp(&metav1.Time{Time: epoch})
			object.SetFinalizers([]string{heldBy})
		}
		if rarely("has changed since") {
			object.SetGeneration(object.GetGeneration() + 1)
		}
		if rarely("has lost its labels") {
			object.SetLabels(nil)
		}
	}
	if rapid.Bool().Draw(t, "nothing runs") {
		clear(w.running)
	}
}

// The laws hold for every snapshot, whether it can come about or not.
func TestTheLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := anyWorld(t)
		w.now = epoch.Add(time.Duration(rapid.IntRange(0, 7200).Draw(t, "seconds")) * time.Second)
		s := w.snapshot()
		d := plan.Next(s, settings, w.now)
		lawfulActions(t, w, d)
		lawfulReport(t, w, d)
	})
}

func lawfulActions(t *rapid.T, w *world, d plan.Decision) {
	wanted := plan.Wanted(w.snapshot(), settings)
	stage, seen := 0, map[plan.Action]bool{}
	for _, a := range d.Actions {
		live := w.live(a.Child)
		switch {
		case a.Stage() < stage || seen[a]:
			t.Fatalf("%v is out of order, or there twice: %v", a, d.Actions)
		case (a.Verb == plan.Delete || a.Verb == plan.Release) && !d.Doubtful:
			t.Fatalf("%v without a question", a)
		case a.Verb == plan.Apply && (w.ws.DeletionTimestamp != nil || w.ws.Status.AdmittedAt == nil || wanted[a.Child] == nil):
			t.Fatalf("%v for a workspace that is going or not admitted, or nobody wants it", a)
		case (a.Verb == plan.Apply || a.Verb == plan.Delete) && live != nil && !metav1.IsControlledBy(live, w.ws):
			t.Fatalf("%v is somebody else's", a)
		case (a.Verb == plan.Apply || a.Verb == plan.Delete) && live != nil && live.GetDeletionTimestamp() != nil:
			t.Fatalf("%v is on its way out already", a)
		case a.Verb == plan.Apply && len(w.ws.Finalizers) == 0 && d.Actions[0].Verb != plan.Protect:
			t.Fatalf("%v before the finalizer", a)
		case a.Verb == plan.Delete && w.ws.DeletionTimestamp == nil && wanted[a.Child] != nil && !isOther(w, a.Child) && len(desired.Fixed(wanted[a.Child], live.(runtime.Object))) == 0:
			t.Fatalf("%v is wanted", a)
		}
		if a.Verb == plan.Apply {
			guarded(t, w, a, seen)
		}
		stage, seen[a] = a.Stage(), true
		if w.ws.DeletionTimestamp != nil {
			w.leavesInOrder(t, a)
		}
	}
}

// guarded: the namespace is there, and the policies are as they shall be, or are made so before.
func guarded(t *rapid.T, w *world, a plan.Action, before map[plan.Action]bool) {
	if a.Kind == plan.Namespace {
		return
	}
	namespace := plan.Action{Verb: plan.Apply, Child: plan.Child{Kind: plan.Namespace, Name: w.ws.ChildNamespace()}}
	if !before[namespace] && (w.namespace == nil || w.namespace.DeletionTimestamp != nil || w.ws.OwnsNamespace() && !metav1.IsControlledBy(w.namespace, w.ws)) {
		t.Fatalf("%v without a namespace", a)
	}
	if a.Kind == plan.NetworkPolicy {
		return
	}
	is := maps.Clone(w.policies)
	for done := range before {
		if done.Kind == plan.NetworkPolicy && done.Verb == plan.Apply {
			w.apply(done.Child, plan.Wanted(w.snapshot(), settings)[done.Child])
		}
	}
	if missing := w.unguarded(); missing != "" {
		t.Fatalf("%v before the policy %s", a, missing)
	}
	w.policies = is
}

func isOther(w *world, c plan.Child) bool {
	vm := w.vms[c.Name]
	return c.Kind == plan.VirtualMachine && vm != nil && !slices.ContainsFunc(w.ws.Spec.VirtualMachines, func(e v1alpha1.WorkspaceVirtualMachine) bool {
		return v1alpha1.WorkspaceChild(w.ws, e.Name) == c.Name && e.Spec.VMDiskImageName == vm.Spec.VMDiskImageRef.Name
	})
}

func (w *world) leavesInOrder(t *rapid.T, a plan.Action) {
	w.fail = t.Fatalf
	switch a.Verb {
	case plan.Delete:
		w.inOrder(a.Child)
	case plan.Release:
		w.mayRelease()
	}
}

// lawfulReport: what is told is well formed, and telling it again changes nothing.
func lawfulReport(t *rapid.T, w *world, d plan.Decision) {
	if d.Report.Silent {
		return
	}
	w.fail = t.Fatalf
	st := persisted(status.Of(w.ws, d.Report, metav1.NewTime(w.now)))
	if wrong := apitest.Wrong(st.Conditions, w.ws.Generation); len(wrong) > 0 {
		t.Fatalf("conditions: %v", wrong)
	}
	if st.Message == "" || st.Phase != v1alpha1.WorkspacePhaseOf(st.Conditions) || st.Isolated == "" {
		t.Fatalf("phase %s, message %q", st.Phase, st.Message)
	}
	if st.Phase == v1alpha1.WorkspaceReady {
		if w.isReady(); st.Deadline != nil || w.ws.DeletionTimestamp != nil || st.AdmittedAt == nil {
			t.Fatal("Ready has a deadline, or is going, or was never admitted")
		}
	}
	if w.namesTheWorst(st); (st.Phase != v1alpha1.WorkspaceProvisioning) != (st.ProvisionedAt != nil) {
		t.Fatal("provisionedAt does not tell the end of provisioning")
	}
	if w.ws.Status = st; len(d.Actions) == 0 {
		again := plan.Next(w.snapshot(), settings, w.now)
		if next := persisted(status.Of(w.ws, again.Report, metav1.NewTime(w.now))); !equality.Semantic.DeepEqual(st, next) || len(again.Actions) > 0 && st.AdmittedAt.IsZero() {
			t.Fatalf("the same snapshot tells something else:\n%v\n%v", st, next)
		}
	}
}
