package kubevirt_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pelotech/open-terrain/e2e/sim/cdi"
	"github.com/pelotech/open-terrain/e2e/sim/kubevirt"
)

// importing creates the disk of the machine, and leaves it in the middle.
func importing(t *testing.T, ns string, behaviour cdi.Behaviour) {
	t.Helper()
	dv := disk(ns, "vm")
	behave.disk(dv, behaviour)
	require.NoError(t, cl.Create(t.Context(), dv))
	require.Eventually(t, func() bool {
		require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(dv), dv))
		return dv.Status.Phase == behaviour.StopAt
	}, patience, 10*time.Millisecond)
}

// TestSituations goes through what was observed of machines that are to run, and takes the cause away at the end.
func TestSituations(t *testing.T) {
	type states = []virtv1.VirtualMachinePrintableStatus
	quota := func(ns string) *corev1.ResourceQuota {
		return &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "none"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceRequestsMemory: resource.MustParse("1Mi")}},
		}
	}
	for name, tc := range map[string]struct {
		mods []func(*virtv1.VirtualMachine)
		// before prepares the namespace; the disk is not there yet.
		before func(t *testing.T, ns string)
		// shows are the states from the beginning; the last one stays.
		shows states
		// says are conditions, NS standing for the namespace.
		says map[string]string
		// cured ends it; then shows what comes until Running.
		cured func(t *testing.T, ns string, vm *virtv1.VirtualMachine)
		then  states
	}{
		"without a disk": {
			shows: states{stopped, starting, noClaim},
			says: map[string]string{
				"Synchronized": "False FailedPvcNotFound PVC NS/vm does not exist, waiting for it to appear",
				"PodScheduled": "False Unschedulable PVC NS/vm does not exist, waiting for it to appear",
			},
			cured: func(t *testing.T, ns string, _ *virtv1.VirtualMachine) { cloned(t, ns, "vm") },
			then:  states{unschedulable, starting, running},
		},
		"with a disk that is being imported": {
			before: func(t *testing.T, ns string) { importing(t, ns, cdi.Behaviour{StopAt: cdiv1.ImportInProgress}) },
			shows:  states{stopped, provisioning},
			says:   map[string]string{"DataVolumesReady": "False NotAllDVsReady Not all of the VMI's DVs are ready", "Ready": "False PodNotExists virt-launcher pod has not yet been scheduled"},
			cured:  func(_ *testing.T, ns string, _ *virtv1.VirtualMachine) { behave.disk(disk(ns, "vm"), cdi.Behaviour{}) },
			then:   states{starting, running},
		},
		"with a clone of nothing": {
			before: func(t *testing.T, ns string) {
				dv := disk(ns, "vm")
				dv.Spec.Source = &cdiv1.DataVolumeSource{Snapshot: &cdiv1.DataVolumeSourceSnapshot{Namespace: ns, Name: "nosuch"}}
				require.NoError(t, cl.Create(t.Context(), dv))
			},
			shows: states{stopped, provisioning, noClaim},
			says:  map[string]string{"Synchronized": "False FailedPvcNotFound"},
		},
		"with a Secret that is missing": {
			before: func(t *testing.T, ns string) { cloned(t, ns, "vm") },
			mods:   []func(*virtv1.VirtualMachine){cloudInit("vm")},
			shows:  states{stopped, starting},
			says:   map[string]string{"Ready": "False GuestNotRunning Guest VM is not reported as running", "DataVolumesReady": "True AllDVsReady All of the VMI's DVs are bound and ready"},
			cured: func(t *testing.T, ns string, _ *virtv1.VirtualMachine) {
				require.NoError(t, cl.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "vm"}}))
			},
			then: states{running},
		},
		"with a network that is missing": {
			before: func(t *testing.T, ns string) { cloned(t, ns, "vm") },
			mods:   []func(*virtv1.VirtualMachine){multus("net1", "lan", "")},
			shows:  states{stopped, starting},
			says:   map[string]string{"Synchronized": "False FailedCreate failed to render launch manifest: failed to locate network attachment definition NS/lan"},
			cured:  func(t *testing.T, ns string, _ *virtv1.VirtualMachine) { attachment(t, ns, "lan") },
			then:   states{running},
		},
		"over quota": {
			before: func(t *testing.T, ns string) {
				cloned(t, ns, "vm")
				require.NoError(t, cl.Create(t.Context(), quota(ns)))
			},
			shows: states{stopped, starting},
			says:  map[string]string{"Synchronized": `False FailedCreate failed to create virtual machine pod: pods "virt-launcher-vm-`},
			cured: func(t *testing.T, ns string, _ *virtv1.VirtualMachine) {
				require.NoError(t, cl.Delete(t.Context(), quota(ns)))
			},
			then: states{running},
		},
		"with more memory than the node has": {
			before: func(t *testing.T, ns string) { cloned(t, ns, "vm") },
			mods: []func(*virtv1.VirtualMachine){func(vm *virtv1.VirtualMachine) {
				vm.Spec.Template.Spec.Domain.Memory.Guest = new(resource.MustParse("1Ti"))
			}},
			shows: states{stopped, starting, unschedulable},
			says:  map[string]string{"PodScheduled": "False Unschedulable 0/1 nodes are available: 1 Insufficient memory."},
		},
		"that crashes": {
			before: func(t *testing.T, ns string) {
				cloned(t, ns, "vm")
				require.NoError(t, behave.guest(t.Context(), machine(ns, "vm"), kubevirt.Behaviour{CrashLoop: true}))
			},
			shows: states{stopped, starting, crashLoop, starting, crashLoop},
			cured: func(t *testing.T, _ string, vm *virtv1.VirtualMachine) {
				assert.Equal(t, 2, vm.Status.StartFailure.ConsecutiveFailCount)
				require.NoError(t, behave.guest(t.Context(), vm, kubevirt.Behaviour{}))
			},
			then: states{starting, running},
		},
		"without memory": {
			before: func(t *testing.T, ns string) { cloned(t, ns, "vm") },
			mods:   []func(*virtv1.VirtualMachine){func(vm *virtv1.VirtualMachine) { vm.Spec.Template.Spec.Domain.Memory = nil }},
			shows:  states{stopped},
			says:   map[string]string{"Failure": `True FailedCreate Failure while starting VMI: admission webhook "virtualmachineinstances-create-validator.kubevirt.io" denied the request: no memory requested, at least one of 'spec.domain.memory.guest',`},
			cured: func(t *testing.T, _ string, vm *virtv1.VirtualMachine) {
				change(t, vm, func(vm *virtv1.VirtualMachine) {
					vm.Spec.Template.Spec.Domain.Memory = &virtv1.Memory{Guest: new(resource.MustParse("64Mi"))}
				})
			},
			then: states{starting, running},
		},
		"with a label that is none": {
			mods:  []func(*virtv1.VirtualMachine){func(vm *virtv1.VirtualMachine) { vm.Spec.Template.ObjectMeta.Labels["x"] = "a b" }},
			shows: states{stopped},
			says:  map[string]string{"Failure": `True FailedCreate Failure while starting VMI: VirtualMachineInstance.kubevirt.io "vm" is invalid: metadata.labels: Invalid value: "a b": `},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := namespace(t)
			if tc.before != nil {
				tc.before(t, ns)
			}
			vm := machine(ns, "vm", tc.mods...)
			s := follow(t, vm)
			s.until(t, "as observed", func(vm *virtv1.VirtualMachine) bool {
				for kind, text := range tc.says {
					if !strings.HasPrefix(says(vm, kind), strings.ReplaceAll(text, "NS", ns)) {
						return false
					}
				}
				return len(s.states) >= len(tc.shows)
			})
			s.saw(t, tc.shows...)
			if tc.cured == nil {
				return
			}
			tc.cured(t, ns, s.last)
			s.becomes(t, running)
			s.saw(t, tc.then...)
		})
	}
}

