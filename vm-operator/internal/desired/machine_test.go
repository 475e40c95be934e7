package desired_test

import (
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/desired"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubevirtv1 "kubevirt.io/api/core/v1"
)

func machineOf(t *testing.T, vm *v1alpha1.VirtualMachine) *unstructured.Unstructured {
	t.Helper()
	machine, err := desired.Machine(vm, "")
	require.NoError(t, err)
	return machine
}

// typed reads the machine as KubeVirt does: a field that KubeVirt does not know is an error.
func typed(t *testing.T, vm *v1alpha1.VirtualMachine) *kubevirtv1.VirtualMachine {
	t.Helper()
	out := &kubevirtv1.VirtualMachine{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(machineOf(t, vm).Object, out, true))
	return out
}

func TestMachineHasFieldsOfKubeVirtOnly(t *testing.T) {
	for _, vm := range []*v1alpha1.VirtualMachine{guest(), guest(everything), guest(withoutPodNetwork), proposal(t)} {
		machine := typed(t, vm)
		spec := machine.Spec.Template.Spec
		assert.Equal(t, "0f6c2b1e-1111-4222-8333-abcdef012345", string(spec.Domain.Firmware.UUID))
		assert.Equal(t, string(spec.Domain.Firmware.UUID), spec.Domain.Firmware.Serial)
		assert.Equal(t, v1alpha1.VirtualMachineChild(vm), spec.Volumes[0].DataVolume.Name)
		assert.Equal(t, v1alpha1.VirtualMachineChild(vm), spec.Volumes[1].CloudInitNoCloud.UserDataSecretRef.Name)
		assert.Equal(t, v1alpha1.VirtualMachineChild(vm), spec.Volumes[1].CloudInitNoCloud.NetworkDataSecretRef.Name)
		assert.Len(t, spec.Domain.Devices.Interfaces, len(spec.Networks))
		assert.Equal(t, vm.HasPodNetwork(), spec.Domain.Devices.AutoattachPodInterface == nil, "none comes by itself")
		assert.Nil(t, machineOf(t, vm).DeepCopy().Object["status"])
	}
}

func TestMachineSizes(t *testing.T) {
	cases := map[string]struct {
		cpu, memory, wantCPU, wantMemory string
		cores                            uint32
	}{
		"defaults":                   {"", "", "1", "1Gi", 1},
		"as given":                   {"2", "2Gi", "2", "2Gi", 2},
		"a fraction is rounded up":   {"1500m", "1Gi", "1500m", "1Gi", 2},
		"less than one core is one":  {"100m", "1Gi", "100m", "1Gi", 1},
		"written as KubeVirt stores": {"2000m", "1.5Gi", "2", "1536Mi", 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			domain := typed(t, guest(func(s *v1alpha1.VirtualMachineSpec) {
				s.Resources.CPU, s.Resources.Memory = quantity(c.cpu), quantity(c.memory)
			})).Spec.Template.Spec.Domain
			assert.Equal(t, c.cores, domain.CPU.Cores)
			assert.Equal(t, c.wantCPU, domain.Resources.Requests.Cpu().String())
			assert.Equal(t, c.wantMemory, domain.Memory.Guest.String())
		})
	}
	for want, mod := range map[string]mod{
		"resources.cpu must be more than 0":    func(s *v1alpha1.VirtualMachineSpec) { s.Resources.CPU = quantity("0") },
		"resources.memory must be more than 0": func(s *v1alpha1.VirtualMachineSpec) { s.Resources.Memory = quantity("-1Mi") },
	} {
		_, err := desired.Machine(guest(mod), "")
		assert.EqualError(t, err, want, "KubeVirt would take it")
	}
}

func TestMachineRunsAsAsked(t *testing.T) {
	cases := map[string]struct {
		strategy v1alpha1.RunStrategy
		ignore   bool
		want     kubevirtv1.VirtualMachineRunStrategy
	}{
		"by default always":      {"", false, "Always"},
		"as asked":               {v1alpha1.RunManual, false, "Manual"},
		"not at all when halted": {v1alpha1.RunHalted, false, "Halted"},
		"not on deploy":          {v1alpha1.RunAlways, true, "Halted"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			machine := typed(t, guest(func(s *v1alpha1.VirtualMachineSpec) { s.RunStrategy, s.IgnoreOnDeploy = c.strategy, c.ignore }))
			assert.Equal(t, c.want, *machine.Spec.RunStrategy)
		})
	}
}

func TestMachineNames(t *testing.T) {
	assert.Empty(t, typed(t, guest()).Spec.Template.Spec.Hostname, "KubeVirt takes the machine's")
	named := typed(t, guest(everything))
	assert.Equal(t, "demo-vm", named.Spec.Template.Spec.Hostname)
	assert.Equal(t, "web", named.Name)
	assert.Equal(t, map[string]string{
		v1alpha1.AnnotationBaseVM: "ubuntu_2004", v1alpha1.AnnotationBaseVMVersion: "2.1.2", v1alpha1.AnnotationVersion: "2.1.0",
	}, named.Annotations)
	assert.Nil(t, typed(t, guest()).Annotations)
}

func TestLauncherPodsHaveTheLabelsOfTheVirtualMachine(t *testing.T) {
	vm := guest()
	vm.Labels = map[string]string{
		"team": "a", "pelotech.ot/workspace": "w", v1alpha1.LabelVirtualMachine: "forged", "app.kubernetes.io/managed-by": "Helm",
		"kubevirt.io": "refused", "vm.kubevirt.io/name": "refused", "kubevirt.io/created-by": "refused", "notkubevirt.io/a": "kept",
	}
	machine := typed(t, vm)
	ours := map[string]string{
		v1alpha1.LabelVirtualMachine: "web", v1alpha1.LabelVirtualMachineUID: uid, "app.kubernetes.io/managed-by": "vm-operator",
	}
	assert.Equal(t, ours, machine.Labels)
	ours["team"], ours["pelotech.ot/workspace"], ours["notkubevirt.io/a"] = "a", "w", "kept"
	assert.Equal(t, ours, machine.Spec.Template.ObjectMeta.Labels)
}
