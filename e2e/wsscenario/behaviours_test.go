package wsscenario

import (
	"context"
	"sync"
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/sim/kubevirt"
	"github.com/stretchr/testify/require"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// behaviours say how the simulator of KubeVirt treats single guests. The real one does not ask.
type behaviours struct {
	kubevirt *kubevirt.Simulator

	mu     sync.Mutex
	guests map[client.ObjectKey]kubevirt.Behaviour
}

func (b *behaviours) ofGuest(vm *virtv1.VirtualMachine) kubevirt.Behaviour {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.guests[client.ObjectKeyFromObject(vm)]
}

// guest is how KubeVirt treats the guest of an entry from now on; before it is made, too.
func (b *behaviours) guest(t *testing.T, ws *v1alpha1.Workspace, entry string, behaviour kubevirt.Behaviour) {
	t.Helper()
	b.mu.Lock()
	if b.guests == nil {
		b.guests = map[client.ObjectKey]kubevirt.Behaviour{}
	}
	b.guests[child(ws, entry)] = behaviour
	b.mu.Unlock()
	require.NoError(t, b.kubevirt.Changed(context.Background()))
}
