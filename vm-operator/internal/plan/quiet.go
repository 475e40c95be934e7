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
	// quietStep is how long a new VM's disk may be cloned, and how long KubeVirt may take to start a guest, before status goes
	// on from what came before. Creation times are whole seconds, so it is up to a second less.
	quietStep = 3 * time.Second
)

// quietly says that what is waited for needs no word yet, and until when. What is tried in vain does.
func quietly(s Snapshot, d Decision, now time.Time) (quiet bool, until time.Time) {
	if s.Failing != "" || len(s.Refusals) > 0 || d.Report.Stalled != nil {
		return false, time.Time{}
	}
	for _, wait := range []func(Snapshot, Decision, time.Time) (time.Time, time.Duration){toBeCounted, toBeCloned, toBeStarted} {
		since, most := wait(s, d, now)
		if age := now.Sub(since); most > 0 && age > -most && age < most {
			return true, since.Add(most)
		}
	}
	return false, time.Time{}
}

// toBeCounted by its image is a matter of a moment for a new VM.
func toBeCounted(s Snapshot, d Decision, _ time.Time) (since time.Time, most time.Duration) {
	if untold(s.VM) && len(d.Actions) == 0 && d.Report.Blocking.Reason == v1alpha1.ReasonImageClaiming {
		return s.VM.CreationTimestamp.Time, quietTime
	}
	return time.Time{}, 0
}

// toBeCloned is a matter of a moment where the storage clones without copying.
func toBeCloned(s Snapshot, d Decision, now time.Time) (since time.Time, most time.Duration) {
	if !untold(s.VM) || d.Report.Blocking.Reason != v1alpha1.ReasonDiskCloning {
		return time.Time{}, 0
	}
	return s.made(s.Disk != nil, func() time.Time { return s.Disk.CreationTimestamp.Time }, now), quietStep
}

// toBeStarted: KubeVirt has just got the machine for the first time, or is getting it now, and all that status has told is that
// the disk is being cloned.
func toBeStarted(s Snapshot, d Decision, now time.Time) (since time.Time, most time.Duration) {
	told := s.VM.Status
	if d.Report.Blocking.Reason != v1alpha1.ReasonStarting || told.PrintableStatus != "" || !untold(s.VM) && !toldCloning(s.VM) {
		return time.Time{}, 0
	}
	return s.made(s.Machine != nil, func() time.Time { return s.Machine.GetCreationTimestamp().Time }, now), quietStep
}

// made is when a child was created, or now, when that is about to be done.
func (s Snapshot) made(exists bool, created func() time.Time, now time.Time) time.Time {
	if exists {
		return created()
	}
	return now
}

// untold says that status has nothing yet.
func untold(vm *v1alpha1.VirtualMachine) bool { return vm.Status.ObservedGeneration == 0 }

func toldCloning(vm *v1alpha1.VirtualMachine) bool {
	told := meta.FindStatusCondition(vm.Status.Conditions, v1alpha1.ConditionReady)
	return told != nil && vm.Status.ObservedGeneration == vm.Generation && told.Reason == string(v1alpha1.ReasonDiskCloning)
}
