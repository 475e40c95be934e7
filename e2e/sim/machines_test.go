package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pelotech/open-terrain/e2e/sim"
	"github.com/pelotech/open-terrain/e2e/sim/cdi"
	"github.com/pelotech/open-terrain/e2e/sim/kubevirt"
)

func machine(ns, name string) *virtv1.VirtualMachine {
	return &virtv1.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: virtv1.VirtualMachineSpec{
			RunStrategy: new(virtv1.RunStrategyAlways),
			Template: &virtv1.VirtualMachineInstanceTemplateSpec{Spec: virtv1.VirtualMachineInstanceSpec{
				Domain:  virtv1.DomainSpec{Memory: &virtv1.Memory{Guest: new(resource.MustParse("1Gi"))}},
				Volumes: []virtv1.Volume{{Name: "root", VolumeSource: virtv1.VolumeSource{DataVolume: &virtv1.DataVolumeSource{Name: name}}}},
			}},
		},
	}
}

// versions counts the writes of a kind in a namespace, creations included, until the test is over.
func versions(t *testing.T, ns string, list client.ObjectList) func() int {
	t.Helper()
	watcher, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: cl.Scheme()})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	events, err := watcher.Watch(ctx, list, client.InNamespace(ns))
	require.NoError(t, err)
	t.Cleanup(func() { cancel(); events.Stop() })
	return func() (n int) {
		for {
			select {
			case event := <-events.ResultChan():
				if event.Type == watch.Added || event.Type == watch.Modified {
					n++
				}
			case <-time.After(300 * time.Millisecond):
				return n
			}
		}
	}
}

// TestInstantMachines counts: three writes for a guest that runs, of which one is the instance's creation.
func TestInstantMachines(t *testing.T) {
	w := world(t, sim.Options{CDI: cdi.Options{Instant: &cdi.Instant{}}, KubeVirt: &kubevirt.Options{Instant: &kubevirt.Instant{}}})
	require.NotNil(t, w.KubeVirt)
	ns := namespace(t)
	machines, instances := versions(t, ns, &virtv1.VirtualMachineList{}), versions(t, ns, &virtv1.VirtualMachineInstanceList{})
	dv := blank(ns, "web")
	require.NoError(t, cl.Create(t.Context(), dv))
	succeeded(t, dv)
	vm := machine(ns, "web")
	require.NoError(t, cl.Create(t.Context(), vm))
	becomes := func(want virtv1.VirtualMachinePrintableStatus) {
		require.Eventually(t, func() bool {
			require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(vm), vm))
			return vm.Status.PrintableStatus == want
		}, patience, 5*time.Millisecond)
	}
	becomes(virtv1.VirtualMachineStatusRunning)
	assert.True(t, vm.Status.Ready)
	assert.Equal(t, 2, machines(), "its creation and a status")
	assert.Equal(t, 2, instances())

	vm.Spec.RunStrategy = new(virtv1.RunStrategyHalted)
	require.NoError(t, cl.Update(t.Context(), vm))
	becomes(virtv1.VirtualMachineStatusStopped)
	assert.Equal(t, 2, machines(), "the change and a status")
	require.NoError(t, cl.Delete(t.Context(), vm))
	require.Eventually(t, func() bool {
		return client.IgnoreNotFound(cl.Get(t.Context(), client.ObjectKeyFromObject(vm), vm)) == nil
	}, patience, 5*time.Millisecond)
}
