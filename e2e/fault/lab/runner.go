package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/faultproxy"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/pelotech/open-terrain/e2e/invariant"
	"github.com/pelotech/open-terrain/e2e/invariant/endstate"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is how long a plan may take.
const patience = 30 * time.Second

// sweep is how long the garbage collector may take.
const sweep = 10 * time.Second

// Runner runs plans of one story in one world, one after the other. The operator's last life in a plan is the first of
// the next one, and what a plan leaves is looked at in the next one, too.
type Runner struct {
	World *World
	Story Story
	// Sabotage, when set, is done when the story has settled, before it is judged: for tests of the oracles.
	Sabotage func(context.Context, *Scene, *Life) error

	life      *Life
	n         int
	reference *endstate.State
	settled   int64 // revision at which the last plan had settled
	left      *view // what the last plan looked at
}

// Result of a plan.
type Result struct {
	// Writes that the first life asked for.
	Writes []faultproxy.Request
	// Lives is how many processes there were; Struck how many writes their rules struck.
	Lives, Struck int
	Took          time.Duration

	all []invariant.Write
}

// Run tells the story with the plan's faults, waits for its end and checks everything. The first plan is the reference
// for the others, and should be without faults. The error holds the plan.
func (r *Runner) Run(t *testing.T, plan Plan) (Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	start := time.Now()
	result, err := r.run(ctx, t, plan)
	result.Took = time.Since(start)
	if err != nil {
		err = fmt.Errorf("plan %s: %w", plan, err)
	}
	return result, err
}

func (r *Runner) run(ctx context.Context, t *testing.T, plan Plan) (Result, error) {
	t.Helper()
	result := Result{Lives: 1}
	scene, v, err := r.begin(ctx, t, plan)
	if err != nil {
		return result, err
	}
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(scene.tell(ctx, r.Story.Steps), ctx.Err()) }()
	for told := false; ; {
		select {
		case <-r.life.Proxy.Severed():
			if err := r.nextLife(t, plan, &result); err != nil {
				return result, err
			}
		case err := <-ended:
			switch {
			case err != nil:
				result.note(r.life)
				err = errors.Join(err, v.check(r.World))
				return result, errors.Join(err, scene.clear(context.WithoutCancel(ctx)))
			case !told:
				told = true
				go func() { ended <- v.settle(ctx, r.World) }()
				continue
			case !r.life.Proxy.Resting(plan.linger()), !r.life.Proxy.Awake(settled, append(watched, "datasyncs")...):
				go func() { ended <- v.settleAfter(ctx, r.World, plan.linger()) }()
				continue
			}
			return result, r.judge(ctx, scene, v, &result)
		}
	}
}

// begin looks back at the last plan, and prepares the next one.
func (r *Runner) begin(ctx context.Context, t *testing.T, plan Plan) (*Scene, *view, error) {
	t.Helper()
	if err := r.stillQuiet(ctx); err != nil {
		return nil, nil, err
	}
	if err := r.World.SetPolicy(ctx, merged(BasePolicy(), r.Story.Policy)); err != nil {
		return nil, nil, err
	}
	if err := r.firstLife(t, plan.rules(0)); err != nil {
		return nil, nil, err
	}
	return r.open(ctx)
}

// open makes the scene of the next plan.
func (r *Runner) open(ctx context.Context) (*Scene, *view, error) {
	before, err := r.World.Recorder.Sync(ctx)
	if err != nil {
		return nil, nil, err
	}
	r.n++
	scene := &Scene{World: r.World, Namespace: fmt.Sprintf("%s-%d", r.Story.Name, r.n), since: before}
	return scene, r.World.view(before, scene.Namespace), r.World.Namespace(ctx, scene.Namespace)
}

func (r *Runner) firstLife(t *testing.T, rules []faultproxy.Rule) error {
	t.Helper()
	if r.life != nil {
		return r.life.Proxy.Rearm(rules)
	}
	r.life = r.World.Operator(t, rules, Alone()...)
	t.Cleanup(func() { r.life.End() }) // the last one
	return nil
}

