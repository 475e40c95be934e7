package kubevirt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/pelotech/open-terrain/e2e/sim/cdi"
	"github.com/pelotech/open-terrain/e2e/sim/kubevirt"
)

const (
	patience = 30 * time.Second
	poll     = 10 * time.Millisecond
)

// shared by all tests of the package: one control plane, one simulator of CDI and one of KubeVirt.
var (
	cluster *harness.Cluster
	cl      client.WithWatch
	sim     *kubevirt.Simulator
	disks   *cdi.Simulator
	behave  = &behaviours{guests: map[string]kubevirt.Behaviour{}, disks: map[string]cdi.Behaviour{}}
)

// behaviours by namespace and name.
type behaviours struct {
	mu     sync.Mutex
	guests map[string]kubevirt.Behaviour
	disks  map[string]cdi.Behaviour
}

func key(o client.Object) string { return o.GetNamespace() + "/" + o.GetName() }

func (b *behaviours) ofGuest(vm *virtv1.VirtualMachine) kubevirt.Behaviour {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.guests[key(vm)]
}

func (b *behaviours) ofDisk(dv *cdiv1.DataVolume) cdi.Behaviour {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.disks[key(dv)]
}

func (b *behaviours) guest(ctx context.Context, vm *virtv1.VirtualMachine, behaviour kubevirt.Behaviour) error {
	b.mu.Lock()
	b.guests[key(vm)] = behaviour
	b.mu.Unlock()
	return sim.Changed(ctx)
}

func (b *behaviours) disk(dv *cdiv1.DataVolume, behaviour cdi.Behaviour) {
	b.mu.Lock()
	b.disks[key(dv)] = behaviour
	b.mu.Unlock()
	disks.Changed()
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctrllog.SetLogger(logr.Discard())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if cluster, err = harness.Start(ctx, harness.Options{KubeVirt: true}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	if cl, err = cluster.Client("test"); err != nil {
		return 1, err
	}
	if disks, err = cdi.Start(ctx, cluster.Config, cdi.Options{Behaviour: behave.ofDisk}); err != nil {
		return 1, err
	}
	options := kubevirt.Options{Behaviour: behave.ofGuest, Admission: true, Workers: 8, Termination: 100 * time.Millisecond}
	if sim, err = kubevirt.Start(ctx, cluster.Config, options); err != nil {
		return 1, err
	}
	code = m.Run()
	cancel()
	sim.Wait()
	disks.Wait()
	return code, nil
}
