package plan

import (
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Some waits are over in a moment as a rule. Status says nothing of them until they have lasted, for each word is a write for
// each virtual machine.
const (
	// quietTime is how long a new VM may wait to be counted by an image that is ready, without a status that says so. It takes
	// some milliseconds, or seconds where many come together.
	quietTime = 10 * time.Second
	// quietStart is how long KubeVirt may take to start a guest before status goes on from what came before: that the disk is
	// being cloned. Creation times are whole seconds, so it is up to a second less.
	quietStart = 3 * time.Second
)

// quietly says that what is waited for needs no word yet, and until when. What is tried in vain does.
func quietly(s Snapshot, d Decision, now time.Time) (quiet bool, until time.Time) {
	if s.Failing != "" || len(s.Refusals) > 0 {
		return false, time.Time{}
	}
	if quiet, until = waitsQuietly(s, d, now); quiet {
		return quiet, until
	}
	return startsQuietly(s, d, now)
}

// waitsQuietly says that a new VM is about to be counted by its image.
func waitsQuietly(s Snapshot, d Decision, now time.Time) (quiet bool, until time.Time) {
	age := now.Sub(s.VM.CreationTimestamp.Time)
	until = s.VM.CreationTimestamp.Add(quietTime)
	return s.VM.Status.ObservedGeneration == 0 && len(d.Actions) == 0 &&
		d.Report.Blocking.Reason == v1alpha1.ReasonImageClaiming && age > -quietTime && age < quietTime, until
}

// startsQuietly says that KubeVirt has just got the machine for the first time, or is getting it now, and status has told that
// its disk is being cloned.
func startsQuietly(s Snapshot, d Decision, now time.Time) (quiet bool, until time.Time) {
	made := now
	if s.Machine != nil {
		made = s.Machine.GetCreationTimestamp().Time
	}
	age, told := now.Sub(made), s.VM.Status
	until = made.Add(quietStart)
	return told.ObservedGeneration == s.VM.Generation && told.PrintableStatus == "" &&
		toldCloning(s.VM) && d.Report.Blocking.Reason == v1alpha1.ReasonStarting && d.Report.Stalled == nil && age > -quietStart && age < quietStart, until
}

func toldCloning(vm *v1alpha1.VirtualMachine) bool {
	told := meta.FindStatusCondition(vm.Status.Conditions, v1alpha1.ConditionReady)
	return told != nil && told.Reason == string(v1alpha1.ReasonDiskCloning)
}
