package vmfault

import (
	"context"
	"fmt"
	"slices"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Story is what a user does, and how it ends, whatever goes wrong meanwhile.
type Story struct {
	Name string
	// Farm puts the images into a namespace of their own.
	Farm bool
	// Steps in their order.
	Steps []Step
	// Ends of the virtual machines by their name.
	Ends map[string]End
	// AnyWay compares the end with that of the reference, and not the way to it: somebody else may be quicker.
	AnyWay bool
}

// End of a virtual machine. The zero value means that it is gone.
type End struct {
	Phase otv1alpha1.VirtualMachinePhase
	// Reason of the condition Ready.
	Reason otv1alpha1.VirtualMachineReason
	// Restart says that a restart is asked for.
	Restart bool
}

// Step of a story. It returns when it is done, and an error when it cannot be.
type Step struct {
	Name string
	Do   func(context.Context, *scene) error
}

var (
	running = End{Phase: otv1alpha1.VirtualMachineReady, Reason: otv1alpha1.ReasonRunning}
	stopped = End{Phase: otv1alpha1.VirtualMachineReady, Reason: otv1alpha1.ReasonNotStarted}
	gone    = End{}
)

// differs says what of the end is not so at the end of events, or nothing.
func (s Story) differs(events []history.Event) string {
	for name, end := range s.Ends {
		vm := lastOf(events, name)
		switch {
		case vm == nil && end != gone:
			return name + " is not there"
		case vm != nil && end == gone:
			return name + " is not gone"
		case vm != nil && endOf(vm) != end:
			return fmt.Sprintf("%s is %v, not %v: %s", name, endOf(vm), end, vm.Status.Message)
		}
	}
	return ""
}

func endOf(vm *otv1alpha1.VirtualMachine) End {
	return End{
		Phase: vm.Status.Phase, Reason: reasonOf(vm, otv1alpha1.ConditionReady),
		Restart: meta.IsStatusConditionTrue(vm.Status.Conditions, otv1alpha1.ConditionRestartRequired),
	}
}

func reasonOf(vm *otv1alpha1.VirtualMachine, kind string) otv1alpha1.VirtualMachineReason {
	if c := meta.FindStatusCondition(vm.Status.Conditions, kind); c != nil {
		return otv1alpha1.VirtualMachineReason(c.Reason)
	}
	return ""
}

// lastOf is a virtual machine as it is after the events, or nil.
func lastOf(events []history.Event, name string) *otv1alpha1.VirtualMachine {
	for _, e := range slices.Backward(events) {
		if e.Resource == "virtualmachines" && e.Group == otv1alpha1.SchemeGroupVersion.Group && e.Name == name {
			vm, _ := history.As[*otv1alpha1.VirtualMachine](e)
			return vm
		}
	}
	return nil
}
