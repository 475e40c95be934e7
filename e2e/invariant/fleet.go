package invariant

import (
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fleet is what exists of virtual machines, and of what they are made of, after an event.
type fleet struct {
	now        time.Time
	namespaces map[string]map[string]string // labels
	images     map[types.NamespacedName]*otv1alpha1.VMDiskImage
	machines   map[types.NamespacedName]*otv1alpha1.VirtualMachine
	disks      map[types.NamespacedName]*cdiv1.DataVolume
	complete   map[types.UID]bool // DataVolumes that have Succeeded
	secrets    map[types.NamespacedName]*corev1.Secret
	guests     map[types.NamespacedName]*virtv1.VirtualMachine
	instances  map[types.NamespacedName]*virtv1.VirtualMachineInstance
}

// muster calls look after each event, with the fleet before and after it: look is given the former, and calls what it gets to
// have the event applied.
func muster(events []history.Event, look func(f *fleet, e history.Event, apply func())) *fleet {
	f := &fleet{
		namespaces: map[string]map[string]string{},
		images:     map[types.NamespacedName]*otv1alpha1.VMDiskImage{},
		machines:   map[types.NamespacedName]*otv1alpha1.VirtualMachine{},
		disks:      map[types.NamespacedName]*cdiv1.DataVolume{},
		complete:   map[types.UID]bool{},
		secrets:    map[types.NamespacedName]*corev1.Secret{},
		guests:     map[types.NamespacedName]*virtv1.VirtualMachine{},
		instances:  map[types.NamespacedName]*virtv1.VirtualMachineInstance{},
	}
	for _, e := range events {
		look(f, e, func() { f.apply(e) })
	}
	return f
}

// after is the fleet at the end of a history.
func after(events []history.Event) *fleet {
	return muster(events, func(_ *fleet, _ history.Event, apply func()) { apply() })
}

func (f *fleet) apply(e history.Event) {
	f.now = e.Seen
	key := e.NamespacedName()
	switch o := latest(e).(type) {
	case *corev1.Namespace:
		keep(f.namespaces, o.Name, o.Labels, e.Deleted)
	case *otv1alpha1.VMDiskImage:
		keep(f.images, key, o, e.Deleted)
	case *otv1alpha1.VirtualMachine:
		keep(f.machines, key, o, e.Deleted)
	case *cdiv1.DataVolume:
		keep(f.disks, key, o, e.Deleted)
		f.complete[o.UID] = f.complete[o.UID] || o.Status.Phase == cdiv1.Succeeded
	case *corev1.Secret:
		keep(f.secrets, key, o, e.Deleted)
	case *virtv1.VirtualMachine:
		keep(f.guests, key, o, e.Deleted)
	case *virtv1.VirtualMachineInstance:
		keep(f.instances, key, o, e.Deleted)
	}
}

// machineOf is the UID of the VirtualMachine of ours that controls an object, or empty.
func machineOf(object metav1.Object) types.UID {
	owner := metav1.GetControllerOf(object)
	if owner == nil || owner.Kind != "VirtualMachine" || owner.APIVersion != otv1alpha1.SchemeGroupVersion.String() {
		return ""
	}
	return owner.UID
}

// controlling is the VirtualMachine that controls an object, or nil.
func (f *fleet) controlling(object client.Object) *otv1alpha1.VirtualMachine {
	uid := machineOf(object)
	for _, vm := range f.machines {
		if vm.UID == uid {
			return vm
		}
	}
	return nil
}

// admitted says that the image there is lets the virtual machine use it.
func (f *fleet) admitted(image *otv1alpha1.VMDiskImage, vm *otv1alpha1.VirtualMachine) bool {
	return image.Admits(vm.Namespace, f.namespaces[vm.Namespace])
}

// runs says that a guest is at work, also while it shuts down.
func runs(vmi *virtv1.VirtualMachineInstance) bool {
	return vmi != nil && vmi.Status.Phase == virtv1.Running
}
