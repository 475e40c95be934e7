package kubevirt_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pelotech/open-terrain/e2e/sim/kubevirt"
)

// Short names of the states.
const (
	stopped       = virtv1.VirtualMachineStatusStopped
	starting      = virtv1.VirtualMachineStatusStarting
	running       = virtv1.VirtualMachineStatusRunning
	stopping      = virtv1.VirtualMachineStatusStopping
	terminating   = virtv1.VirtualMachineStatusTerminating
	provisioning  = virtv1.VirtualMachineStatusProvisioning
	unschedulable = virtv1.VirtualMachineStatusUnschedulable
	noClaim       = virtv1.VirtualMachineStatusPvcNotFound
	diskError     = virtv1.VirtualMachineStatusDataVolumeError
	crashLoop     = virtv1.VirtualMachineStatusCrashLoopBackOff
)

func TestAMachineRuns(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	attachment(t, ns, "lan")
	require.NoError(t, cl.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}}))
	cloned(t, ns, "web")
	vm := machine(ns, "web", cloudInit("web"), multus("net1", "lan", "52:54:00:00:00:02"))
	vm.Spec.Template.Spec.Networks[0].Name = "default"
	require.NoError(t, behave.guest(t.Context(), vm, kubevirt.Behaviour{Addresses: map[string]string{"net1": "10.10.0.161"}}))
	s := follow(t, vm)
	assert.Empty(t, vm.Status.PrintableStatus)
	var reasons []string
	s.until(t, "running", func(vm *virtv1.VirtualMachine) bool {
		if reason := condition(vm, "Ready").Reason; condition(vm, "Ready").Type != "" && (len(reasons) == 0 || reasons[len(reasons)-1] != reason) {
			reasons = append(reasons, reason)
		}
		return vm.Status.PrintableStatus == running
	})
	s.saw(t, stopped, starting, running)
	assert.Equal(t, []string{"VMINotExists", "VMIConditionMissing", "PodNotExists", "GuestNotRunning", ""}, reasons)
	assert.Equal(t, "True AllDVsReady All of the VMI's DVs are bound and ready", says(s.last, "DataVolumesReady"))
	assert.Equal(t, "DisksNotLiveMigratable", condition(s.last, "LiveMigratable").Reason)
	assert.Equal(t, corev1.ConditionTrue, condition(s.last, "AgentConnected").Status)
	assert.True(t, s.last.Status.Created)
	assert.True(t, s.last.Status.Ready)
	assert.Equal(t, []string{"kubevirt.io/virtualMachineControllerFinalize"}, s.last.Finalizers)
	assert.Equal(t, s.last.Generation, s.last.Status.ObservedGeneration)

	vmi := &virtv1.VirtualMachineInstance{}
	require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(vm), vmi))
	pod := launchers(t, ns)[0]
	require.Len(t, vmi.Status.Interfaces, 2)
	assert.Equal(t, pod.Status.PodIP, vmi.Status.Interfaces[0].IP)
	assert.Equal(t, "10.10.0.161", vmi.Status.Interfaces[1].IP)
	assert.Equal(t, "52:54:00:00:00:02", vmi.Status.Interfaces[1].MAC)
	assert.Equal(t, map[string]string{
		"example.com/is": "web", "kubevirt.io": "virt-launcher", "kubevirt.io/created-by": string(vmi.UID), "vm.kubevirt.io/name": "web", "vmi.kubevirt.io/id": "web",
	}, pod.Labels)
	assert.True(t, metav1.IsControlledBy(&pod, vmi))
	assert.Contains(t, pod.Annotations["k8s.v1.cni.cncf.io/networks"], `"mac":"52:54:00:00:00:02","name":"lan","namespace":"`+ns+`"`)
	sum := resource.Quantity{}
	for _, container := range pod.Spec.Containers {
		sum.Add(container.Resources.Requests[corev1.ResourceMemory])
	}
	assert.EqualValues(t, 584453824, sum.Value())
}

func TestAMachineIsStoppedStartedAndDeleted(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	cloned(t, ns, "web")
	vm := machine(ns, "web", strategy(virtv1.RunStrategyHalted))
	s := follow(t, vm)
	s.until(t, "looked at", func(vm *virtv1.VirtualMachine) bool { return condition(vm, "Ready").Reason == "VMINotExists" })
	s.saw(t, stopped)
	time.Sleep(100 * time.Millisecond)
	assert.Empty(t, launchers(t, ns))

	change(t, vm, strategy(virtv1.RunStrategyAlways))
	s.becomes(t, running)
	s.saw(t, starting, running)
	change(t, vm, strategy(virtv1.RunStrategyHalted))
	s.becomes(t, stopped)
	s.saw(t, stopping, stopped)
	assert.Equal(t, "False VMINotExists VMI does not exist", says(s.last, "Ready"))
	assert.NotEmpty(t, condition(s.last, "DataVolumesReady").Type, "conditions of an instance that is gone stay")
	assert.Empty(t, launchers(t, ns))

	change(t, vm, strategy(virtv1.RunStrategyAlways))
	s.becomes(t, running)
	require.NoError(t, cl.Delete(t.Context(), vm))
	s.becomes(t, terminating)
	gone(t, vm)
	gone(t, &virtv1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}})
	assert.Empty(t, launchers(t, ns))
	require.NoError(t, cl.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "web"}, &corev1.PersistentVolumeClaim{}), "the disk stays")
}

