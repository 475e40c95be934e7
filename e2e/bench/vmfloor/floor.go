package main

import (
	"context"
	"sync"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/bench/bare"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// job is a machine on its way.
type job struct {
	vm    *otv1alpha1.VirtualMachine
	image *golden
	disk  types.UID

	cloned, runs bool
}

// golden is an image, and the one claim on it.
type golden struct {
	known chan struct{} // closed when the image was seen
	image *otv1alpha1.VMDiskImage
	claim sync.Once
}

// floor brings each machine on as soon as a watch tells that it can.
type floor struct {
	client client.WithWatch
	share  int

	mu     sync.Mutex
	jobs   map[types.UID]*job
	images map[types.NamespacedName]*golden

	begin, start, finish *bare.Pipe[*job]
}

func newFloor(c client.WithWatch, share int) *floor {
	return &floor{
		client: c, share: share, jobs: map[types.UID]*job{}, images: map[types.NamespacedName]*golden{},
		begin: bare.NewPipe[*job](), start: bare.NewPipe[*job](), finish: bare.NewPipe[*job](),
	}
}

// run works until one part fails.
func (f *floor) run(ctx context.Context, workers int) error {
	crew := bare.NewCrew()
	bare.Work(ctx, crew, workers, f.begin, f.makeDisk)
	bare.Work(ctx, crew, workers, f.start, f.makeMachine)
	bare.Work(ctx, crew, workers, f.finish, f.writeReady)
	for list, seen := range map[client.ObjectList]func(client.Object){
		&otv1alpha1.VMDiskImageList{}:    f.imageSeen,
		&otv1alpha1.VirtualMachineList{}: f.vmSeen,
		&cdiv1.DataVolumeList{}:          f.diskSeen,
		&virtv1.VirtualMachineList{}:     f.machineSeen,
	} {
		crew.Go(func() error { return bare.Follow(ctx, f.client, list, seen) })
	}
	return crew.Wait(ctx)
}

func (f *floor) imageSeen(object client.Object) {
	image := object.(*otv1alpha1.VMDiskImage)
	if !image.IsReady() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if g := f.golden(client.ObjectKeyFromObject(image)); g.image == nil {
		g.image = image
		close(g.known)
	}
}

// golden is called with the lock held.
func (f *floor) golden(key types.NamespacedName) *golden {
	if f.images[key] == nil {
		f.images[key] = &golden{known: make(chan struct{})}
	}
	return f.images[key]
}

func (f *floor) vmSeen(object client.Object) {
	vm := object.(*otv1alpha1.VirtualMachine)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.jobs[vm.UID] != nil || vm.Status.Phase != "" {
		return
	}
	j := &job{vm: vm, image: f.golden(vm.ImageKey())}
	f.jobs[vm.UID] = j
	f.begin.Put(j)
}

func (f *floor) diskSeen(object client.Object) {
	dv := object.(*cdiv1.DataVolume)
	if dv.Status.Phase != cdiv1.Succeeded {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if j := f.owner(dv); j != nil && !j.cloned {
		j.cloned, j.disk = true, dv.UID
		f.start.Put(j)
	}
}

func (f *floor) machineSeen(object client.Object) {
	machine := object.(*virtv1.VirtualMachine)
	if machine.Status.PrintableStatus != virtv1.VirtualMachineStatusRunning || !machine.Status.Ready {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if j := f.owner(machine); j != nil && !j.runs {
		j.runs = true
		f.finish.Put(j)
	}
}

func (f *floor) owner(object client.Object) *job {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return f.jobs[owner.UID]
	}
	return nil
}

// makeDisk claims the image, the first time, and makes what the machine needs.
func (f *floor) makeDisk(ctx context.Context, j *job) (err error) {
	<-j.image.known
	j.image.claim.Do(func() { err = f.claim(ctx, j.image.image) })
	if err != nil {
		return err
	}
	if err := f.client.Apply(ctx, secret(j.vm), client.FieldOwner(bare.Agent)); err != nil {
		return err
	}
	return f.client.Create(ctx, disk(j.vm, j.image.image), client.FieldOwner(bare.Agent))
}

func (f *floor) makeMachine(ctx context.Context, j *job) error {
	return f.client.Apply(ctx, machine(j.vm), client.FieldOwner(bare.Agent))
}

func (f *floor) writeReady(ctx context.Context, j *job) error {
	apply, err := ready(j)
	if err != nil {
		return err
	}
	return f.client.Status().Apply(ctx, apply, client.FieldOwner(bare.Agent), client.ForceOwnership)
}
