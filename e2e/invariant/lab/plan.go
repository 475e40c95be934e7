package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/faultproxy"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is how long a plan may take.
const patience = 15 * time.Second

// Story is the life of one image.
type Story struct {
	Name string
	// Image to create, in a namespace of its own.
	Image func(w *World, namespace string) *otv1alpha1.VMDiskImage
	// Want and Attempts are its end, whatever the faults.
	Want     otv1alpha1.Phase
	Attempts int32
	// Downloads is the path of the image at the server and how many downloads of it are allowed; none are counted when
	// the path is empty.
	Downloads func(namespace string) (path string, most int)
}

// Plan is what goes wrong in a story: the rules of each life of the operator. A life after the last one has none.
type Plan struct {
	Story string              `json:"story"`
	Lives [][]faultproxy.Rule `json:"lives"`
}

func (p Plan) String() string {
	line, err := json.Marshal(p)
	if err != nil {
		return err.Error()
	}
	return string(line)
}

// Runner runs plans of one story in one world, one after the other. The operator's last life in a plan is the first of
// the next one.
type Runner struct {
	World *World
	Story Story
	life  *Life
	n     int
}

// Result of a plan.
type Result struct {
	// Writes that the first life asked for.
	Writes []faultproxy.Request
	// Lives is how many processes there were; Struck how many of their rules.
	Lives, Struck int
	Took          time.Duration
}

// Run tells the story with the plan's faults, waits for its end and checks everything. The error holds the plan.
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
	before, err := r.World.Recorder.Sync(ctx)
	if err != nil {
		return result, err
	}
	if err := r.firstLife(t, plan.rules(0)); err != nil {
		return result, err
	}
	r.n++
	namespace := fmt.Sprintf("%s-%d", r.Story.Name, r.n)
	if err := r.World.Namespace(ctx, namespace); err != nil {
		return result, err
	}
	image := r.Story.Image(r.World, namespace)
	if err := r.World.Client.Create(ctx, image); err != nil {
		return result, err
	}
	ended := make(chan error, 1)
	go func() { ended <- r.World.Settle(ctx) }()
	for {
		select {
		case <-r.life.Proxy.Severed():
			result.note(r.life)
			r.life.End()
			if r.life, err = r.World.begin(t.Context(), plan.rules(result.Lives), Alone()...); err != nil {
				return result, err
			}
			result.Lives++
		case err := <-ended:
			result.note(r.life)
			if err = errors.Join(err, r.World.Check(before)); err != nil {
				return result, err
			}
			return result, r.verify(ctx, image)
		}
	}
}

func (p Plan) rules(life int) []faultproxy.Rule {
	if life < len(p.Lives) {
		return p.Lives[life]
	}
	return nil
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

// note what a life did before it is over.
func (r *Result) note(life *Life) {
	requests := life.Proxy.Requests()
	if r.Writes == nil {
		r.Writes = requests
	}
	for _, request := range requests {
		if request.Rule >= 0 {
			r.Struck++
		}
	}
}

// verify looks at how the story ended.
func (r *Runner) verify(ctx context.Context, image *otv1alpha1.VMDiskImage) error {
	if err := r.World.Client.Get(ctx, client.ObjectKeyFromObject(image), image); err != nil {
		return err
	}
	if image.Status.Phase != r.Story.Want || image.Status.Attempts != r.Story.Attempts {
		return fmt.Errorf("it ends %s after %d attempts, not %s after %d: %s",
			image.Status.Phase, image.Status.Attempts, r.Story.Want, r.Story.Attempts, image.Status.Message)
	}
	if r.Story.Downloads == nil {
		return nil
	}
	path, most := r.Story.Downloads(image.Namespace)
	if stats := r.World.Sim.Images.Of(path); stats.Complete > most {
		return fmt.Errorf("%d downloads of %s, and at most %d are allowed", stats.Complete, path, most)
	}
	return nil
}
