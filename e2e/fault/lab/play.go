package lab

import (
	"context"
	"errors"

	"github.com/pelotech/open-terrain/e2e/history"
)

// Play goes through steps in a namespace of their own, waits for the end of all that they began, checks what must hold, and
// gives the history. An operator must be running. What was made is deleted again.
func (w *World) Play(ctx context.Context, namespace string, steps []Step) ([]history.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	before, err := w.Recorder.Sync(ctx)
	if err != nil {
		return nil, err
	}
	scene, v := &Scene{World: w, Namespace: namespace, since: before, bystanders: true}, w.view(before, namespace)
	if err := w.Namespace(ctx, namespace); err != nil {
		return nil, err
	}
	err = scene.tell(ctx, steps)
	if err == nil {
		err = v.settle(ctx, w)
	}
	err = errors.Join(err, v.check(w))
	events := v.events(w)
	return events, errors.Join(err, scene.clear(context.WithoutCancel(ctx)))
}

// Settled waits until all that was begun has come to its end.
func Settled() Step {
	return Step{Name: "settle", Do: func(ctx context.Context, s *Scene) error {
		return s.World.view(s.since, s.Namespace).settle(ctx, s.World)
	}}
}
