package kubevirt_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestRefusals(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	spec := func(mod func(*virtv1.VirtualMachineInstanceSpec)) func(*virtv1.VirtualMachine) {
		return func(vm *virtv1.VirtualMachine) { mod(&vm.Spec.Template.Spec) }
	}
	lan := func(mac string) func(*virtv1.VirtualMachine) { return multus("net1", "lan", mac) }
	secondInterface := func(name string) func(*virtv1.VirtualMachine) {
		return spec(func(s *virtv1.VirtualMachineInstanceSpec) {
			s.Domain.Devices.Interfaces = append(s.Domain.Devices.Interfaces, virtv1.Interface{Name: name, InterfaceBindingMethod: virtv1.InterfaceBindingMethod{Bridge: &virtv1.InterfaceBridge{}}})
		})
	}
	// T and I stand for what they stand for in the list of observations.
	for name, tc := range map[string]struct {
		mod  func(*virtv1.VirtualMachine)
		want string
	}{
		"MAC not a MAC":             {lan("zz:00:00:00:00:01"), `I.macAddress: interface I.name has malformed MAC address (zz:00:00:00:00:01).`},
		"MAC of 8 bytes":            {lan("52:54:00:00:00:00:00:01"), `I.macAddress: interface I.name has too long MAC address (52:54:00:00:00:00:00:01).`},
		"interface without network": {secondInterface("net1"), `I.name: I.name 'net1' not found.`},
		"network without interface": {spec(func(s *virtv1.VirtualMachineInstanceSpec) {
			s.Networks = append(s.Networks, virtv1.Network{Name: "net1", NetworkSource: virtv1.NetworkSource{Multus: &virtv1.MultusNetwork{NetworkName: "lan"}}})
		}), `T.networks[1].name: T.networks[1].name 'net1' not found.`},
		"two interfaces of one name": {secondInterface("default"), `I.name: Only one interface can be connected to one specific network`},
		"two networks of one name":   {multus("default", "lan", ""), `T.networks[1].name: Network with name "default" already exists, every network must have a unique name`},
		"interface name with a dot":  {multus("net.1", "lan", ""), `I.name: Network interface name can only contain alphabetical characters, numbers, dashes (-) or underscores (_)`},
		"masquerade on Multus": {func(vm *virtv1.VirtualMachine) {
			lan("")(vm)
			vm.Spec.Template.Spec.Domain.Devices.Interfaces[1].InterfaceBindingMethod = virtv1.InterfaceBindingMethod{Masquerade: &virtv1.InterfaceMasquerade{}}
		}, `I.name: Masquerade interface only implemented with pod network`},
		"two pod networks": {func(vm *virtv1.VirtualMachine) {
			lan("")(vm)
			vm.Spec.Template.Spec.Networks[1].NetworkSource = virtv1.NetworkSource{Pod: &virtv1.PodNetwork{}}
		}, `T.interfaces: more than one interface is connected to a pod network in T.interfaces`},
		"empty networkName": {multus("net1", "", ""), `T.networks[1]: CNI delegating plugin must have a networkName`},
		"disk without volume": {spec(func(s *virtv1.VirtualMachineInstanceSpec) {
			s.Domain.Devices.Disks = append(s.Domain.Devices.Disks, virtv1.Disk{Name: "x"})
		}), `T.domain.devices.disks[1].name: T.domain.devices.disks[1].Name 'x' not found.`},
		"duplicate volume name":   {spec(func(s *virtv1.VirtualMachineInstanceSpec) { s.Volumes = append(s.Volumes, s.Volumes[0]) }), `T.volumes[1].name: T.volumes[1] and T.volumes[0] must not have the same Name.`},
		"empty DataVolume name":   {spec(func(s *virtv1.VirtualMachineInstanceSpec) { s.Volumes[0].DataVolume.Name = "" }), `T.volumes[0].name: DataVolume 'name' must be set`},
		"volume without a source": {spec(func(s *virtv1.VirtualMachineInstanceSpec) { s.Volumes[0].VolumeSource = virtv1.VolumeSource{} }), `T.volumes[0]: T.volumes[0] must have exactly one source type set`},
		"bus nvme":                {spec(func(s *virtv1.VirtualMachineInstanceSpec) { s.Domain.Devices.Disks[0].Disk.Bus = "nvme" }), `T.domain.devices.disks[0].disk.bus: T.domain.devices.disks[0].disk.bus is set with an unrecognized bus nvme, must be one of: [virtio scsi sata usb]`},
		"userData and secretRef": {func(vm *virtv1.VirtualMachine) {
			cloudInit("s")(vm)
			vm.Spec.Template.Spec.Volumes[1].CloudInitNoCloud.UserData = "#cloud-config"
		}, `T.volumes[1].cloudInitNoCloud: T.volumes[1].cloudInitNoCloud must have only one userdatasource set.`},
		"userData over 2048 bytes": {func(vm *virtv1.VirtualMachine) {
			cloudInit("s")(vm)
			vm.Spec.Template.Spec.Volumes[1].CloudInitNoCloud = &virtv1.CloudInitNoCloudSource{UserData: strings.Repeat("a", 2049)}
		}, `userdata exceeds 2048 byte limit. Should use UserDataSecretRef for larger data.`},
		"requests.cpu over limits.cpu": {spec(func(s *virtv1.VirtualMachineInstanceSpec) {
			s.Domain.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
			s.Domain.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		}), `T.domain.resources.requests.cpu: T.domain.resources.requests.cpu '2' is greater than T.domain.resources.limits.cpu '1'`},
		"negative request": {spec(func(s *virtv1.VirtualMachineInstanceSpec) {
			s.Domain.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("-1")}
		}), `requests.cpu '-1': must be greater than or equal to 0.`},
		"no such runStrategy": {strategy("Sometimes"), `spec.runStrategy: Invalid RunStrategy (Sometimes)`},
		"no runStrategy":      {func(vm *virtv1.VirtualMachine) { vm.Spec.RunStrategy = nil }, `spec.running: RunStrategy must be specified`},
		"hostname with a dot": {spec(func(s *virtv1.VirtualMachineInstanceSpec) { s.Hostname = "a.b" }), `T.hostname: T.hostname does not conform to the kubernetes DNS_LABEL rules : `},
		"machine type":        {spec(func(s *virtv1.VirtualMachineInstanceSpec) { s.Domain.Machine = &virtv1.Machine{Type: "i440fx"} }), `T.domain.machine.type is not supported: i440fx (allowed values: [q35* pc-q35*])`},
		"reserved label":      {func(vm *virtv1.VirtualMachine) { vm.Spec.Template.ObjectMeta.Labels["kubevirt.io"] = "x" }, `spec.template.metadata.labels: creation of the following reserved kubevirt.io/ labels on a VMI object is prohibited`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vm := machine(ns, "vm", tc.mod)
			err := cl.Create(t.Context(), vm, client.DryRunAll)
			require.True(t, apierrors.IsInvalid(err), "%v", err)
			var causes []string
			for _, cause := range err.(apierrors.APIStatus).Status().Details.Causes { //nolint:forcetypeassert // it is one
				causes = append(causes, cause.Field+": "+cause.Message)
			}
			want := strings.NewReplacer("I.", "spec.template.spec.domain.devices.interfaces[1].", "T.", "spec.template.spec.").Replace(tc.want)
			assert.Contains(t, strings.Join(causes, "\n"), want)
		})
	}
}

