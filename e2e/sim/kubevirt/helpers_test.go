package kubevirt_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "kv-"}}
	require.NoError(t, cl.Create(t.Context(), ns))
	return ns.Name
}

// disk is a DataVolume that succeeds by itself.
func disk(ns, name string) *cdiv1.DataVolume {
	return &cdiv1.DataVolume{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: cdiv1.DataVolumeSpec{
			Source:  &cdiv1.DataVolumeSource{Blank: &cdiv1.DataVolumeBlankImage{}},
			Storage: &cdiv1.StorageSpec{Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Mi")}}},
		},
	}
}

// machine is what an operator applies: a disk and cloud-init of the same name, and the pod network.
func machine(ns, name string, mods ...func(*virtv1.VirtualMachine)) *virtv1.VirtualMachine {
	vm := &virtv1.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: virtv1.VirtualMachineSpec{
			RunStrategy: new(virtv1.RunStrategyAlways),
			Template: &virtv1.VirtualMachineInstanceTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"example.com/is": name}},
				Spec: virtv1.VirtualMachineInstanceSpec{
					Domain: virtv1.DomainSpec{
						CPU: &virtv1.CPU{Cores: 1}, Memory: &virtv1.Memory{Guest: new(resource.MustParse("256Mi"))},
						Devices: virtv1.Devices{
							Disks:      []virtv1.Disk{{Name: "root", DiskDevice: virtv1.DiskDevice{Disk: &virtv1.DiskTarget{Bus: virtv1.DiskBusVirtio}}}},
							Interfaces: []virtv1.Interface{{Name: "default", InterfaceBindingMethod: virtv1.InterfaceBindingMethod{Masquerade: &virtv1.InterfaceMasquerade{}}}},
						},
					},
					Networks: []virtv1.Network{*virtv1.DefaultPodNetwork()},
					Volumes:  []virtv1.Volume{{Name: "root", VolumeSource: virtv1.VolumeSource{DataVolume: &virtv1.DataVolumeSource{Name: name}}}},
				},
			},
		},
	}
	for _, mod := range mods {
		mod(vm)
	}
	return vm
}

func strategy(s virtv1.VirtualMachineRunStrategy) func(*virtv1.VirtualMachine) {
	return func(vm *virtv1.VirtualMachine) { vm.Spec.RunStrategy = &s }
}

func cloudInit(secret string) func(*virtv1.VirtualMachine) {
	return func(vm *virtv1.VirtualMachine) {
		spec := &vm.Spec.Template.Spec
		ref := &corev1.LocalObjectReference{Name: secret}
		spec.Domain.Devices.Disks = append(spec.Domain.Devices.Disks, virtv1.Disk{Name: "cloudinit", DiskDevice: virtv1.DiskDevice{Disk: &virtv1.DiskTarget{Bus: virtv1.DiskBusVirtio}}})
		spec.Volumes = append(spec.Volumes, virtv1.Volume{Name: "cloudinit", VolumeSource: virtv1.VolumeSource{
			CloudInitNoCloud: &virtv1.CloudInitNoCloudSource{UserDataSecretRef: ref, NetworkDataSecretRef: ref},
		}})
	}
}

func multus(name, attachment, mac string) func(*virtv1.VirtualMachine) {
	return func(vm *virtv1.VirtualMachine) {
		spec := &vm.Spec.Template.Spec
		spec.Networks = append(spec.Networks, virtv1.Network{Name: name, NetworkSource: virtv1.NetworkSource{Multus: &virtv1.MultusNetwork{NetworkName: attachment}}})
		spec.Domain.Devices.Interfaces = append(spec.Domain.Devices.Interfaces, virtv1.Interface{
			Name: name, MacAddress: mac, InterfaceBindingMethod: virtv1.InterfaceBindingMethod{Bridge: &virtv1.InterfaceBridge{}},
		})
	}
}

func attachment(t *testing.T, ns, name string) {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "spec": map[string]any{"config": `{"type":"bridge"}`},
	}}
	o.SetNamespace(ns)
	o.SetName(name)
	require.NoError(t, cl.Create(t.Context(), o))
}