// TestAnImportThatFails shows both states in turn, as the importer restarts.
func TestAnImportThatFails(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	behave.disk(disk(ns, "vm"), cdi.Behaviour{Fail: "Unable to process data: expected status code 200, got 404"})
	require.NoError(t, cl.Create(t.Context(), disk(ns, "vm")))
	s := follow(t, machine(ns, "vm"))
	s.becomes(t, diskError)
	assert.Equal(t, "NotAllDVsReady", condition(s.last, "DataVolumesReady").Reason)
	s.becomes(t, provisioning)
	s.becomes(t, diskError)
}

func TestAHaltedMachine(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	importing(t, ns, cdi.Behaviour{StopAt: cdiv1.ImportInProgress})
	s := follow(t, machine(ns, "vm", strategy(virtv1.RunStrategyHalted)))
	s.becomes(t, provisioning)
	behave.disk(disk(ns, "vm"), cdi.Behaviour{})
	s.becomes(t, stopped)
	s.saw(t, stopped, provisioning, stopped)
}

func TestADiskThatGoesBeforeTheGuestRuns(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	cloned(t, ns, "vm")
	vm := machine(ns, "vm")
	require.NoError(t, behave.guest(t.Context(), vm, kubevirt.Behaviour{Unschedulable: "0/1 nodes are available: 1 node(s) were unschedulable."}))
	s := follow(t, vm)
	s.becomes(t, unschedulable)
	require.NoError(t, cl.Delete(t.Context(), disk(ns, "vm")))
	s.becomes(t, noClaim)
	require.NoError(t, behave.guest(t.Context(), vm, kubevirt.Behaviour{}))
	cloned(t, ns, "vm")
	s.becomes(t, running)
}