func TestWhatIsAcceptedThoughWrong(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	for _, mac := range []string{"00:00:00:00:00:00", "01:00:5e:00:00:01", "525400000001", "52-54-00-00-00-01"} {
		assert.NoError(t, cl.Create(t.Context(), machine(ns, "vm", multus("net1", "lan", mac)), client.DryRunAll), mac)
	}
	long := machine(ns, strings.Repeat("n", 64), strategy(virtv1.RunStrategyHalted))
	assert.NoError(t, cl.Create(t.Context(), long, client.DryRunAll))
}

// applied is what an operator applies, by server-side apply.
func applied(t *testing.T, ns, spec string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte("apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: vm}\n"+spec), &o.Object))
	o.SetNamespace(ns)
	return o
}

const setSpec = `spec:
  runStrategy: Halted
  template:
    metadata: {labels: {a: b}}
    spec:
      domain:
        cpu: {cores: 1}
        memory: {guest: 1.5Gi}
        devices:
          disks: [{name: root, disk: {bus: virtio}}]
          interfaces: [{name: default, masquerade: {}}]
      networks: [{name: default, pod: {}}]
      volumes: [{name: root, dataVolume: {name: vm}}]
`

func apply(t *testing.T, o *unstructured.Unstructured, manager string) error {
	t.Helper()
	return cl.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner(manager), client.ForceOwnership)
}

