package main

import (
	"context"
	"strconv"
	"sync"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/bench/bare"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// job is an image on its way.
type job struct {
	image  *otv1alpha1.VMDiskImage
	queued chan struct{} // closed when status Queued is written
	filled bool
	ready  bool
}

// floor takes images in the order of their creation, which is the order of the watch.
type floor struct {
	client client.WithWatch
	limit  int
	merge  bool

	mu      sync.Mutex
	changed *sync.Cond
	jobs    map[types.UID]*job
	waiting []*job
	active  int

	enqueue, start, snapshot, finish *bare.Pipe[*job]
}

func newFloor(c client.WithWatch, limit int, merge bool) *floor {
	f := &floor{client: c, limit: limit, merge: merge, jobs: map[types.UID]*job{}}
	f.changed = sync.NewCond(&f.mu)
	f.enqueue, f.start, f.snapshot, f.finish = bare.NewPipe[*job](), bare.NewPipe[*job](), bare.NewPipe[*job](), bare.NewPipe[*job]()
	return f
}

// run works until one part fails. Statuses Syncing and DataVolumes are written by one writer each, so that both are in
// the order of the queue.
func (f *floor) run(ctx context.Context, workers int) error {
	crew := bare.NewCrew()
	bare.Work(ctx, crew, workers, f.enqueue, f.writeQueued)
	bare.Work(ctx, crew, 1, f.start, f.createDataVolume)
	bare.Work(ctx, crew, workers, f.snapshot, f.createSnapshot)
	bare.Work(ctx, crew, workers, f.finish, f.writeSucceeded)
	crew.Go(func() error { return f.admit(ctx) })
	crew.Go(func() error { return bare.Follow(ctx, f.client, &otv1alpha1.VMDiskImageList{}, f.imageSeen) })
	crew.Go(func() error { return bare.Follow(ctx, f.client, &cdiv1.DataVolumeList{}, f.dataVolumeSeen) })
	crew.Go(func() error { return bare.Follow(ctx, f.client, &snapshotv1.VolumeSnapshotList{}, f.snapshotSeen) })
	return crew.Wait(ctx)
}

func (f *floor) imageSeen(object client.Object) {
	image := object.(*otv1alpha1.VMDiskImage)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.jobs[image.UID] != nil || image.Status.Phase != "" {
		return
	}
	j := &job{image: image, queued: make(chan struct{})}
	f.jobs[image.UID] = j
	f.waiting = append(f.waiting, j)
	f.enqueue.Put(j)
	f.changed.Signal()
}

func (f *floor) dataVolumeSeen(object client.Object) {
	dv := object.(*cdiv1.DataVolume)
	if dv.Status.Phase != cdiv1.Succeeded {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if j := f.owner(dv); j != nil && !j.filled {
		j.filled = true
		f.active--
		f.changed.Signal()
		f.snapshot.Put(j)
	}
}

func (f *floor) snapshotSeen(object client.Object) {
	vs := object.(*snapshotv1.VolumeSnapshot)
	if vs.Status == nil || vs.Status.ReadyToUse == nil || !*vs.Status.ReadyToUse {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if j := f.owner(vs); j != nil && !j.ready {
		j.ready = true
		f.finish.Put(j)
	}
}

func (f *floor) owner(object client.Object) *job {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return f.jobs[owner.UID]
	}
	return nil
}

// admit lets images in, one after the other.
func (f *floor) admit(ctx context.Context) error {
	for {
		f.mu.Lock()
		for len(f.waiting) == 0 || f.active >= f.limit {
			f.changed.Wait()
		}
		j := f.waiting[0]
		f.waiting = f.waiting[1:]
		f.active++
		f.mu.Unlock()
		<-j.queued
		if err := f.writeStatus(ctx, j, otv1alpha1.PhaseSyncing); err != nil {
			return err
		}
		f.start.Put(j)
	}
}

func (f *floor) writeQueued(ctx context.Context, j *job) error {
	ticket, err := strconv.ParseInt(j.image.ResourceVersion, 10, 64)
	if err != nil {
		return err
	}
	j.image.Status.Ticket = ticket
	if err := f.writeStatus(ctx, j, otv1alpha1.PhaseQueued); err != nil {
		return err
	}
	close(j.queued)
	return nil
}

func (f *floor) createDataVolume(ctx context.Context, j *job) error {
	return f.client.Create(ctx, dataVolume(j.image))
}

func (f *floor) createSnapshot(ctx context.Context, j *job) error {
	return f.client.Create(ctx, volumeSnapshot(j.image))
}

func (f *floor) writeSucceeded(ctx context.Context, j *job) error {
	return f.writeStatus(ctx, j, otv1alpha1.PhaseSucceeded)
}
