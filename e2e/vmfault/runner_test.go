package vmfault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/e2e/fault/lab"
	"github.com/pelotech/open-terrain/e2e/faultproxy"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/pelotech/open-terrain/e2e/invariant"
	"github.com/pelotech/open-terrain/e2e/invariant/endstate"
)

const (
	// patience is how long a plan may take, and sweep how long the garbage collector may.
	patience = 40 * time.Second
	sweep    = 15 * time.Second
	// silence is how long nothing may be written after a story without a fault.
	silence = time.Second
)

// runner runs plans of one story in one world, one after the other. The operator's last life in a plan is the first of the
// next one.
type runner struct {
	world *lab.World
	story Story

	life      *lab.Life
	n         int
	reference *endstate.State
	left      *view // what the last plan looked at
}

// result of a plan.
type result struct {
	// writes that the first life asked for, and all of all lives.
	writes []faultproxy.Request
	all    []invariant.Write
	// lives is how many processes there were; struck how many writes their rules struck.
	lives, struck int
	took          time.Duration
}

// flags of the operator: what takes seconds on a cluster takes less here.
func flags() []string {
	return append(lab.Alone(), "--claim-interval=50ms", "--trouble-debounce=1s", "--zap-log-level=debug")
}

// run tells the story with the plan's faults, waits for its end and checks everything. The first plan is the reference for the
// others, and should be without faults. The error holds the plan.
func (r *runner) run(t *testing.T, plan lab.Plan) (result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	start := time.Now()
	res := result{lives: 1}
	err := r.play(ctx, t, plan, &res)
	res.took = time.Since(start)
	if err != nil {
		err = fmt.Errorf("plan %s: %w", plan, err)
	}
	return res, err
}

func (r *runner) play(ctx context.Context, t *testing.T, plan lab.Plan, res *result) error {
	t.Helper()
	scene, v, err := r.begin(ctx, t, plan)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(scene.tell(ctx, r.story.Steps), ctx.Err()) }()
	for told := false; ; {
		select {
		case <-r.life.Proxy.Severed():
			if err := r.nextLife(t, plan, res); err != nil {
				return err
			}
		case err := <-ended:
			switch {
			case err != nil:
				err = errors.Join(err, v.check(r.world))
				return errors.Join(err, r.rearm(t, nil), scene.clear(context.WithoutCancel(ctx)))
			case !told, !r.life.Proxy.Resting(linger(plan)), !r.life.Proxy.Awake(settled, watched...):
				pause := max(linger(plan)/4, 25*time.Millisecond)
				if !told {
					told, pause = true, 0
				}
				go func() { ended <- v.settle(ctx, r.world, r.story, pause) }()
				continue
			}
			return r.judge(ctx, t, scene, v, res)
		}
	}
}

// begin looks back at the last plan, and prepares the next one.
func (r *runner) begin(ctx context.Context, t *testing.T, plan lab.Plan) (*scene, *view, error) {
	t.Helper()
	if err := r.nothingLeft(ctx); err != nil {
		return nil, nil, err
	}
	if err := r.firstLife(t, plan); err != nil {
		return nil, nil, err
	}
	before, err := r.world.Recorder.Sync(ctx)
	if err != nil {
		return nil, nil, err
	}
	r.n++
	s := &scene{World: r.world, namespace: fmt.Sprintf("%s-%d", r.story.Name, r.n), since: before, seen: map[string]string{}}
	return s, &view{after: before, namespace: s.namespace}, s.open(ctx, r.story)
}

func rules(plan lab.Plan, life int) []faultproxy.Rule {
	if life < len(plan.Lives) {
		return plan.Lives[life]
	}
	return nil
}

func (r *runner) firstLife(t *testing.T, plan lab.Plan) error {
	t.Helper()
	if r.life != nil {
		return r.rearm(t, rules(plan, 0))
	}
	r.life = r.world.Operator(t, rules(plan, 0), flags()...)
	t.Cleanup(func() { r.life.End() }) // the last one
	return nil
}

// rearm gives the process other rules; one that the former rules have killed since anybody looked is followed by another.
func (r *runner) rearm(t *testing.T, rules []faultproxy.Rule) (err error) {
	t.Helper()
	if r.life.Proxy.Rearm(rules) == nil {
		return nil
	}
	r.life.End()
	r.life, err = r.world.Begin(t.Context(), rules, flags()...)
	return err
}

func (r *runner) nextLife(t *testing.T, plan lab.Plan, res *result) (err error) {
	t.Helper()
	res.note(r.life)
	r.life.End()
	r.life, err = r.world.Begin(t.Context(), rules(plan, res.lives), flags()...)
	res.lives++
	return err
}

// note what a life did before it is over.
func (res *result) note(life *lab.Life) {
	requests := life.Proxy.Requests()
	if res.writes == nil {
		res.writes = requests
	}
	for _, q := range requests {
		if q.Rule >= 0 {
			res.struck++
		}
		res.all = append(res.all, invariant.Write{
			Verb: q.Verb, Group: q.Group, Resource: q.Resource, Subresource: q.Subresource, Namespace: q.Namespace, Name: q.Name, UID: q.UID,
		})
	}
}

// judge checks everything about a story that has settled, and cleans up after it.
func (r *runner) judge(ctx context.Context, t *testing.T, s *scene, v *view, res *result) error {
	t.Helper()
	settled, err := r.world.Recorder.Sync(ctx)
	if err != nil {
		return err
	}
	res.note(r.life)
	r.left = v
	events := v.events(r.world)
	err = errors.Join(v.check(r.world), v.handsOff(events, res.all, r.world.Settings), s.tellsNobody(ctx), r.asReference(events))
	if r.n == 1 {
		time.Sleep(silence)
	}
	end, syncErr := r.world.Recorder.Sync(ctx)
	err = errors.Join(err, syncErr, v.quiet(r.world, settled, end))
	// The plan is over: what the operator writes from now on, such as the end of a finalizer, is none of its writes.
	return errors.Join(err, r.rearm(t, nil), s.clear(ctx))
}

// asReference compares the end with that of the first plan.
func (r *runner) asReference(events []history.Event) error {
	state := endstate.Of(events)
	if r.story.AnyWay {
		state = endstate.Plain(events)
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

// nothingLeft looks back at the last plan: nothing is left of its virtual machines and images.
func (r *runner) nothingLeft(ctx context.Context) error {
	if r.left == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, sweep)
	defer cancel()
	if err := r.left.awaitNothing(ctx, r.world); err != nil {
		return fmt.Errorf("after the plan before: %w", err)
	}
	r.left = nil
	return nil
}

func (r *runner) close(t *testing.T) error {
	t.Helper()
	return r.nothingLeft(t.Context())
}