func (r *Runner) nextLife(t *testing.T, plan Plan, result *Result) (err error) {
	t.Helper()
	result.note(r.life)
	r.life.End()
	r.life, err = r.World.Begin(t.Context(), plan.rules(result.Lives), Alone()...)
	result.Lives++
	return err
}

// note what a life did before it is over.
func (r *Result) note(life *Life) {
	requests := life.Proxy.Requests()
	if r.Writes == nil {
		r.Writes = requests
	}
	for _, q := range requests {
		if q.Rule >= 0 {
			r.Struck++
		}
		r.all = append(r.all, invariant.Write{
			Verb: q.Verb, Resource: q.Resource, Subresource: q.Subresource, Namespace: q.Namespace, Name: q.Name, UID: q.UID,
		})
	}
}

// judge checks everything about a story that has settled, and cleans up after it.
func (r *Runner) judge(ctx context.Context, scene *Scene, v *view, result *Result) error {
	if r.Sabotage != nil {
		if err := r.Sabotage(ctx, scene, r.life); err != nil {
			return err
		}
	}
	settled, err := r.World.Recorder.Sync(ctx)
	if err != nil {
		return err
	}
	result.note(r.life)
	r.settled, r.left = settled, v
	err = errors.Join(v.check(r.World), v.handsOff(r.World, result.all), scene.verify(ctx, r.Story), r.asReference(v.events(r.World)))
	if scene.Afterwards != nil {
		err = errors.Join(err, scene.Afterwards())
	}
	// The plan is over: what the operator writes from now on, such as the end of a finalizer, is none of its writes.
	return errors.Join(err, r.life.Proxy.Rearm(nil), scene.clear(ctx))
}

// asReference compares the end with that of the first plan.
func (r *Runner) asReference(events []history.Event) error {
	state := endstate.Of(events)
	if r.Story.AnyWay {
		state = endstate.Plain(events)
		maps.DeleteFunc(state.Objects, func(key, _ string) bool { return strings.HasPrefix(key, "volumesnapshotcontents") })
	}
	if r.reference == nil {
		r.reference = &state
		return nil
	}
	if diff := state.Diff(*r.reference); len(diff) > 0 {
		return fmt.Errorf("I13 broken: the end is not that of the story without faults:\n%s", strings.Join(diff, "\n"))
	}
	return nil
}

// stillQuiet looks back at the last plan: nothing was written after it had settled, until its images were deleted, and
// nothing is left of them now.
func (r *Runner) stillQuiet(ctx context.Context) error {
	if r.left == nil {
		return nil
	}
	left := r.left
	r.left = nil // what is wrong is told once
	if err := left.quietAfter(r.World, r.settled); err != nil {
		return fmt.Errorf("after the plan before: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, sweep)
	defer cancel()
	if err := left.awaitNothing(ctx, r.World); err != nil {
		return fmt.Errorf("after the plan before: %w", err)
	}
	return nil
}

// Close looks at what the last plan left.
func (r *Runner) Close(t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return r.stillQuiet(ctx)
}

// clear deletes the story's images, as somebody who tidies up: first whoever uses them lets go.
func (s *Scene) clear(ctx context.Context) error {
	// They would make their images again.
	if err := s.Client.DeleteAllOf(ctx, &otv1alpha1.DataSync{}, client.InNamespace(s.Namespace)); err != nil {
		return err
	}
	images := &otv1alpha1.VMDiskImageList{}
	if err := s.Client.List(ctx, images, client.InNamespace(s.Namespace)); err != nil {
		return err
	}
	for i := range images.Items {
		image := &images.Items[i]
		if refs := image.Status.References; refs != nil && refs.Count > 0 {
			if err := s.use(ctx, image.Name, 0); err != nil {
				return err
			}
		}
		if err := s.Client.Delete(ctx, image); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
