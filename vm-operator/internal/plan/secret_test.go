package plan_test

import (
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// inPhase is a virtual machine whose instance, made now, has come to that phase.
func inPhase(t *testing.T, phase string) *world {
	t.Helper()
	w := cloning(t)
	for _, step := range steps(diskIsThere, []func(*world){(*world).starts}) {
		step(w)
		w.settle()
	}
	w.instance.Object["status"] = map[string]any{"phase": phase}
	return w
}

func annotated(w *world, value string) {
	w.machine.SetAnnotations(map[string]string{v1alpha1.AnnotationCloudInit: value})
}

// A Secret that is never read is applied when that may matter, and not otherwise.
func TestSecretIsAppliedWhenItMatters(t *testing.T) {
	forgets := func(w *world) { w.applied = plan.SecretApplied{} }
	for name, c := range map[string]struct {
		phase string
		mod   func(*world)
		want  []plan.Action
	}{
		"nothing has changed":                   {"Running", func(*world) {}, nil},
		"another process, and the guest runs":   {"Running", forgets, nil},
		"long ago, and the guest runs":          {"Running", func(w *world) { w.passes(time.Hour) }, nil},
		"another process, and it just starts":   {"Scheduling", forgets, nil},
		"it starts, and was just applied":       {"Scheduling", func(w *world) { w.passes(59 * time.Second) }, nil},
		"it starts for too long":                {"Scheduling", func(w *world) { w.passes(time.Minute) }, []plan.Action{plan.ApplySecret}},
		"its pod has a node for too long":       {"Scheduled", func(w *world) { w.passes(time.Minute) }, []plan.Action{plan.ApplySecret}},
		"it has no pod for too long":            {"Pending", func(w *world) { w.passes(time.Minute) }, []plan.Action{plan.ApplySecret}},
		"KubeVirt has not seen it for too long": {"", func(w *world) { w.passes(time.Minute) }, []plan.Action{plan.ApplySecret}},
		"it has ended long ago":                 {"Failed", func(w *world) { w.passes(time.Hour) }, nil},
		"a phase that is not known":             {"Unknown", func(w *world) { w.passes(time.Hour) }, nil},
		"another Secret was applied":            {"Running", func(w *world) { forgets(w); annotated(w, "other") }, []plan.Action{plan.ApplySecret, plan.ApplyMachine}},
		"an older operator did not tell":        {"Running", func(w *world) { forgets(w); annotated(w, "") }, []plan.Action{plan.ApplySecret, plan.ApplyMachine}},
		"somebody changed the annotation":       {"Running", func(w *world) { annotated(w, "other") }, []plan.Action{plan.ApplyMachine}},
		"the machine changes while it runs":     {"Running", func(w *world) { w.passes(time.Hour); w.wantsMemory("4Gi") }, []plan.Action{plan.ApplyMachine}},
		"the machine changes while it is off":   {"Succeeded", func(w *world) { w.passes(time.Hour); w.wantsMemory("4Gi") }, []plan.Action{plan.ApplySecret, plan.ApplyMachine}},
		"the machine has gone":                  {"Running", func(w *world) { w.passes(time.Hour); w.machine, w.instance = nil, nil }, []plan.Action{plan.ApplySecret, plan.ApplyMachine}},
		"the machine changes, just applied":     {"Succeeded", func(w *world) { w.passes(time.Second); w.wantsMemory("4Gi") }, []plan.Action{plan.ApplyMachine}},
		"a password is missing":                 {"Scheduling", func(w *world) { w.passes(time.Hour); w.missing = &plan.Refusal{Reason: v1alpha1.ReasonSecretMissing} }, nil},
		"the machine is being deleted":          {"Scheduling", func(w *world) { w.passes(time.Hour); w.deletesMachine() }, nil},
		"the machine is somebody else's":        {"Scheduling", func(w *world) { w.passes(time.Hour); w.machine.SetOwnerReferences(nil) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := inPhase(t, c.phase)
			c.mod(w)
			assert.Equal(t, c.want, plan.Next(w.snapshot(), settings, w.now).Actions)
		})
	}
}

// However long a guest does not start, its Secret is applied seldom, and yet not much later than it was deleted.
func TestSecretOfAGuestThatDoesNotStart(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := inPhase(t, "Scheduling")
		began, applies := w.now, 0
		for w.now.Sub(began) < 24*time.Hour {
			d := plan.Next(w.snapshot(), settings, w.now)
			if len(d.Actions) > 0 {
				w.applied.At = w.now
				applies++
				if len(plan.Next(w.snapshot(), settings, w.now).Actions) > 0 {
					rt.Fatal("it is applied twice at once")
				}
			}
			if !d.WakeAt.After(w.now) {
				rt.Fatal("nobody looks again")
			}
			if age := w.now.Sub(began); age >= settings.TroubleDebounce && w.applied.At.Sub(began) < age/2 {
				rt.Fatalf("after %s it was last applied after %s", age, w.applied.At.Sub(began))
			}
			if w.now = w.now.Add(time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(rt, "passes"))); w.now.After(d.WakeAt) {
				w.now = d.WakeAt
			}
		}
		assert.LessOrEqual(t, applies, 11, "1, 2, 4 ... 1024 minutes")
	})
}

// A machine says that its Secret was applied only when it was; and it is not made without.
func TestSecretThatIsRefused(t *testing.T) {
	w := inPhase(t, "Running")
	annotated(w, "other")
	s := w.snapshot()
	assert.Equal(t, s.CloudInit, plan.CloudInitOf(s))
	s.Refusals = map[plan.Child]plan.Refusal{plan.Secret: {Reason: v1alpha1.ReasonNameTaken}}
	assert.Equal(t, "other", plan.CloudInitOf(s))
	assert.True(t, plan.Possible(s, plan.ApplyMachine))
	s.Machine = nil
	assert.Empty(t, plan.CloudInitOf(s))
	assert.False(t, plan.Possible(s, plan.ApplyMachine))
	assert.True(t, plan.Possible(s, plan.ApplySecret))
}

// Nothing tells of a password that comes; so the operator looks again, as long as the guest waits for it.
func TestPasswordIsLookedForAgain(t *testing.T) {
	for _, reason := range []v1alpha1.VirtualMachineReason{v1alpha1.ReasonSecretMissing, v1alpha1.ReasonNotAuthorized} {
		w := inPhase(t, "Running")
		w.runs()
		w.settle()
		w.missing = &plan.Refusal{Reason: reason, Message: "no"}
		d := plan.Next(w.snapshot(), settings, w.now)
		assert.Zero(t, d.WakeAt, "the guest runs")
		assert.True(t, d.Report.Ready)
		w.machine, w.instance = nil, nil
		d = plan.Next(w.snapshot(), settings, w.now)
		assert.Equal(t, w.now.Add(plan.LookAgain), d.WakeAt)
		assert.Equal(t, reason, d.Report.Blocking.Reason)
		assert.Nil(t, d.Report.Stalled, "it may come with the next file")
	}
}
