package plan

import (
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The words of KubeVirt for the state of a machine: status.printableStatus.
const (
	printStarting           = "Starting"
	printProvisioning       = "Provisioning"
	printWaitingForBinding  = "WaitingForVolumeBinding"
	printWaitingForReceiver = "WaitingForReceiver"
	printStopped            = "Stopped"
	printRunning            = "Running"
	printPaused             = "Paused"
	printMigrating          = "Migrating"
	printStopping           = "Stopping"
	printTerminating        = "Terminating"
	printCrashLoopBackOff   = "CrashLoopBackOff"
	printErrorUnschedulable = "ErrorUnschedulable"
	printErrorPvcNotFound   = "ErrorPvcNotFound"
	printDataVolumeError    = "DataVolumeError"
	printErrImagePull       = "ErrImagePull"
	printImagePullBackOff   = "ImagePullBackOff"
	printUnknown            = "Unknown"
	conditionReady          = "Ready"
	conditionPodScheduled   = "PodScheduled"
	phaseSucceeded          = "Succeeded"
	phaseFailed             = "Failed"
)

// kubevirtVerdict reads what KubeVirt says of its machine. printableStatus and Ready come first: the other conditions stay
// when what they were about has gone. A guest that is stopped is as it should be where nobody wants it to run; but every
// machine is Stopped at first.
func kubevirtVerdict(s Snapshot) Verdict {
	m := machineOf(s.Machine)
	wanted := s.VM.WantedStrategy()
	switch m.PrintableStatus {
	case printRunning, printMigrating:
		return running(m, wanted)
	case printPaused:
		return bad(Patient, v1alpha1.ReasonPaused, "The guest is paused")
	case printStopping, printTerminating:
		return bad(Waits, v1alpha1.ReasonStopping, "The guest is being stopped")
	case printStopped:
		return stopped(s, m, wanted)
	case "", printStarting, printProvisioning, printWaitingForBinding, printWaitingForReceiver:
		return starting(m)
	}
	return troubled(m)
}

func running(m machineState, wanted v1alpha1.RunStrategy) Verdict {
	switch {
	case wanted == v1alpha1.RunHalted:
		return bad(Waits, v1alpha1.ReasonStopping, "The guest is being stopped")
	case !m.is(conditionReady, metav1.ConditionTrue):
		return bad(Waits, v1alpha1.ReasonStarting, "The guest is running, and not ready yet")
	}
	return good(v1alpha1.ReasonRunning, "The guest is running")
}

const startsGuest = "KubeVirt starts the guest"

// starting may be for good: the reason is in other conditions then.
func starting(m machineState) Verdict {
	switch failure := m.creationFailure(); {
	case failure != nil:
		return *failure
	case m.StartFailure.ConsecutiveFailCount > 0:
		return crashLooping()
	}
	return bad(Waits, v1alpha1.ReasonStarting, startsGuest)
}

func crashLooping() Verdict {
	return bad(Troubled, v1alpha1.ReasonCrashLooping, "The guest fails to start, again and again; its launcher pod's log tells why")
}

func stopped(s Snapshot, m machineState, wanted v1alpha1.RunStrategy) Verdict {
	switch wanted {
	case v1alpha1.RunHalted:
		return good(v1alpha1.ReasonNotStarted, "The disk and the machine are ready; the guest is not to be started")
	case v1alpha1.RunManual:
		if hasRun(s) {
			return good(v1alpha1.ReasonStopped, "The guest was stopped")
		}
		return good(v1alpha1.ReasonNotStarted, "The disk and the machine are ready; the guest is started by hand")
	}
	if ended := s.Instance != nil && !guestRuns(s); ended && wanted != v1alpha1.RunAlways {
		return ending(s, wanted)
	}
	return starting(m)
}

// ending is what became of a guest that is not started again by itself.
func ending(s Snapshot, wanted v1alpha1.RunStrategy) Verdict {
	switch failed := instancePhase(s.Instance) == phaseFailed; {
	case !failed:
		return good(v1alpha1.ReasonStopped, "The guest shut itself down")
	case wanted == v1alpha1.RunOnce:
		return bad(Final, v1alpha1.ReasonStopped, "The guest failed, and runs only once")
	}
	return bad(Waits, v1alpha1.ReasonStarting, "The guest failed, and is started again")
}

// hasRun goes by the last verdict.
func hasRun(s Snapshot) bool {
	for _, c := range s.VM.Status.Conditions {
		if c.Type == v1alpha1.ConditionVirtualMachineReady {
			switch v1alpha1.VirtualMachineReason(c.Reason) {
			case v1alpha1.ReasonRunning, v1alpha1.ReasonStopping, v1alpha1.ReasonStopped, v1alpha1.ReasonPaused:
				return true
			}
		}
	}
	return false
}

// troubled are the states that usually pass.
func troubled(m machineState) Verdict {
	switch m.PrintableStatus {
	case printCrashLoopBackOff:
		return crashLooping()
	case printErrorUnschedulable:
		if c := m.condition(conditionPodScheduled); c != nil && c.Status == metav1.ConditionFalse && c.Message != "" {
			return bad(Troubled, v1alpha1.ReasonUnschedulable, "No node takes the guest: %s", c.Message)
		}
		return bad(Troubled, v1alpha1.ReasonUnschedulable, "No node takes the guest")
	case printErrorPvcNotFound:
		return bad(Troubled, v1alpha1.ReasonDiskLost, "KubeVirt does not find the claim of the disk")
	case printDataVolumeError:
		return bad(Troubled, v1alpha1.ReasonCloneFailed, "KubeVirt says that the DataVolume has failed")
	case printErrImagePull, printImagePullBackOff:
		return bad(Troubled, v1alpha1.ReasonUnknown, "The image of the guest's launcher pod cannot be pulled")
	case printUnknown:
		return bad(Troubled, v1alpha1.ReasonUnknown, "KubeVirt does not know how the guest is; its node may be lost")
	}
	return bad(Troubled, v1alpha1.ReasonUnknown, "KubeVirt says %s", m.PrintableStatus)
}

// printable is KubeVirt's word, without the steps in between: each would cost a write.
func printable(s Snapshot, verdict Verdict) string {
	switch {
	case verdict.Reason == v1alpha1.ReasonStarting: // also when it is just being made
		return printStarting
	case s.Machine == nil || !owned(s, s.Machine):
		return ""
	}
	switch verdict.Reason {
	case v1alpha1.ReasonStopping:
		return printStopping
	case v1alpha1.ReasonCrashLooping:
		return printCrashLoopBackOff
	case v1alpha1.ReasonRunning:
		return printRunning
	}
	return machineOf(s.Machine).PrintableStatus
}
