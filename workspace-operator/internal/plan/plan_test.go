package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/desired"
	"github.com/pelotech/open-terrain/workspace-operator/internal/plan"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// after plays the steps.
func after(t *testing.T, lists ...[]step) *world {
	t.Helper()
	w := newWorld(t.Fatalf)
	w.breathes()
	for _, step := range steps(lists...) {
		step(w)
		w.breathes()
	}
	return w
}

func TestWhoNeedsASlot(t *testing.T) {
	cases := map[string]struct {
		steps []step
		want  bool
	}{
		"who waits":                       {nil, true},
		"who is admitted":                 {admitted, true},
		"who was Ready":                   {up, false},
		"who was Ready, and lost a part":  {steps(up, []step{loses(plan.VirtualMachine, "db")}), false},
		"who was Ready, and is edited":    {steps(up, []step{renamed("web")}), false},
		"who failed":                      {steps(admitted, []step{fails("db")}), false},
		"who failed, and tries again":     {steps(admitted, []step{fails("db"), imageQueued("db")}), false},
		"who is in trouble for a moment":  {steps(admitted, []step{runs("db"), runs("tools"), quota("api")}), true},
		"who is being deleted meanwhile":  {steps(admitted, []step{(*world).deleted}), false},
		"who has lost the slot meanwhile": {steps(admitted, []step{func(w *world) { w.slot = plan.Slot{Position: 9, Limit: 1} }}), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := after(t, c.steps)
			assert.Equal(t, c.want, plan.NeedsSlot(w.ws))
		})
	}
}

func TestAQueueThatHasNotLookedYetNeedsNoWord(t *testing.T) {
	w := newWorld(t.Fatalf)
	w.slot = plan.Slot{}
	assert.False(t, w.reconcile())
	assert.Equal(t, epoch.Add(plan.LookAgain), w.wakeAt)
	w.slot.Held = true
	assert.True(t, w.reconcile())
	assert.Equal(t, 1, w.told, "a slot that is free at once is not waited for")
}

// Nothing is made before status says that it may be: also when the process ends in between.
func TestAdmissionIsToldFirst(t *testing.T) {
	w := newWorld(t.Fatalf)
	w.slot.Held = true
	d := plan.Next(w.snapshot(), settings, w.now)
	assert.Equal(t, []plan.Action{{Verb: plan.Protect, Child: plan.Child{Kind: plan.Workspace, Name: "lab"}}}, d.Actions)
	assert.True(t, d.Again)
	assert.True(t, d.Report.Admitted.Good)
	require.NotNil(t, d.Report.AdmittedAt)
}

func TestStagesOfADecision(t *testing.T) {
	w := newWorld(t.Fatalf)
	w.slot.Held = true
	w.reconcile()
	var order []plan.Kind
	for _, a := range plan.Next(w.snapshot(), settings, w.now).Actions {
		order = append(order, a.Kind)
	}
	assert.Equal(t, []plan.Kind{plan.Namespace, plan.NetworkPolicy, plan.NetworkPolicy, plan.Service, plan.VirtualMachine, plan.Service, plan.VirtualMachine, plan.Service, plan.Deployment}, order)
}

func TestPossible(t *testing.T) {
	apply := func(kind plan.Kind, name string) plan.Action {
		return plan.Action{Verb: plan.Apply, Child: plan.Child{Kind: kind, Name: name}}
	}
	cases := map[string]struct {
		refused plan.Child
		action  plan.Action
		want    bool
	}{
		"no policy without a namespace":           {plan.Child{Kind: plan.Namespace, Name: "n"}, apply(plan.NetworkPolicy, "a"), false},
		"no machine without a policy":             {plan.Child{Kind: plan.NetworkPolicy, Name: "a"}, apply(plan.VirtualMachine, "v"), false},
		"no Service without a policy":             {plan.Child{Kind: plan.NetworkPolicy, Name: "a"}, apply(plan.Service, "s"), false},
		"a policy in spite of another":            {plan.Child{Kind: plan.NetworkPolicy, Name: "a"}, apply(plan.NetworkPolicy, "b"), true},
		"a machine in spite of another":           {plan.Child{Kind: plan.VirtualMachine, Name: "v"}, apply(plan.VirtualMachine, "w"), true},
		"a deletion, whatever was refused":        {plan.Child{Kind: plan.NetworkPolicy, Name: "a"}, plan.Action{Verb: plan.Delete, Child: plan.Child{Kind: plan.Deployment}}, true},
		"nothing without our finalizer":           {plan.Child{Kind: plan.Workspace, Name: "lab"}, apply(plan.Namespace, "n"), false},
		"a Deployment in spite of its Service":    {plan.Child{Kind: plan.Service, Name: "a"}, apply(plan.Deployment, "a"), true},
		"a machine in spite of a Deployment's no": {plan.Child{Kind: plan.Deployment, Name: "a"}, apply(plan.VirtualMachine, "a"), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := plan.Snapshot{Refusals: map[plan.Child]plan.Refusal{c.refused: {}}}
			assert.Equal(t, c.want, plan.Possible(s, c.action))
		})
	}
}

