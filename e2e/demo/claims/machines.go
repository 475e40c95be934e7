package claims

import (
	"slices"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/demo/ledger"
	"github.com/pelotech/open-terrain/e2e/history"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// Waited: KubeVirt's machine was made, and a guest started, only when the disk was cloned; one was applied before there was
// an image, and waited for its turn in the queue.
func Waited(r Run, early types.NamespacedName) Verdict {
	v := Verdict{Claim: "a virtual machine waits for its disk, and is never started before it"}
	before, furthest, started := false, 0, 0
	end := replay(r, func(e history.Event, l *ledger.Ledger) {
		if vm, ok := history.As[*otv1alpha1.VirtualMachine](e); ok && e.Created() && e.NamespacedName() == early {
			before = l.Image(vm.ImageKey()) == nil
		}
		furthest = max(furthest, ahead(l, early))
		machine := starts(e, l)
		if machine == nil {
			return
		}
		started++
		if disk := l.Disk(machine); disk == nil || disk.Status.Phase != cdiv1.Succeeded {
			v.fault("revision %d: a %s of %s was made while its disk was not cloned", e.Revision, e.Kind, machine.Key)
		}
	})
	checkReady(&v, end)
	v.detail("%s was there before its image, which was #%d of the queue; %d machines and guests were made, each with its disk cloned", early, furthest, started)
	if !before || furthest == 0 || started == 0 {
		v.fault("%s did not wait for an image that was queued", early)
	}
	return v
}

// ahead is the place in the queue of the image that a virtual machine waits for; 0 for none.
func ahead(l *ledger.Ledger, key types.NamespacedName) int {
	machine := l.Machine(key)
	if machine == nil || l.Image(machine.Image) == nil {
		return 0
	}
	return l.Position(l.Image(machine.Image))
}

// checkReady wants every virtual machine to be Ready, with a machine of KubeVirt.
func checkReady(v *Verdict, l *ledger.Ledger) {
	for _, machine := range l.Machines() {
		if !machine.Ready() || len(machine.Guests) == 0 {
			v.fault("%s is %s: %s", machine.Key, machine.Status.Phase, machine.Status.Message)
		}
	}
}

// starts is the virtual machine that gets a machine of KubeVirt or a guest by this event, or nil.
func starts(e history.Event, l *ledger.Ledger) *ledger.Machine {
	if !e.Created() {
		return nil
	}
	switch o := e.Object.(type) {
	case *virtv1.VirtualMachine:
		return l.MachineOf(o)
	case *virtv1.VirtualMachineInstance:
		if guest := l.Guest(e.NamespacedName()); guest != nil {
			return l.MachineOf(guest)
		}
	}
	return nil
}

// Shared: an image was downloaded once, however many virtual machines have a disk of it, and each of them has one.
func Shared(r Run) Verdict {
	v := Verdict{Claim: "virtual machines of one image cost one download"}
	end := replay(r, func(history.Event, *ledger.Ledger) {})
	users := users(end)
	for _, key := range sortedKeys(users) {
		clones := 0
		for _, machine := range users[key] {
			clones += len(machine.Disks)
		}
		image, whole := end.Image(key), r.Counted[key].Whole
		if image == nil {
			v.fault("%s does not exist", key)
			continue
		}
		v.detail("%s: downloads %d, disks cloned from it %d", key, whole, clones)
		if whole != 1 || len(image.Downloads) != 1 || clones != len(users[key]) {
			v.fault("%s had %d DataVolumes, was downloaded %d times, and %d virtual machines have %d disks of it", key, len(image.Downloads), whole, len(users[key]), clones)
		}
	}
	if len(users) == 0 {
		v.fault("there are no virtual machines")
	}
	return v
}

// Counted: an image counts a virtual machine before that has a disk, and in the end as many as there are.
func Counted(r Run) Verdict {
	v := Verdict{Claim: "an image counts its virtual machines, each before its disk is cloned"}
	end := replay(r, func(e history.Event, l *ledger.Ledger) {
		dv, ok := history.As[*cdiv1.DataVolume](e)
		if !ok || !e.Created() || l.MachineOf(dv) == nil {
			return
		}
		machine := l.MachineOf(dv)
		if !slices.Contains(references(l.Image(machine.Image)).Sample, machine.Key.String()) {
			v.fault("revision %d: %s got a disk before %s counted it", e.Revision, machine.Key, machine.Image)
		}
	})
	users := users(end)
	for _, image := range end.Images() {
		said, there := int(references(image).Count), len(users[image.Key])
		if said != there {
			v.fault("%s counts %d virtual machines, and there are %d", image.Key, said, there)
		}
		if said > 0 {
			v.detail("%s counts %d", image.Key, said)
		}
	}
	if len(users) == 0 {
		v.fault("there are no virtual machines")
	}
	return v
}

// references of an image; none where there is no image.
func references(image *ledger.Image) otv1alpha1.References {
	if image == nil {
		return otv1alpha1.References{}
	}
	return ptr.Deref(image.Status.References, otv1alpha1.References{})
}

// users are the virtual machines of each image that has any.
func users(l *ledger.Ledger) map[types.NamespacedName][]*ledger.Machine {
	all := map[types.NamespacedName][]*ledger.Machine{}
	for _, machine := range l.Machines() {
		all[machine.Image] = append(all[machine.Image], machine)
	}
	return all
}

// Repaired: KubeVirt's machine was deleted and came back, with its disk and as the same guest.
func Repaired(r Run, key types.NamespacedName) Verdict {
	v := Verdict{Claim: "a machine of KubeVirt that somebody deletes comes back, with its disk"}
	var firmware []types.UID
	end := replay(r, func(e history.Event, _ *ledger.Ledger) {
		if vm, ok := history.As[*virtv1.VirtualMachine](e); ok && e.Created() && e.NamespacedName() == key {
			firmware = append(firmware, firmwareOf(vm))
		}
	})
	machine := end.Machine(key)
	if machine == nil {
		v.fault("%s does not exist", key)
		return v
	}
	v.detail("%s had %d machines of KubeVirt, one after the other, and one disk; it is %s again", key, len(machine.Guests), machine.Status.Phase)
	if len(machine.Guests) != 2 || len(machine.Disks) != 1 || !machine.Ready() {
		v.fault("%s had %d machines of KubeVirt and %d disks, and is %s", key, len(machine.Guests), len(machine.Disks), machine.Status.Phase)
	}
	if len(slices.Compact(firmware)) != 1 || firmware[0] == "" {
		v.fault("the guest of %s is another one than before", key)
	}
	return v
}

// firmwareOf is the UUID that the guest sees, by which it knows itself.
func firmwareOf(vm *virtv1.VirtualMachine) types.UID {
	if vm.Spec.Template == nil || vm.Spec.Template.Spec.Domain.Firmware == nil {
		return ""
	}
	return vm.Spec.Template.Spec.Domain.Firmware.UUID
}
