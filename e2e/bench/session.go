package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/pelotech/open-terrain/e2e/bench/arm"
	"github.com/pelotech/open-terrain/e2e/harness"
)

// Options of a session.
type Options struct {
	// Rows by name; none means all, or the quick ones when Quick is set.
	Rows  []string
	Quick bool
	// Rounds is how often each row is run with each arm.
	Rounds int
	// Images of the largest row.
	Images int
	// Settled is how long the settled operator is watched.
	Settled time.Duration
	// Operator is the path of an operator's executable; empty means that the one in the tree is built.
	Operator string
	// Profiles is a folder for CPU profiles, taken under the same load once more; empty means none.
	Profiles string
	// FloorArgs are further flags of the floor.
	FloorArgs []string
	// Log is told what goes on.
	Log io.Writer
}

// Result of a session: what is written to results.json.
type Result struct {
	Time    time.Time `json:"time"`
	Machine Machine   `json:"machine"`
	// Reference are figures of another operator, measured earlier and elsewhere.
	Reference string    `json:"reference"`
	Figures   []Figure  `json:"figures"`
	Runs      []arm.Run `json:"runs"`
	// After the largest row.
	Settled   *arm.Rest  `json:"settled,omitempty"`
	Restart   *arm.Fresh `json:"restart,omitempty"`
	Informers *arm.Fresh `json:"informers,omitempty"`

	settledAt arm.Load
}

// Reference is the issue's: the operator that this one replaces.
const Reference = "recorded earlier and elsewhere, not part of this run: the existing operator took 141 s for (40 images, 4 slots, 200ms), " +
	"with 5 syncing at once under a limit of 4, 38 order inversions, 14.1 writes and 8.1 event calls per image"

type session struct {
	Options
	tools  arm.Tools
	result *Result
}

// Run measures.
func Run(ctx context.Context, o Options) (*Result, error) {
	root, err := harness.Root()
	if err != nil {
		return nil, err
	}
	rows := choose(Rows(o.Images), o.Rows, o.Quick)
	growth := slices.Contains(o.Rows, Growth) || (len(o.Rows) == 0 && !o.Quick)
	if len(rows) == 0 && !growth {
		return nil, errors.New("there is no such row")
	}
	s := &session{Options: o, result: &Result{Time: time.Now(), Machine: describe(root), Reference: Reference}}
	if s.tools, err = arm.Build(ctx, o.Operator); err != nil {
		return nil, err
	}
	s.tools.FloorArgs = o.FloorArgs
	for i, row := range rows {
		if err := s.row(ctx, row, i == len(rows)-1); err != nil {
			return s.result, err
		}
	}
	if growth {
		if err := s.growth(ctx); err != nil {
			return s.result, err
		}
	}
	s.result.Figures = figures(s.result, rows)
	return s.result, nil
}

// row runs both arms in each round, in turn first. After the last row the settled operator is looked at.
func (s *session) row(ctx context.Context, row Row, last bool) error {
	for round := range s.Rounds {
		arms := []arm.Name{arm.Floor, arm.Ours}
		if round%2 == 1 {
			slices.Reverse(arms)
		}
		for _, name := range arms {
			after := s.nothing
			if last && round == s.Rounds-1 && name == arm.Ours {
				after = s.aftermath
			}
			if err := s.run(ctx, name, row.Load, after); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *session) nothing(context.Context, *arm.Lab) error { return nil }

// run measures one arm once.
func (s *session) run(ctx context.Context, name arm.Name, load arm.Load, after func(context.Context, *arm.Lab) error) (err error) {
	lab, err := s.lab(ctx, name, load)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	run, err := lab.Measure(ctx, "image")
	if err != nil {
		return err
	}
	s.add(run)
	if s.Profiles != "" {
		if err := lab.Profile(ctx, s.Profiles); err != nil {
			return err
		}
	}
	return after(ctx, lab)
}

func (s *session) lab(ctx context.Context, name arm.Name, load arm.Load) (*arm.Lab, error) {
	lab, err := arm.Start(ctx, name, load, s.tools)
	if err != nil {
		return nil, err
	}
	if s.result.Machine.Etcd == "" {
		s.result.Machine.Kubernetes, s.result.Machine.Etcd = lab.Describe()
		s.result.Machine.Print(s.Log)
	}
	return lab, nil
}

func (s *session) add(run arm.Run) {
	s.result.Runs = append(s.result.Runs, run)
	fmt.Fprintf(s.Log, "%-19s %s: %.2f s, %.1f ms per image (%.1f ms CPU), %.2f writes and %.2f event calls per image, %d reads; at once %d/%d/%d, inversions %d/%d/%d (slot/syncing/download) %s\n",
		run.Arm, run.Load, run.Wall.Seconds(), run.MsPerImage(), run.CPUPerImage(), run.PerImage(float64(run.Count.Writes)), run.PerImage(float64(run.Count.Events)), run.Count.Reads,
		run.Highest(0), run.Highest(1), run.Highest(2), run.Inversions(0), run.Inversions(1), run.Inversions(2), void(run.Void))
}

func void(reasons []string) string {
	if len(reasons) == 0 {
		return ""
	}
	return fmt.Sprintf("VOID: %q", reasons)
}

// aftermath looks at the settled operator, and at a new one over the settled state.
func (s *session) aftermath(ctx context.Context, lab *arm.Lab) error {
	s.result.settledAt = lab.Load
	rest, err := lab.Settled(ctx, s.Settled)
	if err != nil {
		return err
	}
	s.result.Settled = &rest
	fresh, err := lab.Restart(ctx)
	if err != nil {
		return err
	}
	s.result.Restart = &fresh
	if err := lab.StopSubject(); err != nil {
		return err
	}
	informers, err := lab.Informers(ctx)
	s.result.Informers = &informers
	return err
}

// growth runs the small load several times over, with each arm on a control plane of its own: one time is short.
func (s *session) growth(ctx context.Context) error {
	for _, name := range []arm.Name{arm.Floor, arm.Ours} {
		if err := s.batches(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) batches(ctx context.Context, name arm.Name) (err error) {
	lab, err := s.lab(ctx, name, growthLoad())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	for i := range growthRepeat {
		run, err := lab.Measure(ctx, fmt.Sprintf("batch-%d", i))
		if err != nil {
			return err
		}
		s.add(run)
	}
	return nil
}
