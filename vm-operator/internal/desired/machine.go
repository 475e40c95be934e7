package desired

import (
	"fmt"
	"maps"
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	rootDisk      = "rootdisk"
	cloudInitDisk = "cloudinitdisk"
)

var (
	defaultCPU    = resource.MustParse("1")
	defaultMemory = resource.MustParse("1Gi")
)

// Machine is KubeVirt's VirtualMachine with the fields that we have an opinion on, and no other: KubeVirt and its
// administrators keep theirs. The fingerprint of its cloud-init Secret goes to the machine itself, not to its template: KubeVirt
// has nothing to restart for it. So is terminationGracePeriodSeconds left out: what a pod gets, a guest gets.
func Machine(vm *v1alpha1.VirtualMachine, cloudInit string) (*unstructured.Unstructured, error) {
	domain, err := domainOf(vm)
	if err != nil {
		return nil, err
	}
	template := map[string]any{"domain": domain, "volumes": volumes(vm)}
	if all := networks(vm); len(all) > 0 {
		template["networks"] = all
	}
	if name := hostname(vm); name != vm.Name {
		template["hostname"] = name
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubevirt.io/v1",
		"kind":       "VirtualMachine",
		"spec": map[string]any{
			"runStrategy": string(vm.WantedStrategy()),
			"template": map[string]any{
				"metadata": map[string]any{"labels": templateLabels(vm)},
				"spec":     template,
			},
		},
	}}
	describe(object, vm, cloudInit)
	return object, nil
}

func describe(object *unstructured.Unstructured, vm *v1alpha1.VirtualMachine, cloudInit string) {
	meta := owned(vm, vm.Name)
	object.SetName(meta.Name)
	object.SetNamespace(meta.Namespace)
	object.SetLabels(meta.Labels)
	object.SetOwnerReferences(meta.OwnerReferences)
	annotations := map[string]string{}
	for name, value := range map[string]string{
		v1alpha1.AnnotationBaseVM:        vm.Spec.BaseVM,
		v1alpha1.AnnotationBaseVMVersion: vm.Spec.BaseVMVersion,
		v1alpha1.AnnotationVersion:       vm.Spec.Version,
		v1alpha1.AnnotationCloudInit:     cloudInit,
	} {
		if value != "" {
			annotations[name] = value
		}
	}
	if len(annotations) > 0 {
		object.SetAnnotations(annotations)
	}
}

// templateLabels are those of the launcher pod, by which policies select it: the virtual machine's own, and ours. KubeVirt
// refuses labels of its own domain.
func templateLabels(vm *v1alpha1.VirtualMachine) map[string]any {
	labels := maps.Clone(vm.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return isKubeVirts(key) })
	all := map[string]any{}
	for _, from := range []map[string]string{labels, labelsOf(vm)} {
		for key, value := range from {
			all[key] = value
		}
	}
	return all
}

func isKubeVirts(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == "kubevirt.io" || strings.HasSuffix(domain, ".kubevirt.io")
}

func domainOf(vm *v1alpha1.VirtualMachine) (map[string]any, error) {
	cpu, err := positive("cpu", vm.Spec.Resources.CPU, defaultCPU)
	if err != nil {
		return nil, err
	}
	memory, err := positive("memory", vm.Spec.Resources.Memory, defaultMemory)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"cpu":       map[string]any{"cores": cpu.Value()}, // rounded up
		"memory":    map[string]any{"guest": memory.String()},
		"resources": map[string]any{"requests": map[string]any{"cpu": cpu.String()}},
		"firmware":  firmware(vm),
		"devices":   devices(vm),
	}, nil
}

// positive is the quantity that is asked for. KubeVirt takes one of 0 or less, and starts a guest that cannot run.
func positive(name string, asked *resource.Quantity, otherwise resource.Quantity) (resource.Quantity, error) {
	if asked == nil {
		return otherwise.DeepCopy(), nil
	}
	if asked.Sign() <= 0 {
		return resource.Quantity{}, fmt.Errorf("resources.%s must be more than 0", name)
	}
	return asked.DeepCopy(), nil
}

// devices include a source of randomness, which a guest needs to make its SSH keys at the first start.
func devices(vm *v1alpha1.VirtualMachine) map[string]any {
	all := map[string]any{
		"disks": []any{
			map[string]any{"name": rootDisk, "bootOrder": int64(1), "disk": map[string]any{"bus": "virtio"}},
			map[string]any{"name": cloudInitDisk, "disk": map[string]any{"bus": "virtio"}},
		},
		"rng": map[string]any{},
	}
	// KubeVirt takes an empty list away, and the next apply would put it back.
	if nics := interfaces(vm); len(nics) > 0 {
		all["interfaces"] = nics
	}
	if !vm.HasPodNetwork() {
		all["autoattachPodInterface"] = false // KubeVirt's default, where there is no other interface
	}
	return all
}

func interfaces(vm *v1alpha1.VirtualMachine) []any {
	var all []any
	for _, n := range nics(vm) {
		binding := "bridge"
		if n.spec == nil {
			binding = "masquerade"
		}
		all = append(all, map[string]any{"name": n.name, "macAddress": n.mac, binding: map[string]any{}})
	}
	return all
}

func networks(vm *v1alpha1.VirtualMachine) []any {
	var all []any
	for _, n := range nics(vm) {
		if n.spec == nil {
			all = append(all, map[string]any{"name": n.name, "pod": map[string]any{}})
		} else {
			all = append(all, map[string]any{"name": n.name, "multus": map[string]any{"networkName": n.spec.Network}})
		}
	}
	return all
}

// volumes name user data and network data each by itself: KubeVirt looks for the latter only where it is told.
func volumes(vm *v1alpha1.VirtualMachine) []any {
	child := func() map[string]any { return map[string]any{"name": v1alpha1.VirtualMachineChild(vm)} }
	return []any{
		map[string]any{"name": rootDisk, "dataVolume": child()},
		map[string]any{"name": cloudInitDisk, "cloudInitNoCloud": map[string]any{
			"secretRef": child(), "networkDataSecretRef": child(),
		}},
	}
}