// cloned creates a disk and waits for it.
func cloned(t *testing.T, ns, name string) {
	t.Helper()
	dv := disk(ns, name)
	require.NoError(t, cl.Create(t.Context(), dv))
	require.Eventually(t, func() bool {
		require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(dv), dv))
		return dv.Status.Phase == cdiv1.Succeeded
	}, patience, 10*time.Millisecond)
}

// story follows a VirtualMachine from its creation. It ends with the test.
type story struct {
	versions <-chan *virtv1.VirtualMachine
	// states are those that were seen, each once in a row.
	states []string
	shown  string
	last   *virtv1.VirtualMachine
}

func follow(t *testing.T, vm *virtv1.VirtualMachine) *story {
	t.Helper()
	require.NoError(t, cl.Create(t.Context(), vm))
	ctx, cancel := context.WithCancel(context.Background())
	events, err := cl.Watch(ctx, &virtv1.VirtualMachineList{}, client.InNamespace(vm.Namespace), client.MatchingFields{"metadata.name": vm.Name},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: vm.ResourceVersion}})
	require.NoError(t, err)
	versions := make(chan *virtv1.VirtualMachine, 1000)
	go func() {
		for event := range events.ResultChan() {
			if version, is := event.Object.(*virtv1.VirtualMachine); is {
				versions <- version
			}
		}
		close(versions)
	}()
	t.Cleanup(func() { cancel(); events.Stop() })
	return &story{versions: versions, last: vm}
}

// until returns when a version is as wanted.
func (s *story) until(t *testing.T, what string, holds func(*virtv1.VirtualMachine) bool) *virtv1.VirtualMachine {
	t.Helper()
	deadline := time.After(patience)
	for !holds(s.last) {
		select {
		case version := <-s.versions:
			s.last = version
			if state := string(version.Status.PrintableStatus); state != s.shown {
				s.states, s.shown = append(s.states, state), state
			}
		case <-deadline:
			require.Fail(t, "it is not "+what, "%v\n%s", s.states, conditions(s.last))
		}
	}
	return s.last
}

func (s *story) becomes(t *testing.T, state virtv1.VirtualMachinePrintableStatus) *virtv1.VirtualMachine {
	t.Helper()
	return s.until(t, string(state), func(vm *virtv1.VirtualMachine) bool { return vm.Status.PrintableStatus == state })
}

// saw compares the states so far, and begins anew.
func (s *story) saw(t *testing.T, want ...virtv1.VirtualMachinePrintableStatus) {
	t.Helper()
	var states []string
	for _, state := range want {
		states = append(states, string(state))
	}
	assert.Equal(t, states, s.states)
	s.states = nil
}

func condition(vm *virtv1.VirtualMachine, kind string) virtv1.VirtualMachineCondition {
	i := slices.IndexFunc(vm.Status.Conditions, func(c virtv1.VirtualMachineCondition) bool { return string(c.Type) == kind })
	if i < 0 {
		return virtv1.VirtualMachineCondition{}
	}
	return vm.Status.Conditions[i]
}

// says is a condition in one line.
func says(vm *virtv1.VirtualMachine, kind string) string {
	c := condition(vm, kind)
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message))
}

func conditions(vm *virtv1.VirtualMachine) string {
	var lines []string
	for _, c := range vm.Status.Conditions {
		lines = append(lines, string(c.Type)+"="+says(vm, string(c.Type)))
	}
	return strings.Join(lines, "\n")
}

// change writes a change of the spec, again if somebody else writes at the same time.
func change(t *testing.T, vm *virtv1.VirtualMachine, mods ...func(*virtv1.VirtualMachine)) {
	t.Helper()
	require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(vm), vm))
	before := vm.DeepCopy()
	for _, mod := range mods {
		mod(vm)
	}
	require.NoError(t, cl.Patch(t.Context(), vm, client.MergeFrom(before)))
}

func gone(t *testing.T, o client.Object) {
	t.Helper()
	require.Eventually(t, func() bool {
		return apierrors.IsNotFound(cl.Get(context.Background(), client.ObjectKeyFromObject(o), o))
	}, patience, 10*time.Millisecond, "%T %s goes", o, o.GetName())
}

func launchers(t *testing.T, ns string) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	require.NoError(t, cl.List(t.Context(), &pods, client.InNamespace(ns), client.MatchingLabels{"kubevirt.io": "virt-launcher"}))
	return pods.Items
}
