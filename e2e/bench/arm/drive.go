package arm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/bench/procs"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Drive is one load, from the first create to the last Succeeded.
type Drive struct {
	Began, Ended time.Time
	// Created is how long the creation of all images took.
	Created time.Duration
	// CPU that each process used meanwhile, by its name; bench is this one, with creators and simulators.
	CPU map[string]time.Duration
	// base is the resourceVersion before the first create.
	base string
}

// Wall is the time from the first create to the last Succeeded.
func (d Drive) Wall() time.Duration { return d.Ended.Sub(d.Began) }

// timeout of a load: many times what it should take.
func (l *Lab) timeout(images int) time.Duration {
	ideal := time.Duration(images/l.Load.Slots+1) * l.Load.Import
	return 2*time.Minute + 3*ideal + time.Duration(images)*100*time.Millisecond
}

// Drive creates images and returns when all of them have Succeeded.
func (l *Lab) Drive(ctx context.Context, prefix string, images int) (Drive, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.timeout(images), fmt.Errorf("%d images did not succeed in time", images))
	defer cancel()
	var list otv1alpha1.VMDiskImageList
	if err := l.client.List(ctx, &list); err != nil {
		return Drive{}, err
	}
	d := Drive{base: list.ResourceVersion}
	succeeded, err := l.watch(ctx, d.base)
	if err != nil {
		return Drive{}, err
	}
	before := l.usage()
	d.Began = time.Now()
	var both errgroup.Group
	both.Go(func() error {
		err := l.create(ctx, prefix, images)
		d.Created = time.Since(d.Began)
		return err
	})
	both.Go(func() error {
		err := l.await(ctx, succeeded, prefix, images)
		d.Ended = time.Now()
		return err
	})
	go func() { // a program that has died finishes nothing
		select {
		case <-l.subject.process.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := both.Wait(); err != nil {
		return d, errors.Join(fmt.Errorf("drive %s: %w", l.Name, err), context.Cause(ctx), l.subject.alive(), l.lastWords())
	}
	d.CPU = l.usage()
	for name, used := range before {
		d.CPU[name] -= used
	}
	return d, nil
}

// usage is the CPU time that each process has used so far.
func (l *Lab) usage() map[string]time.Duration {
	children := procs.Children()
	return map[string]time.Duration{
		"subject":        l.subject.cpu(),
		"kube-apiserver": procs.CPU(children["kube-apiserver"]),
		"etcd":           procs.CPU(children["etcd"]),
		"bench":          procs.CPU(os.Getpid()),
	}
}

// create makes the images by several writers.
func (l *Lab) create(ctx context.Context, prefix string, images int) error {
	writers, ctx := errgroup.WithContext(ctx)
	next := make(chan int)
	for range l.Load.Writers {
		writers.Go(func() error {
			for i := range next {
				if err := l.client.Create(ctx, image(prefix, i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	writers.Go(func() error {
		defer close(next)
		for i := range images {
			select {
			case next <- i:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	return writers.Wait()
}

func image(prefix string, i int) *otv1alpha1.VMDiskImage {
	return &otv1alpha1.VMDiskImage{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace(i), Name: fmt.Sprintf("%s-%05d", prefix, i)},
		Spec: otv1alpha1.VMDiskImageSpec{
			URL: "https://images.example.com/labs/disk.qcow2", SourceType: otv1alpha1.SourceHTTP,
			DiskSize: resource.MustParse("24Gi"), SnapshotClass: snapshotClass,
		},
	}
}