// An image namespace that the administrator changes makes no machine anew, whose disk would be lost for it.
func TestAnotherImageNamespaceMakesNothingAnew(t *testing.T) {
	w := after(t, up)
	other := settings
	other.Desired.ImageNamespace = "elsewhere"
	machines := func() []plan.Action {
		return slices.DeleteFunc(plan.Next(w.snapshot(), other, w.now).Actions, func(a plan.Action) bool { return a.Kind != plan.VirtualMachine })
	}
	assert.Empty(t, machines())
	edit("names the namespace", func(s *v1alpha1.WorkspaceSpec) {
		s.VirtualMachines[0].Spec.VMDiskImageName = ""
		s.VirtualMachines[0].Spec.VMDiskImageRef = &v1alpha1.VMDiskImageReference{Namespace: "elsewhere", Name: "db-image"}
	})(w)
	assert.Equal(t, []plan.Action{{Verb: plan.Delete, Child: plan.Child{Kind: plan.VirtualMachine, Name: "db"}}}, machines())
	assert.True(t, plan.Next(w.snapshot(), other, w.now).Doubtful, "its disk goes with it")
}

// Fields that the API server does not take are not applied for ever.
func TestUntakenFields(t *testing.T) {
	w := after(t, up)
	w.deployments["api"].Spec.Template.Spec.EnableServiceLinks = new(true)
	s := w.snapshot()
	c := plan.Child{Kind: plan.Deployment, Name: "api"}
	assert.Equal(t, []plan.Action{{Verb: plan.Apply, Child: c}}, plan.Next(s, settings, w.now).Actions)
	s.Untaken = map[plan.Child][]string{c: {"spec.template.spec.enableServiceLinks"}}
	assert.Empty(t, plan.Next(s, settings, w.now).Actions)
}

// Who is worse is named, and of two that are as bad the virtual machine, which the container may wait for.
func TestTheWorstIsNamed(t *testing.T) {
	cases := map[string]struct {
		steps []step
		want  string
	}{
		"a failure before a wait":                     {[]step{imageQueued("db"), fails("tools"), pending("api")}, `virtual machine "tools": `},
		"a trouble before a wait":                     {[]step{cloning("db"), runs("tools"), quota("api")}, `container "api": `},
		"what moves before what is queued":            {[]step{imageQueued("db"), cloning("tools"), serves("api")}, `virtual machine "tools": `},
		"the first of two that wait":                  {[]step{cloning("db"), cloning("tools"), pending("api")}, `virtual machine "db": `},
		"a crash loop that may wait for the database": {[]step{imageQueued("db"), runs("tools"), crashes("api")}, `virtual machine "db": `},
		"a crash loop that waits for nobody":          {[]step{runs("db"), runs("tools"), crashes("api")}, `container "api": `},
		"a crash loop beside a failure":               {[]step{fails("db"), runs("tools"), crashes("api")}, `virtual machine "db": `},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := after(t, admitted, c.steps)
			assert.Contains(t, plan.Next(w.snapshot(), settings, w.now.Add(time.Second)).Report.Blocking.Message, c.want)
		})
	}
}