func TestAnInstanceThatIsTakenAwayIsMadeAgain(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	cloned(t, ns, "web")
	vm := machine(ns, "web")
	s := follow(t, vm)
	s.becomes(t, running)
	vmi := &virtv1.VirtualMachineInstance{}
	require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(vm), vmi))
	s.states = nil
	require.NoError(t, cl.Delete(t.Context(), vmi.DeepCopy()))
	s.becomes(t, crashLoop)
	require.NotNil(t, s.last.Status.StartFailure)
	assert.Equal(t, 1, s.last.Status.StartFailure.ConsecutiveFailCount)
	assert.Equal(t, vmi.UID, s.last.Status.StartFailure.LastFailedVMIUID)
	s.becomes(t, running)
	s.saw(t, stopping, crashLoop, starting, running)
	s.until(t, "rid of the failure", func(vm *virtv1.VirtualMachine) bool { return vm.Status.StartFailure == nil })
}

func TestChangesOfAMachineThatRuns(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	attachment(t, ns, "lan")
	cloned(t, ns, "web")
	vm := machine(ns, "web")
	s := follow(t, vm)
	s.becomes(t, running)
	memory := func(size string) func(*virtv1.VirtualMachine) {
		return func(vm *virtv1.VirtualMachine) {
			vm.Spec.Template.Spec.Domain.Memory.Guest = new(resource.MustParse(size))
		}
	}
	restart := func(message string) {
		t.Helper()
		s.until(t, "to be restarted", func(vm *virtv1.VirtualMachine) bool { return condition(vm, "RestartRequired").Message == message })
		assert.Equal(t, corev1.ConditionTrue, condition(s.last, "RestartRequired").Status)
		assert.Less(t, s.last.Status.ObservedGeneration, s.last.Status.DesiredGeneration)
	}
	none := func() {
		t.Helper()
		s.until(t, "current", func(version *virtv1.VirtualMachine) bool {
			return condition(version, "RestartRequired").Type == "" && version.Status.ObservedGeneration == vm.Generation
		})
	}
	change(t, vm, memory("512Mi"))
	restart("memory updated in template spec. Memory-hotplug is only available for migratable VMs")
	change(t, vm, memory("256Mi"))
	none()
	change(t, vm, func(vm *virtv1.VirtualMachine) { vm.Spec.Template.Spec.Domain.CPU.Cores = 2 })
	restart("a non-live-updatable field was changed in the template spec")
	change(t, vm, func(vm *virtv1.VirtualMachine) { vm.Spec.Template.Spec.Domain.CPU.Cores = 1 })
	none()
	change(t, vm, multus("net1", "lan", "52:54:00:00:00:03"))
	none()
	vmi := &virtv1.VirtualMachineInstance{}
	require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(vm), vmi))
	assert.Len(t, vmi.Spec.Networks, 2)
	assert.Equal(t, running, s.last.Status.PrintableStatus)

	s.states = nil
	change(t, vm, memory("512Mi"), strategy(virtv1.RunStrategyHalted))
	s.becomes(t, stopped)
	assert.Equal(t, corev1.ConditionTrue, condition(s.last, "RestartRequired").Status, "it stays on the stopped one")
	change(t, vm, strategy(virtv1.RunStrategyAlways))
	s.becomes(t, running)
	none()
	s.saw(t, stopping, stopped, starting, running)
}

func TestTheDiskOfARunningGuestStaysUntilItStops(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	cloned(t, ns, "web")
	vm := machine(ns, "web")
	s := follow(t, vm)
	s.becomes(t, running)
	dv, claim := disk(ns, "web"), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}}
	require.NoError(t, cl.Delete(t.Context(), dv))
	gone(t, dv)
	require.Eventually(t, func() bool {
		require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
		return claim.DeletionTimestamp != nil
	}, patience, 10*time.Millisecond)
	time.Sleep(300 * time.Millisecond)
	require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
	s.until(t, "running", func(vm *virtv1.VirtualMachine) bool { return vm.Status.PrintableStatus == running })

	change(t, vm, strategy(virtv1.RunStrategyHalted))
	gone(t, claim)
}
