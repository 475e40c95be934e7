package invariant

import (
	"slices"
	"strings"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	virtv1 "kubevirt.io/api/core/v1"
)

// MachineTruth is I10 of virtual machines: one becomes Ready when its guest runs, or when it is not to run; and its phase is
// that of its conditions. A guest that ran a lag ago may be taken for one that runs.
func MachineTruth(s Settings, events []history.Event) []Violation {
	f := &found{invariant: "I10"}
	ran := map[types.NamespacedName]time.Time{}
	muster(events, func(fl *fleet, e history.Event, apply func()) {
		for key, vmi := range fl.instances {
			if runs(vmi) {
				ran[key] = e.Seen
			}
		}
		apply()
		vm, ok := history.As[*otv1alpha1.VirtualMachine](e)
		if !ok {
			return
		}
		if phase := otv1alpha1.VirtualMachinePhaseOf(vm.Status.Conditions); len(vm.Status.Conditions) > 0 && vm.Status.Phase != phase {
			f.add(e, "it says %s, and its conditions %s", vm.Status.Phase, phase)
		}
		if !saysItRuns(e, vm) {
			return
		}
		key := e.NamespacedName()
		if at := ran[key]; !runs(fl.instances[key]) && (at.IsZero() || e.Seen.Sub(at) > s.Lag) {
			f.add(e, "it becomes Ready, and no guest runs")
		}
	})
	return f.list
}

func isReady(vm *otv1alpha1.VirtualMachine) bool {
	return meta.IsStatusConditionTrue(vm.Status.Conditions, otv1alpha1.ConditionReady)
}

// saysItRuns says that a virtual machine whose guest is to run becomes Ready by the event.
func saysItRuns(e history.Event, vm *otv1alpha1.VirtualMachine) bool {
	before, ok := history.PrevAs[*otv1alpha1.VirtualMachine](e)
	becomes := isReady(vm) && (!ok || !isReady(before))
	return becomes && vm.Status.ObservedGeneration == vm.Generation && vm.WantedStrategy().NeedsGuest()
}

// MachinesAtEnd is I10 at the end of a history: status is about the spec that there is, and what is Ready has its disk, and its
// guest as the spec wants it.
func MachinesAtEnd(_ Settings, events []history.Event) []Violation {
	f, fl := &found{invariant: "I10"}, after(events)
	for key, vm := range fl.machines {
		if wrong := fl.untrue(key, vm); wrong != "" {
			f.add(last(events), "%s is %s: %s", key, vm.Status.Phase, wrong)
		}
	}
	return f.list
}

func (f *fleet) untrue(key types.NamespacedName, vm *otv1alpha1.VirtualMachine) string {
	if vm.Status.ObservedGeneration != vm.Generation {
		return "that is about a former spec"
	}
	if !isReady(vm) {
		return ""
	}
	if wrong := f.untrueDisk(vm); wrong != "" {
		return wrong
	}
	vmi := f.instances[key]
	switch {
	case f.guests[key] == nil:
		return "KubeVirt's machine is not there"
	case vm.WantedStrategy() == otv1alpha1.RunHalted && vmi != nil:
		return "its guest is not stopped"
	case vm.WantedStrategy().NeedsGuest() && (!runs(vmi) || vmi.DeletionTimestamp != nil):
		return "its guest does not run"
	}
	return untold(vm, vmi)
}

// untold says which address of the guest status does not tell, or nothing.
func untold(vm *otv1alpha1.VirtualMachine, vmi *virtv1.VirtualMachineInstance) string {
	if vmi == nil {
		return ""
	}
	for _, has := range vmi.Status.Interfaces {
		told := slices.ContainsFunc(vm.Status.Interfaces, func(i otv1alpha1.VirtualMachineInterfaceStatus) bool {
			return strings.EqualFold(i.MACAddress, has.MAC) && i.IPAddress != ""
		})
		if has.IP != "" && !told {
			return "status does not tell of the guest's address " + has.IP
		}
	}
	return ""
}

func (f *fleet) untrueDisk(vm *otv1alpha1.VirtualMachine) string {
	dv := f.disks[types.NamespacedName{Namespace: vm.Namespace, Name: otv1alpha1.VirtualMachineChild(vm)}]
	switch {
	case dv == nil || !f.complete[dv.UID]:
		return "its disk is not there"
	case vm.Status.Disk == nil || vm.Status.Disk.UID != dv.UID:
		return "status names another disk"
	}
	return ""
}
