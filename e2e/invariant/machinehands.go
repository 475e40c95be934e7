package invariant

import (
	"strings"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// machineManager is the field manager of the vm-operator, and the beginning of that of its references.
const machineManager = "vm-operator"

// MachineHandsOff is HandsOff of the vm-operator: it makes and changes nothing but the children of virtual machines, images of
// templates, and two statuses; what exists it changes and deletes by UID only.
func MachineHandsOff(_ Settings, events []history.Event, writes []Write) []Violation {
	f, ours, children := &found{invariant: "I9"}, madeForMachines(events), childrenOf(events)
	for _, w := range writes {
		if wrong := oversteps(w, ours, children); wrong != "" {
			f.add(last(events), "the operator asks to %s %s %s/%s: %s", w.Verb, strings.Trim(w.Resource+"/"+w.Subresource, "/"), w.Namespace, w.Name, wrong)
		}
	}
	return f.list
}

// deeds are what the operator does, as verb, resource with its group where it is not of its own, and subresource; and what each
// must name: a child of a virtual machine, the UID of an object of ours, or nothing.
var deeds = map[string]func(w Write, ours map[types.UID]bool, children map[string]bool) string{
	"patch virtualmachines.pelotech.ot/status":   existing,
	"patch vmdiskimages.pelotech.ot/status":      existing,
	"create vmdiskimages.pelotech.ot":            func(Write, map[types.UID]bool, map[string]bool) string { return "" },
	"create datavolumes.cdi.kubevirt.io":         child,
	"patch secrets":                              child,
	"patch virtualmachines.kubevirt.io":          child,
	"patch datavolumes.cdi.kubevirt.io":          existing,
	"delete datavolumes.cdi.kubevirt.io":         existing,
	"delete virtualmachineinstances.kubevirt.io": existing, // that never ran
}

func oversteps(w Write, ours map[types.UID]bool, children map[string]bool) string {
	deed := strings.TrimSuffix(w.Verb+" "+strings.TrimSuffix(w.Resource+"."+w.Group, ".")+"/"+w.Subresource, "/")
	allowed, ok := deeds[deed]
	if !ok {
		return "it has no such objects"
	}
	return allowed(w, ours, children)
}

func existing(w Write, ours map[types.UID]bool, _ map[string]bool) string {
	if w.UID == "" || !ours[w.UID] {
		return "whatever object of that name there is"
	}
	return ""
}

func child(w Write, ours map[types.UID]bool, children map[string]bool) string {
	switch {
	case !children[w.Namespace+"/"+w.Name]:
		return "no virtual machine has such a child"
	case w.UID != "" && !ours[w.UID]:
		return "the object with the UID " + string(w.UID) + " is nobody's of ours"
	}
	return ""
}

// madeForMachines are the UIDs of all virtual machines and images that ever were, and of what they controlled, and of the
// instances of their machines.
func madeForMachines(events []history.Event) map[types.UID]bool {
	uids := map[types.UID]bool{}
	for _, e := range events {
		for _, object := range []client.Object{e.Object, e.Prev} {
			if object == nil {
				continue
			}
			owner := metav1.GetControllerOf(object)
			if machines(object) || machineOf(object) != "" || owner != nil && uids[owner.UID] {
				uids[object.GetUID()] = true
			}
		}
	}
	return uids
}

// machines says that the object is one that the operator writes the status of.
func machines(object client.Object) bool {
	switch object.(type) {
	case *otv1alpha1.VirtualMachine, *otv1alpha1.VMDiskImage:
		return true
	}
	return false
}

// childrenOf are the names that children of virtual machines have.
func childrenOf(events []history.Event) map[string]bool {
	names := map[string]bool{}
	for _, e := range events {
		if vm, ok := history.As[*otv1alpha1.VirtualMachine](e); ok {
			names[vm.Namespace+"/"+vm.Name] = true
			names[vm.Namespace+"/"+otv1alpha1.VirtualMachineChild(vm)] = true
		}
	}
	return names
}

// ForeignToMachines is Foreign of the vm-operator: no object carries its mark that no virtual machine controls.
func ForeignToMachines(_ Settings, events []history.Event) []Violation {
	f := &found{invariant: "I9"}
	for _, e := range events {
		if e.Object == nil || machines(e.Object) || machineOf(e.Object) != "" || e.Resource == "leases" {
			continue
		}
		if markedBy(e.Object, machineManager) && (e.Prev == nil || !markedBy(e.Prev, machineManager)) {
			f.add(e, "the vm-operator has written it, and no virtual machine controls it")
		}
	}
	return f.list
}
