package desired

import (
	"encoding/json"
	"fmt"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	otac "github.com/pelotech/open-terrain/apis/ot/v1alpha1/applyconfiguration/ot/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// VirtualMachines are those of the workspace, one for each entry, in the order of the spec.
func VirtualMachines(w *v1alpha1.Workspace, s Settings) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for i := range w.Spec.VirtualMachines {
		all = append(all, virtualMachine(w, &w.Spec.VirtualMachines[i], s))
	}
	return all
}

// virtualMachine is one of them. The vm-operator passes its labels on to the launcher pod, where policies and Services find them.
//
// The guest is called as its entry: the object has another name in a namespace that others use, too.
func virtualMachine(w *v1alpha1.Workspace, entry *v1alpha1.WorkspaceVirtualMachine, s Settings) *unstructured.Unstructured {
	spec := v1alpha1.VirtualMachineSpec{MachineSpec: *entry.Spec.MachineSpec.DeepCopy(), VMDiskImageRef: entry.Image(s.ImageNamespace)}
	name := v1alpha1.WorkspaceChild(w, entry.Name)
	if spec.Name == "" && name != entry.Name {
		spec.Name = entry.Name
	}
	shared(w, &spec)
	return sealed(otac.VirtualMachine(name, w.ChildNamespace()).
		WithLabels(entryLabels(w, entry.Name)).
		WithOwnerReferences(owner(w)).
		WithSpec(applied(spec)))
}

// shared has an image that a template makes admit all workspaces' own namespaces, unless the template says whom it admits. Who made
// it first would be the only one to use it otherwise, and the next workspace of the same manifest would wait for ever. Whether an
// author may use it is asked of him besides (author check).
func shared(w *v1alpha1.Workspace, spec *v1alpha1.VirtualMachineSpec) {
	template := spec.VMDiskImageTemplate
	if template == nil || template.AllowedNamespaces != nil || !w.OwnsNamespace() || spec.VMDiskImageRef.Namespace == w.ChildNamespace() {
		return
	}
	template.AllowedNamespaces = &v1alpha1.AllowedNamespaces{
		From: v1alpha1.NamespacesFromSelector,
		Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: v1alpha1.LabelWorkspaceUID, Operator: metav1.LabelSelectorOpExists},
		}},
	}
}

// applied is a spec with the fields that are set, and no others.
func applied(spec v1alpha1.VirtualMachineSpec) *otac.VirtualMachineSpecApplyConfiguration {
	raw, err := json.Marshal(spec)
	if err != nil {
		panic(fmt.Errorf("write a spec: %w", err)) // texts, numbers and quantities: cannot fail
	}
	configuration := otac.VirtualMachineSpec()
	if err := json.Unmarshal(raw, configuration); err != nil {
		panic(fmt.Errorf("read a spec: %w", err)) // both are made of the same types
	}
	if spec.Resources == (v1alpha1.VirtualMachineResources{}) {
		configuration.Resources = nil // which JSON writes all the same
	}
	return configuration
}
