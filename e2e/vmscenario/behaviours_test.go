package vmscenario

import (
	"context"
	"sync"
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/sim/cdi"
	"github.com/pelotech/open-terrain/e2e/sim/kubevirt"
	"github.com/stretchr/testify/require"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// behaviours say how the simulators treat single objects, by namespace and name. Real ones do not ask.
type behaviours struct {
	cdi      *cdi.Simulator
	kubevirt *kubevirt.Simulator

	mu     sync.Mutex
	disks  map[client.ObjectKey]cdi.Behaviour
	guests map[client.ObjectKey]kubevirt.Behaviour
}

func (b *behaviours) ofDisk(dv *cdiv1.DataVolume) cdi.Behaviour {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.disks[client.ObjectKeyFromObject(dv)]
}

func (b *behaviours) ofGuest(vm *virtv1.VirtualMachine) kubevirt.Behaviour {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.guests[client.ObjectKeyFromObject(vm)]
}

// guest is how KubeVirt treats the guest of a virtual machine from now on; before it is made, too.
func (b *behaviours) guest(t *testing.T, vm *v1alpha1.VirtualMachine, behaviour kubevirt.Behaviour) {
	t.Helper()
	b.mu.Lock()
	if b.guests == nil {
		b.guests = map[client.ObjectKey]kubevirt.Behaviour{}
	}
	b.guests[client.ObjectKeyFromObject(vm)] = behaviour
	b.mu.Unlock()
	require.NoError(t, b.kubevirt.Changed(context.Background()))
}