// TestAGuestThatNeverRanKeepsItsSpec until its instance is taken away.
func TestAGuestThatNeverRanKeepsItsSpec(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	cloned(t, ns, "vm")
	memory := func(size string) func(*virtv1.VirtualMachine) {
		return func(vm *virtv1.VirtualMachine) {
			vm.Spec.Template.Spec.Domain.Memory.Guest = new(resource.MustParse(size))
		}
	}
	vm := machine(ns, "vm", memory("1Ti"))
	s := follow(t, vm)
	s.becomes(t, unschedulable)
	change(t, vm, memory("64Mi"))
	s.until(t, "to be restarted", func(vm *virtv1.VirtualMachine) bool {
		return condition(vm, "RestartRequired").Status == corev1.ConditionTrue
	})
	assert.Equal(t, unschedulable, s.last.Status.PrintableStatus)
	s.states = nil
	require.NoError(t, cl.Delete(t.Context(), &virtv1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "vm"}}))
	s.becomes(t, running)
	s.saw(t, stopping, crashLoop, starting, running)
	s.until(t, "current", func(vm *virtv1.VirtualMachine) bool { return condition(vm, "RestartRequired").Type == "" })
}

func TestRunStrategies(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	for name, tc := range map[string]struct {
		strategy virtv1.VirtualMachineRunStrategy
		end      virtv1.VirtualMachineInstancePhase
		then     virtv1.VirtualMachinePrintableStatus
	}{
		"always-comes-back":     {virtv1.RunStrategyAlways, virtv1.Succeeded, running},
		"rerun-stays-when-done": {virtv1.RunStrategyRerunOnFailure, virtv1.Succeeded, stopped},
		"rerun-comes-back":      {virtv1.RunStrategyRerunOnFailure, virtv1.Failed, running},
		"once-stays":            {virtv1.RunStrategyOnce, virtv1.Failed, stopped},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cloned(t, ns, name)
			vm := machine(ns, name, strategy(tc.strategy))
			s := follow(t, vm)
			s.becomes(t, running)
			first := &virtv1.VirtualMachineInstance{}
			require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(vm), first))
			require.NoError(t, behave.guest(t.Context(), vm, kubevirt.Behaviour{End: tc.end}))
			s.until(t, "ended", func(vm *virtv1.VirtualMachine) bool { return !vm.Status.Ready })
			require.NoError(t, behave.guest(t.Context(), vm, kubevirt.Behaviour{}))
			s.becomes(t, tc.then)
			if tc.then == running {
				require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(vm), vm))
				again := &virtv1.VirtualMachineInstance{}
				require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(vm), again))
				assert.NotEqual(t, first.UID, again.UID)
			}
		})
	}
	t.Run("manual-waits-for-virtctl", func(t *testing.T) {
		t.Parallel()
		cloned(t, ns, "manual")
		vm := machine(ns, "manual", strategy(virtv1.RunStrategyManual))
		s := follow(t, vm)
		s.until(t, "looked at", func(vm *virtv1.VirtualMachine) bool { return condition(vm, "Ready").Reason == "VMINotExists" })
		ask := func(action virtv1.StateChangeRequestAction) {
			before := s.last.DeepCopy()
			next := s.last.DeepCopy()
			next.Status.StateChangeRequests = []virtv1.VirtualMachineStateChangeRequest{{Action: action}}
			require.NoError(t, cl.Status().Patch(t.Context(), next, client.MergeFrom(before)))
		}
		ask(virtv1.StartRequest)
		s.becomes(t, running)
		ask(virtv1.StopRequest)
		s.becomes(t, stopped)
		s.saw(t, stopped, starting, running, stopping, stopped)
	})
}

func TestAMachineThatFlaps(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	cloned(t, ns, "vm")
	vm := machine(ns, "vm")
	require.NoError(t, behave.guest(t.Context(), vm, kubevirt.Behaviour{Flap: []virtv1.VirtualMachinePrintableStatus{diskError, provisioning}, FlapEvery: 50 * time.Millisecond}))
	s := follow(t, vm)
	for range 3 {
		s.becomes(t, diskError)
		s.becomes(t, provisioning)
	}
	require.NoError(t, behave.guest(t.Context(), vm, kubevirt.Behaviour{}))
	s.becomes(t, running)
}
