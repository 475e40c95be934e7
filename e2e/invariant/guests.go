package invariant

import (
	"slices"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// DiskFirst is I14: KubeVirt's machine is created when its disk is there, or waits for its first consumer.
func DiskFirst(_ Settings, events []history.Event) []Violation {
	f := &found{invariant: "I14"}
	muster(events, func(fl *fleet, e history.Event, apply func()) {
		apply()
		guest, ok := history.As[*virtv1.VirtualMachine](e)
		if !ok || !e.Created() || machineOf(guest) == "" || guest.Spec.Template == nil {
			return
		}
		for _, name := range disksOf(&guest.Spec.Template.Spec) {
			dv := fl.disks[types.NamespacedName{Namespace: guest.Namespace, Name: name}]
			switch {
			case dv == nil:
				f.add(e, "its disk %s is not there", name)
			case machineOf(dv) != machineOf(guest):
				f.add(e, "its disk %s is somebody else's", name)
			case !fl.complete[dv.UID] && dv.Status.Phase != cdiv1.PendingPopulation && dv.Status.Phase != cdiv1.WaitForFirstConsumer:
				f.add(e, "its disk %s is %q", name, dv.Status.Phase)
			}
		}
	})
	return f.list
}

// disksOf are the names of the DataVolumes that a guest has.
func disksOf(spec *virtv1.VirtualMachineInstanceSpec) []string {
	var names []string
	for _, volume := range spec.Volumes {
		if volume.DataVolume != nil {
			names = append(names, volume.DataVolume.Name)
		}
	}
	return names
}

// KeepsDisk is I15: as long as a guest runs whose virtual machine nobody deletes, its disk is neither deleted nor let go, and
// its claim is not deleted.
func KeepsDisk(_ Settings, events []history.Event) []Violation {
	f := &found{invariant: "I15"}
	muster(events, func(fl *fleet, e history.Event, apply func()) {
		defer apply()
		wrong := losesDisk(e)
		if wrong == "" {
			return
		}
		for key, vmi := range fl.instances {
			if runs(vmi) && fl.wanted(key, vmi) && key.Namespace == e.Namespace && slices.Contains(disksOf(&vmi.Spec), e.Name) {
				f.add(e, "%s while the guest of %s runs", wrong, key)
			}
		}
	})
	return f.list
}

// wanted says that the virtual machine that a guest was made for is there, and is to stay.
func (f *fleet) wanted(key types.NamespacedName, vmi *virtv1.VirtualMachineInstance) bool {
	vm, of := f.machines[key], vmi.Labels[otv1alpha1.LabelVirtualMachineUID]
	return vm != nil && vm.DeletionTimestamp == nil && (of == "" || of == string(vm.UID))
}

// losesDisk says what happens to a disk that must not happen to one in use, or nothing.
func losesDisk(e history.Event) string {
	switch o := latest(e).(type) {
	case *cdiv1.DataVolume:
		before, _ := history.PrevAs[*cdiv1.DataVolume](e)
		switch {
		case e.Deleted:
			return "the disk goes"
		case before != nil && protectsDisk(before) && !protectsDisk(o):
			return "the disk loses its finalizer"
		}
	case *corev1.PersistentVolumeClaim:
		if goes(e) {
			return "the claim is deleted"
		}
	}
	return ""
}

func protectsDisk(dv *cdiv1.DataVolume) bool {
	return slices.Contains(dv.Finalizers, otv1alpha1.FinalizerDisk)
}

// OneOfEach is I16: at no time has a virtual machine two disks, two Secrets, or two of KubeVirt's machines.
func OneOfEach(_ Settings, events []history.Event) []Violation {
	f := &found{invariant: "I16"}
	children := map[types.UID]map[string]int{}
	for _, e := range events {
		object := latest(e)
		if object == nil || !e.Deleted && !e.Created() {
			continue
		}
		uid := machineOf(object)
		if uid == "" || !slices.Contains([]string{"datavolumes", "secrets", "virtualmachines"}, e.Resource) {
			continue
		}
		if children[uid] == nil {
			children[uid] = map[string]int{}
		}
		if e.Deleted {
			children[uid][e.Resource]--
			continue
		}
		if children[uid][e.Resource]++; children[uid][e.Resource] > 1 {
			f.add(e, "its virtual machine has another one")
		}
	}
	return f.list
}
