package vmscenario

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// many is how many virtual machines make a crowd.
func (w *world) many() int {
	if w.real {
		return 40
	}
	return 500
}

// writes counts the versions of an image that its references changed in, until the story is over.
func (w *world) writes(t *testing.T, i *v1alpha1.VMDiskImage) *atomic.Int32 {
	t.Helper()
	changes, err := w.client.Watch(t.Context(), &v1alpha1.VMDiskImageList{}, client.InNamespace(i.Namespace), client.MatchingFields{"metadata.name": i.Name})
	require.NoError(t, err)
	t.Cleanup(changes.Stop)
	count := &atomic.Int32{}
	go func() {
		last := ""
		for event := range changes.ResultChan() {
			if version, is := event.Object.(*v1alpha1.VMDiskImage); is {
				if now := fmt.Sprint(version.Status.References); now != last {
					count.Add(1)
					last = now
				}
			}
		}
	}()
	return count
}

// everyone does something for each of a crowd, some at a time.
func (w *world) everyone(t *testing.T, do func(n int) error) {
	t.Helper()
	var group sync.WaitGroup
	queue := make(chan int)
	for range 8 {
		group.Go(func() {
			for n := range queue {
				assert.NoError(t, do(n))
			}
		})
	}
	for n := range w.many() {
		queue <- n
	}
	close(queue)
	group.Wait()
}

// crowd waits for an image that is held, so that nothing is cloned.
func crowd(t *testing.T, w *world) {
	namespace := w.namespace(t)
	i := w.createImage(t, image(namespace, "golden", w.held))
	count := w.writes(t, i)
	began := time.Now()
	w.everyone(t, func(n int) error {
		return w.client.Create(context.Background(), machine(namespace, fmt.Sprint("vm-", n), i))
	})
	w.counts(t, i, int32(w.many())) //nolint:gosec // a few hundred
	came := count.Swap(0)
	t.Logf("%d came in %s: %d writes to the image", w.many(), time.Since(began).Round(time.Millisecond), came)
	most := max(w.many()/20, 5)
	assert.LessOrEqual(t, int(came), most)
	assert.Len(t, i.Status.References.Sample, 10)

	began = time.Now()
	require.NoError(t, w.client.DeleteAllOf(t.Context(), &v1alpha1.VirtualMachine{}, client.InNamespace(namespace)))
	w.counts(t, i, 0)
	t.Logf("they went in %s: %d writes to the image", time.Since(began).Round(time.Millisecond), count.Load())
	assert.LessOrEqual(t, int(count.Load()), most)
}

// killed while virtual machines come, and again while they go.
func killed(t *testing.T, w *world) {
	namespace := w.namespace(t)
	i := w.createImage(t, image(namespace, "golden", w.held))
	var vms []*v1alpha1.VirtualMachine
	create := func(n int) {
		for range n {
			vms = append(vms, w.create(t, machine(namespace, fmt.Sprint("vm-", len(vms)), i)))
		}
	}
	create(5)
	w.counts(t, i, 5)
	create(3)
	w.machines.Kill()
	create(3)
	require.NoError(t, w.client.Delete(t.Context(), vms[0]))
	w.startMachines(t)
	w.awaitReady(t)
	w.counts(t, i, 10)

	w.machines.Kill()
	require.NoError(t, w.client.DeleteAllOf(t.Context(), &v1alpha1.VirtualMachine{}, client.InNamespace(namespace)))
	w.startMachines(t)
	w.awaitReady(t)
	w.counts(t, i, 0)
	last := w.create(t, machine(namespace, "last", i))
	w.letGo(i)
	w.runs(t, last)
	w.counts(t, i, 1, namespace+"/last")
	require.NotNil(t, i.Status.References.LastReferencedAt)
}
