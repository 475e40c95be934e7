package wsfault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/e2e/fault/lab"
	"github.com/pelotech/open-terrain/e2e/faultproxy"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/pelotech/open-terrain/e2e/invariant"
)

const (
	// patience is how long a plan may take, and sweep how long its end may.
	patience = 45 * time.Second
	sweep    = 20 * time.Second
	// settled is how long nothing may change before a story counts as over, and silence how long nothing may be written after
	// a story without a fault.
	settled = 300 * time.Millisecond
	silence = time.Second
)

// runner runs plans of one story in one world, one after the other.
type runner struct {
	world     *lab.World
	story     story
	n         int
	reference map[string]string
}

// flags of the operator: what takes seconds on a cluster takes less here.
func flags() []string {
	return append(lab.Alone(), "--trouble-debounce=1s", "--status-interval=100ms", "--zap-log-level=debug")
}

// run tells the story with the plan's faults, waits for its end, checks everything and clears up. The first plan is the reference
// for the others, and is without faults. It returns the writes of the first life; the error holds the plan.
func (r *runner) run(t *testing.T, plan lab.Plan) ([]faultproxy.Request, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p := &play{runner: r, plan: plan}
	err := p.all(ctx)
	if err != nil {
		err = fmt.Errorf("plan %s: %w", plan, err)
	}
	return p.first, err
}

// play is one telling.
type play struct {
	*runner
	plan  lab.Plan
	scene *scene
	life  *lab.Life
	lives int
	// first are the writes of the first life, all those of all lives until the story had settled.
	first, everything []faultproxy.Request
}

func (p *play) all(ctx context.Context) error {
	p.n++
	var err error
	if p.scene, err = open(ctx, p.world, fmt.Sprintf("%s-%d", p.story.name, p.n)); err != nil {
		return err
	}
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer func() { p.life.End() }()
	err = p.beside(ctx, func(ctx context.Context) error { return errors.Join(p.scene.tell(ctx, p.story.steps), ctx.Err()) })
	if err == nil {
		err = p.beside(ctx, p.settle)
	}
	p.note()
	if err != nil {
		err = errors.Join(err, errors.New(p.scene.excerpt()))
	} else {
		err = p.judge(ctx)
	}
	if rearm := p.life.Proxy.Rearm(nil); rearm != nil {
		return errors.Join(err, rearm)
	}
	return errors.Join(err, p.clear(context.WithoutCancel(ctx)))
}

// begin the next life, with its rules.
func (p *play) begin(ctx context.Context) (err error) {
	var rules []faultproxy.Rule
	if p.lives < len(p.plan.Lives) {
		rules = p.plan.Lives[p.lives]
	}
	p.lives++
	p.life, err = p.world.Begin(context.WithoutCancel(ctx), rules, flags()...)
	return err
}

// note what the life that runs has written.
func (p *play) note() {
	requests := p.life.Proxy.Requests()
	if p.first == nil {
		p.first = requests
	}
	p.everything = append(p.everything, requests...)
}

// beside does something while lives follow each other.
func (p *play) beside(ctx context.Context, do func(context.Context) error) error {
	ended := make(chan error, 1)
	go func() { ended <- do(ctx) }()
	for {
		select {
		case <-p.life.Proxy.Severed():
			p.note()
			p.life.End()
			if err := p.begin(ctx); err != nil {
				return err
			}
		case err := <-ended:
			return err
		}
	}
}

// settle returns when the story has come to its end, and nothing has changed for a moment.
func (p *play) settle(ctx context.Context) error {
	for {
		if _, err := p.world.Recorder.Sync(ctx); err != nil {
			return err
		}
		unsettled := p.unsettled()
		if unsettled == "" && p.life.Proxy.Resting(linger(p.plan)) && p.life.Proxy.Awake(settled, watched...) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not settled: %s: %w", unsettled, ctx.Err())
		case <-time.After(25 * time.Millisecond):
		}
	}
}

// linger is how long after a fault its consequences may come: the wait that the operator was told.
func linger(plan lab.Plan) time.Duration {
	for _, rules := range plan.Lives {
		for _, rule := range rules {
			if rule.Code == 429 {
				return 1300 * time.Millisecond
			}
		}
	}
	return 0
}

func (p *play) unsettled() string {
	events := p.scene.events()
	for _, e := range slices.Backward(events) {
		if time.Since(e.Seen) > settled {
			break
		}
		if busy := invariant.Quiet(p.world.Settings, []history.Event{e}); len(busy) > 0 {
			return invariant.Line(e)
		}
	}
	return stateOf(events).differs(p.story.ends, p.scene.name)
}

// judge checks everything about a story that has settled.
func (p *play) judge(ctx context.Context) error {
	if p.n == 1 {
		if err := p.quiet(ctx); err != nil {
			return err
		}
	}
	events := p.scene.events()
	var broken []string
	for _, check := range []func([]history.Event) []string{policyFirst, policyLast, oneAtATime, bystanders} {
		broken = append(broken, check(events)...)
	}
	broken = append(broken, handsOff(events, p.everything)...)
	end := stateOf(events).masked(p.scene.name)
	if p.reference == nil {
		p.reference = end
	}
	broken = append(broken, differences(end, p.reference)...)
	if len(broken) > 0 {
		return fmt.Errorf("%s\n%s", strings.Join(broken, "\n"), p.scene.excerpt())
	}
	return nil
}

// quiet demands that nothing is written once all is done.
func (p *play) quiet(ctx context.Context) error {
	from, err := p.world.Recorder.Sync(ctx)
	if err != nil {
		return err
	}
	time.Sleep(silence)
	if _, err := p.world.Recorder.Sync(ctx); err != nil {
		return err
	}
	window := slices.DeleteFunc(p.scene.events(), func(e history.Event) bool { return e.Revision <= from })
	if found := invariant.Quiet(p.world.Settings, window); len(found) > 0 {
		return fmt.Errorf("%v", found[0])
	}
	return nil
}

// clear deletes the story's workspaces, and demands that nothing of them is left.
func (p *play) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sweep)
	defer cancel()
	if err := p.scene.deleteAll(ctx); err != nil {
		return err
	}
	for {
		if _, err := p.world.Recorder.Sync(ctx); err != nil {
			return err
		}
		left := orphans(p.scene.events())
		if len(left) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("after the end: %s\n%s", strings.Join(left, "\n"), p.scene.excerpt())
		case <-time.After(25 * time.Millisecond):
		}
	}
}
