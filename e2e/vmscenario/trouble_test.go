package vmscenario

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/sim/kubevirt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func memory(size string) func(*v1alpha1.VirtualMachine) {
	return func(vm *v1alpha1.VirtualMachine) { vm.Spec.Resources.Memory = new(resource.MustParse(size)) }
}

// unschedulable is told when it lasts, not before.
func unschedulable(t *testing.T, w *world) {
	namespace := w.namespace(t)
	vm := w.create(t, machine(namespace, "web", w.synced(t, namespace, "golden"), memory("8Ti")))
	w.await(t, vm, "in trouble", func(vm *v1alpha1.VirtualMachine) bool { return vm.Status.TroubledSince != nil })
	began := vm.Status.TroubledSince.Time
	w.becomes(t, vm, v1alpha1.VirtualMachineFailed, v1alpha1.ReasonUnschedulable)
	assert.GreaterOrEqual(t, time.Since(began), w.debounce)
	assert.Contains(t, vm.Status.Message, "0/1 nodes are available: 1 Insufficient memory")
	w.told(t, vm, map[string]int{"Unschedulable": 1})
	waiting := w.instanceOf(t, vm)
	w.change(t, vm, memory("64Mi"))
	w.runs(t, vm) // KubeVirt alone would keep the instance as it was
	assert.NotEqual(t, waiting.UID, w.instanceOf(t, vm).UID)
	assert.Nil(t, vm.Status.TroubledSince)

	w.change(t, vm, memory("8Ti"), strategy(v1alpha1.RunHalted))
	w.becomes(t, vm, v1alpha1.VirtualMachineReady, v1alpha1.ReasonNotStarted)
	w.change(t, vm, strategy(v1alpha1.RunAlways))
	w.becomes(t, vm, v1alpha1.VirtualMachineFailed, v1alpha1.ReasonUnschedulable)
	w.change(t, vm, memory("64Mi"), strategy(v1alpha1.RunHalted))
	w.becomes(t, vm, v1alpha1.VirtualMachineReady, v1alpha1.ReasonNotStarted)
	w.change(t, vm, strategy(v1alpha1.RunAlways))
	w.runs(t, vm)
	assert.Nil(t, vm.Status.TroubledSince)
}

func crashLoop(t *testing.T, w *world) {
	namespace := w.namespace(t)
	vm := machine(namespace, "web", w.synced(t, namespace, "golden"))
	w.behave.guest(t, vm, kubevirt.Behaviour{CrashLoop: true})
	w.create(t, vm)
	w.becomes(t, vm, v1alpha1.VirtualMachineFailed, v1alpha1.ReasonCrashLooping)
	w.behave.guest(t, vm, kubevirt.Behaviour{})
	w.runs(t, vm)
	w.told(t, vm, map[string]int{"CrashLooping": 1, "Ready": 1})
}

func neverRuns(t *testing.T, w *world) {
	namespace := w.namespace(t)
	vm := machine(namespace, "web", w.synced(t, namespace, "golden"), func(vm *v1alpha1.VirtualMachine) {
		vm.Spec.ProvisioningTimeout = &metav1.Duration{Duration: 5 * time.Second}
	})
	w.behave.guest(t, vm, kubevirt.Behaviour{NeverRuns: true})
	w.create(t, vm)
	w.becomes(t, vm, v1alpha1.VirtualMachineFailed, v1alpha1.ReasonProvisioningTimeout)
	w.await(t, vm, "told what it waits for", func(vm *v1alpha1.VirtualMachine) bool {
		return containsAll(vm.Status.Message, "Not ready by", "KubeVirt starts the guest")
	})
	w.behave.guest(t, vm, kubevirt.Behaviour{})
	w.runs(t, vm)
}

// phases notes those that a virtual machine shows, each once in a row.
func (w *world) phases(t *testing.T, vm *v1alpha1.VirtualMachine) func() []v1alpha1.VirtualMachinePhase {
	t.Helper()
	changes, err := w.client.Watch(t.Context(), &v1alpha1.VirtualMachineList{}, client.InNamespace(vm.Namespace), client.MatchingFields{"metadata.name": vm.Name})
	require.NoError(t, err)
	var mu sync.Mutex
	var seen []v1alpha1.VirtualMachinePhase
	go func() {
		for event := range changes.ResultChan() {
			version, is := event.Object.(*v1alpha1.VirtualMachine)
			mu.Lock()
			if is && version.Status.Phase != "" && (len(seen) == 0 || seen[len(seen)-1] != version.Status.Phase) {
				seen = append(seen, version.Status.Phase)
			}
			mu.Unlock()
		}
	}()
	t.Cleanup(changes.Stop)
	return func() []v1alpha1.VirtualMachinePhase {
		mu.Lock()
		defer mu.Unlock()
		return append([]v1alpha1.VirtualMachinePhase(nil), seen...)
	}
}

