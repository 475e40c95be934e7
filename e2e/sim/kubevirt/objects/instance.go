package objects

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"
)

// Instance is that of a VirtualMachine: its template, and what KubeVirt puts in.
func Instance(vm *virtv1.VirtualMachine) *virtv1.VirtualMachineInstance {
	labels, annotations := map[string]string{}, map[string]string{}
	maps.Copy(labels, vm.Spec.Template.ObjectMeta.Labels)
	maps.Copy(annotations, vm.Spec.Template.ObjectMeta.Annotations)
	labels[LabelID] = vm.Name
	annotations[AnnGeneration] = strconv.FormatInt(vm.Generation, 10)
	return &virtv1.VirtualMachineInstance{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: vm.Namespace, Name: vm.Name, Labels: labels, Annotations: annotations, Finalizers: []string{FinalizerInstance},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(vm, virtv1.VirtualMachineGroupVersionKind)},
		},
		Spec: instanceSpec(vm),
	}
}

func instanceSpec(vm *virtv1.VirtualMachine) virtv1.VirtualMachineInstanceSpec {
	spec := *vm.Spec.Template.Spec.DeepCopy()
	if spec.Domain.CPU == nil {
		spec.Domain.CPU = &virtv1.CPU{}
	}
	if spec.Domain.CPU.Model == "" {
		spec.Domain.CPU.Model = virtv1.CPUModeHostModel
	}
	if spec.Domain.Features == nil {
		spec.Domain.Features = &virtv1.Features{}
	}
	spec.Domain.Features.ACPI.Enabled = new(true)
	if spec.EvictionStrategy == nil {
		spec.EvictionStrategy = new(virtv1.EvictionStrategyNone)
	}
	return spec
}

// Refusal is why admission refuses the instance of a VirtualMachine that it has accepted; empty if it does not.
func Refusal(vm *virtv1.VirtualMachine) string {
	domain := vm.Spec.Template.Spec.Domain
	requested := domain.Resources.Requests.Memory().Sign() != 0 || domain.Resources.Limits.Memory().Sign() != 0
	if domain.Memory != nil && (domain.Memory.Guest != nil || domain.Memory.Hugepages != nil) || requested {
		return ""
	}
	return `admission webhook "virtualmachineinstances-create-validator.kubevirt.io" denied the request: no memory requested, ` +
		`at least one of 'spec.domain.memory.guest', 'spec.domain.memory.hugepages.size' or 'spec.domain.resources.requests.memory' must be set`
}

const (
	memoryChanged = "memory updated in template spec. Memory-hotplug is only available for migratable VMs"
	otherChanged  = "a non-live-updatable field was changed in the template spec"
)

// RestartRequired says why a guest that runs has to be restarted to be as its template; empty if it need not.
func RestartRequired(vm *virtv1.VirtualMachine, vmi *virtv1.VirtualMachineInstance) string {
	if vmi.IsFinal() {
		return ""
	}
	wanted, has := instanceSpec(vm), *vmi.Spec.DeepCopy()
	message := ""
	if !equality.Semantic.DeepEqual(wanted.Domain.Memory, has.Domain.Memory) {
		wanted.Domain.Memory, has.Domain.Memory = nil, nil
		message = memoryChanged
	}
	plug(&has, wanted)
	if !equality.Semantic.DeepEqual(wanted, has) {
		message = otherChanged
	}
	return message
}

// Hotplug is the spec of an instance that has got the new interfaces of its template, and whether there were any.
func Hotplug(vm *virtv1.VirtualMachine, vmi *virtv1.VirtualMachineInstance) (virtv1.VirtualMachineInstanceSpec, bool) {
	next := *vmi.Spec.DeepCopy()
	return next, plug(&next, instanceSpec(vm))
}

// plug adds the interfaces and networks that are new in wanted.
func plug(has *virtv1.VirtualMachineInstanceSpec, wanted virtv1.VirtualMachineInstanceSpec) bool {
	plugged := false
	for _, network := range wanted.Networks {
		there := slices.ContainsFunc(has.Networks, func(n virtv1.Network) bool { return n.Name == network.Name })
		i := slices.IndexFunc(wanted.Domain.Devices.Interfaces, func(i virtv1.Interface) bool { return i.Name == network.Name })
		if there || network.Multus == nil || i < 0 {
			continue
		}
		has.Networks = append(has.Networks, network)
		has.Domain.Devices.Interfaces = append(has.Domain.Devices.Interfaces, wanted.Domain.Devices.Interfaces[i])
		plugged = true
	}
	return plugged
}

// IsCurrent is true of an instance that is as the VirtualMachine's template, labels included.
func IsCurrent(vm *virtv1.VirtualMachine, vmi *virtv1.VirtualMachineInstance) bool {
	for key, value := range vm.Spec.Template.ObjectMeta.Labels {
		if vmi.Labels[key] != value {
			return false
		}
	}
	return equality.Semantic.DeepEqual(instanceSpec(vm), vmi.Spec)
}
