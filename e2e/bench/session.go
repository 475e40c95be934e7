package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
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
	// VMs of the row vm; the row claims has half as many.
	VMs int
	// Workspaces of the row workspace.
	Workspaces int
	// Settled is how long the settled operator is watched.
	Settled time.Duration
	// Operator, VMOperator and WorkspaceOperator are paths of the operators' executables; empty means that the one in the tree is
	// built.
	Operator, VMOperator, WorkspaceOperator string
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
	// Aftermaths of the last row of each operator.
	Aftermaths []Aftermath `json:"aftermaths,omitempty"`
}

// Aftermath is a settled operator, a new process over the settled state, and a process with the same informers alone.
type Aftermath struct {
	Load      arm.Load  `json:"load"`
	Settled   arm.Rest  `json:"settled"`
	Restart   arm.Fresh `json:"restart"`
	Informers arm.Fresh `json:"informers"`
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
func Run(ctx context.Context, o Options) (result *Result, err error) {
	root, err := harness.Root()
	if err != nil {
		return nil, err
	}
	rows := choose(Rows(o.Images, o.VMs, o.Workspaces), o.Rows, o.Quick)
	growth := slices.Contains(o.Rows, Growth) || (len(o.Rows) == 0 && !o.Quick)
	if len(rows) == 0 && !growth {
		return nil, errors.New("there is no such row")
	}
	s := &session{Options: o, result: &Result{Time: time.Now(), Machine: describe(root), Reference: Reference}}
	if s.tools, err = arm.Build(ctx, s.operators(rows, growth)); err != nil {
		return nil, err
	}
	s.tools.FloorArgs = o.FloorArgs
	if s.tools.Manifests, err = os.MkdirTemp("", "open-terrain-bench-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.tools.Manifests)) }()
	if err := s.measure(ctx, rows, growth); err != nil {
		return s.result, err
	}
	s.result.Figures = figures(s.result, rows)
	return s.result, nil
}

func (s *session) measure(ctx context.Context, rows []Row, growth bool) error {
	for i, row := range rows {
		if err := s.row(ctx, row, settles(rows, i)); err != nil {
			return err
		}
	}
	if growth {
		return s.growth(ctx)
	}
	return nil
}

// operators are those that the rows need, with the paths that were given.
func (s *session) operators(rows []Row, growth bool) map[arm.Name]string {
	given := map[arm.Name]string{arm.DiskSync: s.Operator, arm.VM: s.VMOperator, arm.Workspace: s.WorkspaceOperator}
	needed := map[arm.Name]string{}
	if growth {
		needed[arm.DiskSync] = given[arm.DiskSync]
	}
	for _, row := range rows {
		needed[row.Load.Operator()] = given[row.Load.Operator()]
	}
	return needed
}

// row runs all arms in each round, in turn first. After a row that settles, the settled operator is looked at.
func (s *session) row(ctx context.Context, row Row, settles bool) error {
	for round := range s.Rounds {
		arms := row.arms()
		if round%2 == 1 {
			slices.Reverse(arms)
		}
		for _, name := range arms {
			after := s.nothing
			if settles && round == s.Rounds-1 && name == row.Load.Operator() {
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
	run, err := lab.Measure(ctx, strings.ToLower(load.Unit()))
	if err != nil {
		return err
	}
	s.add(run)
	if name == arm.Workspace && s.tools.Digest == "" {
		if err := errors.Join(lab.Keep(ctx, arm.Primer), lab.Keep(ctx, strings.ToLower(load.Unit()))); err != nil {
			return err
		}
		s.tools.Digest = run.Workspaces.Digest
	}
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
	unit := run.Load.Unit()
	fmt.Fprintf(s.Log, "%-19s %s: %.2f s, %.1f ms per %s (%.1f ms CPU), %.2f writes and %.2f event calls per %s, %d reads; %s %s\n",
		run.Arm, run.Load, run.Wall.Seconds(), run.MsPerUnit(), unit, run.CPUPerUnit(), run.PerUnit(float64(run.Count.Writes)), run.PerUnit(float64(run.Count.Events)), unit, run.Count.Reads,
		particulars(run), void(run.Void))
}

func particulars(run arm.Run) string {
	if w := run.Workspaces; w != nil {
		text := fmt.Sprintf("%v", w.Created)
		if run.Rise != nil {
			text += fmt.Sprintf("; all Ready in %.2f s after %d pieces of news, %+v", run.Rise.Wall.Seconds(), run.Rise.News, *w.Pace)
		}
		return text
	}
	if run.Machines == nil {
		return fmt.Sprintf("at once %d/%d/%d, inversions %d/%d/%d (slot/syncing/download)",
			run.Highest(0), run.Highest(1), run.Highest(2), run.Inversions(0), run.Inversions(1), run.Inversions(2))
	}
	text := fmt.Sprintf("%d writes of images", run.ImageWrites)
	if r := run.Release; r != nil {
		text += fmt.Sprintf("; all deleted in %.2f s with %d writes of images", r.Wall.Seconds(), r.ImageWrites)
	}
	return text
}

func void(reasons []string) string {
	if len(reasons) == 0 {
		return ""
	}
	return fmt.Sprintf("VOID: %q", reasons)
}

// aftermath looks at the settled operator, and at a new one over the settled state.
func (s *session) aftermath(ctx context.Context, lab *arm.Lab) (err error) {
	a := Aftermath{Load: lab.Load}
	if a.Settled, err = lab.Settled(ctx, s.Settled); err != nil {
		return err
	}
	if a.Restart, err = lab.Restart(ctx); err != nil {
		return err
	}
	if err = lab.StopSubject(); err != nil {
		return err
	}
	if a.Informers, err = lab.Informers(ctx); err != nil {
		return err
	}
	s.result.Aftermaths = append(s.result.Aftermaths, a)
	return nil
}

// growth runs the small load several times over, with each arm on a control plane of its own: one time is short.
func (s *session) growth(ctx context.Context) error {
	for _, name := range []arm.Name{arm.Floor, arm.DiskSync} {
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