// flapping goes on for longer than any one trouble may last.
func flapping(t *testing.T, w *world) {
	namespace := w.namespace(t)
	vm := machine(namespace, "web", w.synced(t, namespace, "golden"))
	w.behave.guest(t, vm, kubevirt.Behaviour{
		NeverRuns: true, FlapEvery: 200 * time.Millisecond,
		Flap: []virtv1.VirtualMachinePrintableStatus{virtv1.VirtualMachineStatusDataVolumeError, virtv1.VirtualMachineStatusProvisioning},
	})
	phases := w.phases(t, vm)
	w.create(t, vm)
	w.await(t, vm, "in trouble", func(vm *v1alpha1.VirtualMachine) bool { return vm.Status.TroubledSince != nil })
	time.Sleep(3 * w.debounce)
	w.behave.guest(t, vm, kubevirt.Behaviour{})
	w.runs(t, vm)
	require.Eventually(t, func() bool { return len(phases()) > 1 }, w.patience, w.poll)
	assert.Equal(t, []v1alpha1.VirtualMachinePhase{v1alpha1.VirtualMachineProvisioning, v1alpha1.VirtualMachineReady}, phases())
	w.told(t, vm, map[string]int{"Ready": 1})
}

func onNetwork(network, address string) func(*v1alpha1.VirtualMachine) {
	return func(vm *v1alpha1.VirtualMachine) {
		vm.Spec.Interfaces = append(vm.Spec.Interfaces, v1alpha1.VirtualMachineInterface{Network: network, IPAddress: address})
	}
}

func (w *world) network(t *testing.T, namespace, name string) {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "spec": map[string]any{"config": `{"cniVersion":"0.3.1","type":"bridge"}`},
	}}
	o.SetNamespace(namespace)
	o.SetName(name)
	require.NoError(t, w.client.Create(t.Context(), o))
}

func networkMissing(t *testing.T, w *world) {
	namespace := w.namespace(t)
	vm := w.create(t, machine(namespace, "web", w.synced(t, namespace, "golden"), onNetwork("lan", "10.10.0.161/24")))
	w.becomes(t, vm, v1alpha1.VirtualMachineFailed, v1alpha1.ReasonNetworkMissing)
	assert.Contains(t, vm.Status.Message, namespace+"/lan")
	w.network(t, namespace, "lan")
	w.runs(t, vm)
}

// addresses: those of the spec are there from the beginning, the others when they are reported.
func addresses(t *testing.T, w *world) {
	namespace := w.namespace(t)
	w.network(t, namespace, "lan")
	w.network(t, namespace, "dhcp")
	vm := machine(namespace, "web", w.synced(t, namespace, "golden"), onNetwork("lan", "10.10.0.161/24"), onNetwork("dhcp", ""))
	w.create(t, vm)
	w.runs(t, vm)
	vmi := w.instanceOf(t, vm)
	require.Len(t, vmi.Spec.Networks, 3)
	assert.Equal(t, vmi.Status.Interfaces[0].IP+", 10.10.0.161", vm.Status.Addresses)
	for i, has := range vm.Status.Interfaces {
		assert.Equal(t, vmi.Spec.Domain.Devices.Interfaces[i].MacAddress, has.MACAddress)
		assert.NotEmpty(t, has.MACAddress)
	}
	w.behave.guest(t, vm, kubevirt.Behaviour{Addresses: map[string]string{vmi.Spec.Networks[1].Name: "10.10.0.161", vmi.Spec.Networks[2].Name: "192.168.7.20"}})
	w.await(t, vm, "told its address", func(vm *v1alpha1.VirtualMachine) bool {
		return vm.Status.Addresses == vmi.Status.Interfaces[0].IP+", 10.10.0.161, 192.168.7.20"
	})
	w.runs(t, vm)
}

// virtAPIAway for longer than one try takes; nobody can write a machine of KubeVirt meanwhile.
func virtAPIAway(t *testing.T, w *world) {
	if w.real {
		t.Skip("nobody's KubeVirt is taken away")
	}
	namespace := w.namespace(t)
	i := w.synced(t, namespace, "golden")
	w.simulated.KubeVirt.SetAway(true)
	defer w.simulated.KubeVirt.SetAway(false)
	vm := w.create(t, machine(namespace, "web", i))
	dv := &cdiv1.DataVolume{}
	require.Eventually(t, func() bool {
		return w.client.Get(t.Context(), childOf(vm), dv) == nil && dv.Status.Phase == cdiv1.Succeeded
	}, w.patience, w.poll, "it has its disk")
	assert.Eventually(t, func() bool {
		return w.client.Get(t.Context(), client.ObjectKeyFromObject(vm), vm) == nil &&
			strings.Contains(vm.Status.Message, "The last try failed, and is repeated: apply the machine: ")
	}, w.patience, w.poll, "status tells what is tried: %s", &vm.Status.Message)
	assert.Equal(t, v1alpha1.VirtualMachineProvisioning, vm.Status.Phase)
	w.simulated.KubeVirt.SetAway(false)
	w.runs(t, vm)
}
