package arm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pelotech/open-terrain/e2e/bench/procs"
	"golang.org/x/sync/errgroup"
)

// Drive is one load, from the first create until the last object is done.
type Drive struct {
	Began, Ended time.Time
	// Created is how long the creation of all objects took.
	Created time.Duration
	// CPU that each process used meanwhile, by its name; bench is this one, with creators and simulators.
	CPU map[string]time.Duration
	// base is the resourceVersion before the first create.
	base string
}

// Wall is the time from the first create until the last object is done.
func (d Drive) Wall() time.Duration { return d.Ended.Sub(d.Began) }

// timeout of a load: many times what it should take.
func (l *Lab) timeout(objects int) time.Duration {
	ideal := time.Duration(objects/max(1, l.Load.Slots)+1) * l.Load.Import
	return 2*time.Minute + 3*ideal + time.Duration(objects)*100*time.Millisecond
}

// Drive creates objects and returns when all of them are done.
func (l *Lab) Drive(ctx context.Context, prefix string, objects int) (Drive, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.timeout(objects), fmt.Errorf("%d objects were not done in time", objects))
	defer cancel()
	if err := l.task.prepare(ctx, l, prefix, objects); err != nil {
		return Drive{}, fmt.Errorf("prepare the load: %w", err)
	}
	list := l.task.list()
	if err := l.client.List(ctx, list); err != nil {
		return Drive{}, err
	}
	d := Drive{base: list.GetResourceVersion()}
	changes, err := l.watch(ctx, d.base)
	if err != nil {
		return Drive{}, err
	}
	before := l.usage()
	d.Began = time.Now()
	var both errgroup.Group
	both.Go(func() error {
		err := l.create(ctx, prefix, objects)
		d.Created = time.Since(d.Began)
		return err
	})
	both.Go(func() error {
		err := l.await(ctx, changes, prefix, objects*l.task.each())
		d.Ended = time.Now()
		return err
	})
	go func() { // a program that has died finishes nothing
		select {
		case <-l.subject.ended():
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

func (l *Lab) create(ctx context.Context, prefix string, objects int) error {
	if l.isCommand() {
		return l.command(ctx, prefix)
	}
	return l.crowd(ctx, objects, func(ctx context.Context, i int) error {
		return l.client.Create(ctx, l.task.object(l, prefix, i))
	})
}

// crowd does something to each object, by several writers.
func (l *Lab) crowd(ctx context.Context, objects int, do func(ctx context.Context, i int) error) error {
	writers, ctx := errgroup.WithContext(ctx)
	next := make(chan int)
	for range l.Load.Writers {
		writers.Go(func() error {
			for i := range next {
				if err := do(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	writers.Go(func() error {
		defer close(next)
		for i := range objects {
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
