package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// machineVerdict is what the plan makes of KubeVirt's status, with the disk ready.
func machineVerdict(wanted v1alpha1.RunStrategy, status map[string]any, instance string, mods ...func(*world)) plan.Verdict {
	w := newWorld(func(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }, strategy(wanted))
	for _, step := range steps(imageIsReady, []func(*world){(*world).settle}, diskIsThere, []func(*world){(*world).settle}) {
		step(w)
	}
	w.machine.Object["status"] = status
	w.machine.SetCreationTimestamp(metav1.NewTime(epoch.Add(-time.Hour)))
	if instance != "" {
		w.instance = &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": instance}}}
	}
	for _, mod := range mods {
		mod(w)
	}
	return plan.Next(w.snapshot(), settings, w.now).Report.Machine
}

// told is a verdict in words.
func told(v plan.Verdict) string {
	if v.Good {
		return "True " + string(v.Reason)
	}
	return string(v.Reason) + map[plan.Weight]string{plan.Waits: "", plan.Patient: ", patiently", plan.Troubled: ", troubled", plan.Final: ", finally"}[v.Weight]
}

// Every word of KubeVirt, in the order in which KubeVirt looks for one, by the runStrategy that is wanted.
func TestPrintableStatus(t *testing.T) {
	type verdicts struct{ always, rerun, once, manual, halted string }
	all := func(v string) verdicts { return verdicts{v, v, v, v, v} }
	but := func(v verdicts, halted string) verdicts { v.halted = halted; return v }
	for printable, want := range map[string]verdicts{
		"Terminating":             all("Stopping"),
		"Stopping":                all("Stopping"),
		"Migrating":               but(all("True Running"), "Stopping"),
		"Paused":                  all("Paused, patiently"),
		"Running":                 but(all("True Running"), "Stopping"),
		"ErrorPvcNotFound":        all("DiskLost, troubled"),
		"DataVolumeError":         all("CloneFailed, troubled"),
		"ErrorUnschedulable":      all("Unschedulable, troubled"),
		"Provisioning":            all("Starting"),
		"WaitingForVolumeBinding": all("Starting"),
		"ErrImagePull":            all("Unknown, troubled"),
		"ImagePullBackOff":        all("Unknown, troubled"),
		"Starting":                all("Starting"),
		"CrashLoopBackOff":        all("CrashLooping, troubled"),
		"Stopped":                 {always: "Starting", rerun: "Starting", once: "Starting", manual: "True NotStarted", halted: "True NotStarted"},
		"WaitingForReceiver":      all("Starting"),
		"Unknown":                 all("Unknown, troubled"),
		"":                        all("Starting"),
		"SomethingNew":            all("Unknown, troubled"),
	} {
		t.Run(printable, func(t *testing.T) {
			ready := "False"
			if printable == "Running" || printable == "Migrating" {
				ready = "True"
			}
			got := func(wanted v1alpha1.RunStrategy) string {
				return told(machineVerdict(wanted, map[string]any{"printableStatus": printable, "conditions": []any{condition("Ready", ready, "", "")}}, ""))
			}
			assert.Equal(t, want, verdicts{
				got(v1alpha1.RunAlways), got(v1alpha1.RunRerunOnFailure), got(v1alpha1.RunOnce), got(v1alpha1.RunManual), got(v1alpha1.RunHalted),
			})
		})
	}
}

const (
	networkText = "failed to render launch manifest: failed to locate network attachment definition kv/lan"
	quotaText   = `failed to create virtual machine pod: pods "virt-launcher-web-x7k2p" is forbidden: exceeded quota: small, requested: memory=524Mi, used: memory=1Gi, limited: memory=1Gi`
	memoryText  = `Failure while starting VMI: admission webhook "virtualmachineinstances-create-validator.kubevirt.io" denied the request: no memory requested`
)