func TestWhatHoldsADeletion(t *testing.T) {
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: epoch.Add(d)} }
	pod := func(deleted *metav1.Time, node string, finalizers ...string) plan.Remnant {
		return plan.Remnant{Kind: "Pod", Name: "p", Node: node, DeletedAt: deleted, Finalizers: finalizers}
	}
	cases := map[string]struct {
		remnant plan.Remnant
		want    string
	}{
		"nobody has deleted it yet":     {pod(nil, "node-1", heldBy), ""},
		"it was deleted just now":       {pod(at(55*time.Second), "node-1", heldBy), ""},
		"a finalizer":                   {pod(at(0), "node-1", heldBy), "The Pod p was deleted and is still there: the finalizer example.com/hold holds it"},
		"two finalizers":                {pod(at(0), "node-1", heldBy, "b"), "The Pod p was deleted and is still there: the finalizers example.com/hold, b hold it"},
		"a node that does not answer":   {pod(at(0), "node-1"), "The Pod p was deleted and is still there: its node node-1 does not say that it has stopped"},
		"it has some seconds left":      {pod(at(90*time.Second), "node-1"), ""},
		"it waits for what it has made": {plan.Remnant{Kind: "VirtualMachine", Name: "v", DeletedAt: at(0), Finalizers: []string{metav1.FinalizerDeleteDependents}}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := after(t, up)
			w.ws.DeletionTimestamp = at(0)
			s := w.snapshot()
			s.VirtualMachines, s.Deployments, s.Remnants = nil, nil, []plan.Remnant{c.remnant}
			now := epoch.Add(time.Minute)
			d := plan.Next(s, settings, now)
			if c.want != "" {
				require.NotNil(t, d.Report.Blocked)
				assert.Equal(t, c.want, d.Report.Blocked.Message)
				return
			}
			assert.Nil(t, d.Report.Blocked)
			if c.remnant.DeletedAt != nil {
				assert.True(t, d.WakeAt.After(now), "it is looked at again")
			}
		})
	}
}

func TestANamespaceThatDoesNotGoSaysWhy(t *testing.T) {
	w := after(t, up, []step{(*world).deleted, (*world).collects, (*world).stops})
	require.NotNil(t, w.namespace.DeletionTimestamp)
	w.namespace.Status.Conditions = []corev1.NamespaceCondition{
		{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Message: "Some resources are remaining: configmaps. has 1 resource instances"},
		{Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue, Message: "Some content in the namespace has finalizers remaining: a/b in 1 resource instances"},
		{Type: corev1.NamespaceDeletionDiscoveryFailure, Status: corev1.ConditionFalse, Message: "all is well"},
	}
	w.settle()
	assert.Empty(t, apitest.ConditionOf(w.ws.Status.Conditions, v1alpha1.ConditionDeletionBlocked), "it was deleted just now")
	w.passes(time.Minute)
	w.settle()
	assert.Equal(t, "True HeldByFinalizer", apitest.ConditionOf(w.ws.Status.Conditions, v1alpha1.ConditionDeletionBlocked))
	assert.Contains(t, w.ws.Status.Message, "the Namespace ws-lab was deleted and is still there: Some content in the namespace has finalizers remaining: a/b")
	assert.NotContains(t, w.ws.Status.Message, "all is well")
}

// Steps in between are told once a second at most; what people wait for is told at once.
func TestStepsInBetweenWait(t *testing.T) {
	w := after(t, admitted, []step{imageQueued("db"), imageQueued("tools"), serves("api")})
	w.passes(time.Minute)
	w.settle()
	told := w.told
	for range 20 {
		imageSyncing("db")(w)
		w.settle()
		cloning("db")(w)
		w.settle()
		w.passes(100 * time.Millisecond)
	}
	assert.LessOrEqual(t, w.told-told, 3, "in two seconds")
	runs("tools")(w)
	runs("db")(w)
	w.settle()
	assert.Equal(t, v1alpha1.WorkspaceReady, w.ws.Status.Phase)
}

// A thousand workspaces that are made at once would each have a write that says only that.
func TestMembersThatAreJustMadeHaveNothingToTell(t *testing.T) {
	w := newWorld(t.Fatalf)
	w.granted()
	for w.ws.Status.AdmittedAt == nil {
		w.reconcile()
	}
	w.passes(10 * settings.StatusInterval)
	told := w.told
	for len(w.vms) == 0 {
		w.reconcile()
	}
	assert.Equal(t, told, w.told)
	assert.Equal(t, w.now.Add(settings.StatusInterval), w.wakeAt)
	w.settle()
	assert.Equal(t, told+1, w.told)
}

