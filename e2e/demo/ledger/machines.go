package ledger

import (
	"maps"
	"slices"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Machine is a VirtualMachine of ours as the history has it.
type Machine struct {
	Key types.NamespacedName
	UID types.UID
	// Image that it refers to.
	Image types.NamespacedName
	// Created is the revision of its creation: lower is earlier.
	Created int64
	Status  otv1alpha1.VirtualMachineStatus
	// Disks and Guests are the UIDs of all DataVolumes and of all KubeVirt VirtualMachines that were ever made for it, in order.
	Disks, Guests []types.UID
}

// Ready says that its phase is Ready.
func (m *Machine) Ready() bool { return m.Status.Phase == otv1alpha1.VirtualMachineReady }

func (l *Ledger) takeMachine(e history.Event, object client.Object) {
	switch o := object.(type) {
	case *otv1alpha1.VirtualMachine:
		l.machine(e, o)
	case *virtv1.VirtualMachine:
		l.guest(e, o)
	case *otv1alpha1.Workspace:
		l.space(e, o)
	}
}

func (l *Ledger) machine(e history.Event, o *otv1alpha1.VirtualMachine) {
	if e.Deleted {
		delete(l.machines, o.UID)
		return
	}
	known := l.machines[o.UID]
	if known == nil {
		known = &Machine{Key: e.NamespacedName(), UID: o.UID, Image: o.ImageKey(), Created: e.Revision}
		l.machines[o.UID] = known
	}
	known.Status = o.Status
}

func (l *Ledger) disk(e history.Event, o *cdiv1.DataVolume) {
	machine := l.MachineOf(o)
	keep(l.disks, e, o, machine != nil)
	if machine != nil && !slices.Contains(machine.Disks, o.UID) {
		machine.Disks = append(machine.Disks, o.UID)
	}
}

func (l *Ledger) guest(e history.Event, o *virtv1.VirtualMachine) {
	machine := l.MachineOf(o)
	keep(l.guests, e, o, machine != nil)
	if machine != nil && !slices.Contains(machine.Guests, o.UID) {
		machine.Guests = append(machine.Guests, o.UID)
	}
}

// MachineOf is the virtual machine that controls an object, or nil.
func (l *Ledger) MachineOf(o metav1.Object) *Machine {
	owner := metav1.GetControllerOf(o)
	if owner == nil {
		return nil
	}
	return l.machines[owner.UID]
}

// Machines in the order of their creation.
func (l *Ledger) Machines() []*Machine {
	return slices.SortedFunc(maps.Values(l.machines), func(a, b *Machine) int { return int(a.Created - b.Created) })
}

// Machine is the virtual machine of that name, or nil.
func (l *Ledger) Machine(key types.NamespacedName) *Machine {
	for _, machine := range l.machines {
		if machine.Key == key {
			return machine
		}
	}
	return nil
}

// Disk is the virtual machine's DataVolume that exists, or nil.
func (l *Ledger) Disk(machine *Machine) *cdiv1.DataVolume {
	for _, dv := range l.disks {
		if l.MachineOf(dv) == machine {
			return dv
		}
	}
	return nil
}

// Guest is KubeVirt's VirtualMachine of that name, or nil.
func (l *Ledger) Guest(key types.NamespacedName) *virtv1.VirtualMachine { return l.guests[key] }