func TestServerSideApply(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	set := applied(t, ns, setSpec)
	require.NoError(t, apply(t, set, "vm-operator"))
	vm := &virtv1.VirtualMachine{}
	read := func() *virtv1.VirtualMachine {
		require.NoError(t, cl.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "vm"}, vm))
		return vm
	}
	require.Eventually(t, func() bool { return condition(read(), "Ready").Type != "" }, patience, poll)
	template := vm.Spec.Template
	assert.Equal(t, "amd64", template.Spec.Architecture)
	assert.Equal(t, "q35", template.Spec.Domain.Machine.Type)
	assert.Equal(t, "v3", template.ObjectMeta.Annotations["kubevirt.io/pci-topology-version"])
	assert.NotEmpty(t, template.Spec.Domain.Firmware.UUID)
	assert.NotEmpty(t, template.Spec.Domain.Firmware.Serial)
	assert.Equal(t, "1536Mi", template.Spec.Domain.Memory.Guest.String())
	assert.EqualValues(t, 1, vm.Generation)

	before := vm.ResourceVersion
	require.NoError(t, apply(t, set, "vm-operator"))
	assert.Equal(t, before, read().ResourceVersion, "the same again changes nothing")
	for _, field := range vm.ManagedFields {
		if field.Manager != "vm-operator" {
			assert.NotContains(t, field.FieldsV1.GetRawString(), "f:spec", field.Manager)
		}
	}

	other := applied(t, ns, "spec: {template: {spec: {networks: [{name: lan, multus: {networkName: lan}}], domain: {devices: {interfaces: [{name: lan, bridge: {}}]}}}}}\n")
	require.NoError(t, apply(t, other, "somebody"))
	assert.Len(t, read().Spec.Template.Spec.Networks, 1, "a list has one owner")

	set = applied(t, ns, strings.Replace(setSpec, "cpu: {cores: 1}", "cpu: {cores: 1, colour: red}", 1))
	assert.ErrorContains(t, apply(t, set, "vm-operator"), ".spec.template.spec.domain.cpu.colour: field not declared in schema")
	set = applied(t, ns, strings.Replace(setSpec, "1.5Gi", "much", 1))
	assert.ErrorContains(t, apply(t, set, "vm-operator"), `admission webhook "virtualmachines-mutator.kubevirt.io" denied the request: quantities must match`)
	set = applied(t, ns, strings.Replace(setSpec, "cores: 1", "cores: -1", 1))
	assert.ErrorContains(t, apply(t, set, "vm-operator"), `admission webhook "virtualmachines-mutator.kubevirt.io" denied the request: json: cannot unmarshal number -1 into Go struct field`)
}

// TestVirtAPIIsAway is not told beside others: no VirtualMachine can be written meanwhile.
func TestVirtAPIIsAway(t *testing.T) {
	ns := namespace(t)
	sim.SetAway(true)
	err := cl.Create(t.Context(), machine(ns, "vm"))
	sim.SetAway(false)
	require.True(t, apierrors.IsInternalError(err), "%v", err)
	assert.ErrorContains(t, err, `Internal error occurred: failed calling webhook "virtualmachine-validator.kubevirt.io": failed to call webhook: `)
	require.NoError(t, cl.Create(t.Context(), machine(ns, "vm")))
	assert.Equal(t, metav1.StatusReasonInternalError, apierrors.ReasonForError(err))
}