// What KubeVirt was seen to say, and what stays from before.
func TestObservedSituations(t *testing.T) {
	pending := condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available")
	formerly := func(reason v1alpha1.VirtualMachineReason) func(*world) {
		return func(w *world) {
			meta.SetStatusCondition(&w.vm.Status.Conditions, metav1.Condition{
				Type: v1alpha1.ConditionVirtualMachineReady, Status: metav1.ConditionTrue, Reason: string(reason),
			})
		}
	}
	for name, c := range map[string]struct {
		wanted     v1alpha1.RunStrategy
		printable  string
		conditions []any
		failures   int64
		instance   string
		mod        func(*world)
		want       string
	}{
		"a guest that runs, and is not ready yet":      {printable: "Running", conditions: []any{condition("Ready", "False", "GuestNotRunning", "")}, instance: "Running", want: "Starting"},
		"a running guest with conditions of old":       {printable: "Running", conditions: []any{pending, condition("Ready", "True", "", ""), condition("Synchronized", "False", "FailedCreate", quotaText)}, want: "True Running"},
		"a stopped one with conditions of old":         {wanted: v1alpha1.RunHalted, printable: "Stopped", conditions: []any{pending, condition("Failure", "True", "FailedCreate", memoryText)}, want: "True NotStarted"},
		"the pod finds no node, and then one":          {printable: "Starting", conditions: []any{pending}, want: "Starting"},
		"over quota":                                   {printable: "Starting", conditions: []any{condition("Synchronized", "False", "FailedCreate", quotaText)}, want: "QuotaExceeded, troubled"},
		"a network is missing":                         {printable: "Starting", conditions: []any{condition("Synchronized", "False", "FailedCreate", networkText)}, want: "NetworkMissing, troubled"},
		"the instance is refused":                      {printable: "Stopped", conditions: []any{condition("Failure", "True", "FailedCreate", memoryText)}, want: "Refused, troubled"},
		"between two starts that fail":                 {printable: "Starting", failures: 2, want: "CrashLooping, troubled"},
		"stopped between two starts that fail":         {printable: "Stopped", failures: 2, want: "CrashLooping, troubled"},
		"it runs once, and has ended":                  {wanted: v1alpha1.RunOnce, printable: "Stopped", instance: "Succeeded", want: "True Stopped"},
		"it runs once, and has failed":                 {wanted: v1alpha1.RunOnce, printable: "Stopped", instance: "Failed", want: "Stopped, finally"},
		"it ended by itself, as it may":                {wanted: v1alpha1.RunRerunOnFailure, printable: "Stopped", instance: "Succeeded", want: "True Stopped"},
		"it failed, and is started again":              {wanted: v1alpha1.RunRerunOnFailure, printable: "Stopped", instance: "Failed", want: "Starting"},
		"it ended by itself, and is to run always":     {printable: "Stopped", instance: "Succeeded", want: "Starting"},
		"started by hand, and stopped":                 {wanted: v1alpha1.RunManual, printable: "Stopped", mod: formerly(v1alpha1.ReasonRunning), want: "True Stopped"},
		"stopped by hand, some time ago":               {wanted: v1alpha1.RunManual, printable: "Stopped", mod: formerly(v1alpha1.ReasonStopped), want: "True Stopped"},
		"halted, and its disk is imported by KubeVirt": {wanted: v1alpha1.RunHalted, printable: "Provisioning", want: "Starting"},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := c.wanted
			if wanted == "" {
				wanted = v1alpha1.RunAlways
			}
			status := map[string]any{"printableStatus": c.printable, "conditions": c.conditions, "startFailure": map[string]any{"consecutiveFailCount": c.failures}}
			mods := []func(*world){}
			if c.mod != nil {
				mods = append(mods, c.mod)
			}
			assert.Equal(t, c.want, told(machineVerdict(wanted, status, c.instance, mods...)))
		})
	}
}

func TestTextsThatChangeWithEachTryAreSteady(t *testing.T) {
	again := `failed to create virtual machine pod: pods "virt-launcher-web-q9q9q" is forbidden: exceeded quota: small, requested: memory=524Mi, used: memory=900Mi, limited: memory=1Gi`
	assert.Equal(t, plan.Steady(quotaText), plan.Steady(again))
	assert.Equal(t, "failed to create virtual machine pod: the launcher pod is forbidden: exceeded quota: small, requested: memory=524Mi, limited: memory=1Gi", plan.Steady(again))
	assert.Equal(t, networkText, plan.Steady(networkText))
}

func TestTheSchedulersTextIsToldOnce(t *testing.T) {
	w := newWorld(t.Fatalf)
	for _, step := range steps(imageIsReady, diskIsThere, []func(*world){(*world).starts, (*world).unschedulable}) {
		step(w)
		w.settle()
	}
	w.kubevirt("ErrorUnschedulable", condition("PodScheduled", "False", "Unschedulable", "0/2 nodes are available"))
	assert.False(t, w.reconcile(), "the number of nodes changes all the time")
	w.wantsMemory("1Gi")
	w.settle()
	assert.Contains(t, w.vm.Status.Message, "0/2 nodes", "a changed spec may have another reason")
}

func TestAStatusThatCannotBeReadIsAsGoodAsNone(t *testing.T) {
	assert.Equal(t, "Starting", told(machineVerdict(v1alpha1.RunAlways, map[string]any{"printableStatus": int64(7)}, "")))
}
