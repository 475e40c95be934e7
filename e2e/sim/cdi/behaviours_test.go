package cdi_test

import (
	"sync"

	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"github.com/pelotech/open-terrain/e2e/sim/cdi"
)

// behaviours by the name of the DataVolume.
type behaviours struct {
	mu  sync.Mutex
	all map[string]cdi.Behaviour
}

func newBehaviours() *behaviours { return &behaviours{all: map[string]cdi.Behaviour{}} }

func (b *behaviours) of(dv *cdiv1.DataVolume) cdi.Behaviour {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all[dv.Name]
}

func (b *behaviours) set(name string, behaviour cdi.Behaviour) {
	b.mu.Lock()
	b.all[name] = behaviour
	b.mu.Unlock()
	if sim != nil {
		sim.Changed()
	}
}