// Status holds whole seconds: a trouble that is noticed in the middle of one lasts no less for it.
func TestNothingComesTooEarly(t *testing.T) {
	w := after(t, up)
	noticed := w.now.Add(10*time.Second + 900*time.Millisecond)
	w.now = noticed
	quota("api")(w)
	w.settle()
	w.now = noticed.Add(settings.TroubleDebounce - time.Millisecond)
	w.settle()
	assert.Equal(t, v1alpha1.WorkspaceProvisioning, w.ws.Status.Phase)
	assert.Less(t, w.wakeAt.Sub(w.now), 2*time.Second)
	w.sleeps()
	w.settle()
	assert.Equal(t, v1alpha1.WorkspaceFailed, w.ws.Status.Phase)
}

// The whole is told in few writes: the budget of a workspace that has a slot at once, whose parts come up one after the other.
func TestWritesFromCreationToReady(t *testing.T) {
	w := newWorld(t.Fatalf)
	w.slot = plan.Slot{Held: true}
	w.settle()
	for _, step := range slices.Concat([]step{imageQueued("db"), imageQueued("tools"), pending("api"), serves("api"), imageSyncing("db"), cloning("db")}, allRun) {
		step(w)
		w.settle()
		w.passes(50 * time.Millisecond)
	}
	require.Equal(t, v1alpha1.WorkspaceReady, w.ws.Status.Phase)
	assert.Equal(t, 2, w.told, "that it is admitted, and that it is ready: "+w.transcript())
	assert.LessOrEqual(t, w.writes, 12)
}

// A workspace without a deadline waits for ever.
func TestNoTimeout(t *testing.T) {
	w := after(t, []step{edit("waits for ever", func(s *v1alpha1.WorkspaceSpec) { s.ProvisioningTimeout = &metav1.Duration{} })}, admitted, []step{cloning("db")})
	w.passes(1000 * time.Hour)
	w.settle()
	assert.Equal(t, v1alpha1.WorkspaceProvisioning, w.ws.Status.Phase)
	assert.Nil(t, w.ws.Status.Deadline)
}

// What is done when it is written sends no event of its own: it is looked at again, and by and by where somebody undoes it.
func TestWhatWasAppliedIsLookedAtAgain(t *testing.T) {
	for _, lost := range []step{loses(plan.NetworkPolicy, "workspace"), loses(plan.Service, "api"), loses(plan.Service, "db")} {
		w := after(t, up)
		w.passes(time.Hour)
		lost(w)
		require.True(t, w.reconcile())
		assert.Equal(t, v1alpha1.WorkspaceProvisioning, w.ws.Status.Phase)
		assert.Equal(t, time.Second, w.wakeAt.Sub(w.now))
		w.sleeps()
		w.settle()
		assert.Equal(t, v1alpha1.WorkspaceReady, w.ws.Status.Phase)
	}
}

// A webhook that opens the policy whenever it is applied leaves a workspace that says so, and makes nothing.
func TestAPolicyThatSomebodyOpensEachTimeIsNone(t *testing.T) {
	w := after(t, admitted)
	w.opensPolicy()
	s := w.snapshot()
	c := plan.Child{Kind: plan.NetworkPolicy, Name: "workspace"}
	s.Untaken = map[plan.Child][]string{c: desired.Differences(plan.Wanted(s, settings)[c], s.Policies["workspace"])}
	delete(s.VirtualMachines, "db")
	d := plan.Next(s, settings, w.now)
	assert.Equal(t, []plan.Action{{Verb: plan.Apply, Child: c}}, d.Actions)
	assert.False(t, d.Report.Isolated.Good)
	require.NotNil(t, d.Report.Stalled)
	assert.Contains(t, d.Report.Stalled.Message, "The NetworkPolicy workspace isolates nothing: whenever it is applied, somebody changes spec")
	assert.Equal(t, plan.LookAgain, d.WakeAt.Sub(w.now), "no write for each moment")
}

// What others add to a policy beside our fields opens it, too.
func TestASelectorMoreIsADrift(t *testing.T) {
	w := after(t, up)
	w.policies["workspace"].Spec.Ingress[0].From[0].NamespaceSelector = &metav1.LabelSelector{}
	d := plan.Next(w.snapshot(), settings, w.now)
	assert.Equal(t, []plan.Action{{Verb: plan.Apply, Child: plan.Child{Kind: plan.NetworkPolicy, Name: "workspace"}}}, d.Actions)
	assert.False(t, d.Report.Ready)
}
