package plan

import (
	"slices"

	"github.com/pelotech/open-terrain/apis/drift"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/desired"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// machineStep makes KubeVirt's machine once its disk and its Secret are there: it cannot be started without them. From then on
// it is kept as the spec wants it, whatever becomes of the image.
func machineStep(s Snapshot, disk, guest step) step {
	refusal, refusedMachine := s.Refusals[Machine]
	if s.Machine == nil {
		switch {
		case refusedMachine:
			return step{Verdict: refused(refusal)}
		case !disk.usable:
			return step{Verdict: bad(Waits, v1alpha1.ReasonWaiting, "Waiting for the disk")}
		case !guest.Good:
			return step{Verdict: guest.Verdict}
		}
		return applied(s, bad(Waits, v1alpha1.ReasonStarting, startsGuest))
	}
	switch {
	case !owned(s, s.Machine):
		return step{Verdict: bad(Final, v1alpha1.ReasonNameTaken,
			"The VirtualMachine %s of KubeVirt does not belong to this virtual machine: delete or rename it", s.Machine.GetName())}
	case refusedMachine:
		return step{Verdict: refused(refusal)}
	case s.Machine.GetDeletionTimestamp() != nil:
		return step{Verdict: bad(Waits, v1alpha1.ReasonStopping, "KubeVirt's machine is being deleted, and made again")}
	}
	verdict := keepText(s.VM, kubevirtVerdict(s))
	if !verdict.Good && !guest.Good && disk.usable {
		verdict = guest.Verdict
	}
	return applied(s, verdict)
}

// applied asks for an apply where the machine is not what it shall be.
func applied(s Snapshot, verdict Verdict) step {
	want, err := desired.Machine(s.VM, CloudInitOf(s))
	if err != nil {
		return step{Verdict: bad(Final, v1alpha1.ReasonRefused, "The machine cannot be described: %s", err)}
	}
	if s.Machine == nil || needsApply(s, want) {
		return step{Verdict: verdict, actions: []Action{ApplyMachine}}
	}
	return step{Verdict: verdict}
}

// needsApply leaves out the fields that were applied in vain.
func needsApply(s Snapshot, want *unstructured.Unstructured) bool {
	return slices.ContainsFunc(MachineDrift(want, s.Machine), func(path string) bool { return !slices.Contains(s.Untaken, path) })
}

// MachineDrift are the fields of the machine that are not as they shall be.
func MachineDrift(want, live *unstructured.Unstructured) []string {
	return drift.Of(drift.Sealed(want).Object, live.Object)
}

// restartRequired is KubeVirt's condition, as long as there is a guest that it can be about: it stays when the guest goes. An
// instance that waits for a node is made anew by itself, if it goes on waiting.
func restartRequired(s Snapshot) string {
	if s.Machine == nil || !owned(s, s.Machine) || !guestRuns(s) || waitsForNode(s.Instance) && restarts(s.VM) {
		return ""
	}
	c := machineOf(s.Machine).condition("RestartRequired")
	switch {
	case c == nil || c.Status != "True":
		return ""
	case c.Message == "":
		return "The guest runs with an older spec until it is restarted"
	}
	return "The guest runs with an older spec until it is restarted: " + c.Message
}

// neverRan says that the guest of the instance has not been started yet: its pod is waited for, or handed over. What KubeVirt
// says of the instance decides, and no word that is not known here.
func neverRan(instance *unstructured.Unstructured) bool {
	switch instancePhase(instance) {
	case "", "Pending", "Scheduling", "Scheduled":
		return true
	}
	return false
}

// guestRuns says that there is an instance of the guest that may use the disk.
func guestRuns(s Snapshot) bool {
	if s.Instance == nil {
		return false
	}
	phase := instancePhase(s.Instance)
	return phase != phaseSucceeded && phase != phaseFailed
}
