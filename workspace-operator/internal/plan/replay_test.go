package plan_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/plan"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

// story is a row of mutators; the operator settles before the first and after each.
type story struct {
	mods  []wsMod
	steps []step
	// what it ends with
	phase v1alpha1.WorkspacePhase // empty: the workspace is gone
	ready string                  // the condition Ready, as "Status Reason"
}

func steps(lists ...[]step) []step { return slices.Concat(lists...) }

var (
	admitted = []step{(*world).granted}
	allRun   = []step{runs("db"), runs("tools"), serves("api")}
	up       = steps(admitted, allRun)
	goes     = []step{(*world).deleted, (*world).collects, (*world).stops, (*world).namespaceGoes}
)

const allReady = "True AllReady"

func isolate(yes bool) step {
	return edit(fmt.Sprintf("sets isolate: %v", yes), func(s *v1alpha1.WorkspaceSpec) { s.Network = &v1alpha1.WorkspaceNetwork{Isolate: new(yes)} })
}

func image(n int, to string) step {
	return edit("wants the image "+to, func(s *v1alpha1.WorkspaceSpec) { s.VirtualMachines[n].Spec.VMDiskImageName = to })
}

func apiImage(to string) step {
	return edit("wants the container image "+to, func(s *v1alpha1.WorkspaceSpec) { s.Containers[0].Image = to })
}

func renamed(to string) step {
	return edit("renames the container to "+to, func(s *v1alpha1.WorkspaceSpec) { s.Containers[0].Name = to })
}

var (
	dropsTools = edit("removes tools", func(s *v1alpha1.WorkspaceSpec) { s.VirtualMachines = s.VirtualMachines[:1] })
	scalesDown = edit("scales the container to 0", func(s *v1alpha1.WorkspaceSpec) { s.Containers[0].Replicas = new(int32(0)) })
	onMultus   = apitest.Member("router", "router-image", func(s *v1alpha1.WorkspaceVirtualMachineSpec) {
		s.Interfaces = []v1alpha1.VirtualMachineInterface{{Network: "lan"}}
	})
	inShared = apitest.Targets("shared")
)

var stories = map[string]story{
	"images-are-queued": {
		steps: steps([]step{place(2), place(1)}, admitted, []step{
			imageQueued("db"), imageQueued("tools"), pending("api"), serves("api"), imageSyncing("db"), cloning("db"), runs("db"), imageSyncing("tools"), runs("tools"),
		}),
		phase: v1alpha1.WorkspaceReady, ready: allReady,
	},
	"a-long-queue-moves-on": {
		steps: []step{place(40), place(39), place(30), place(20), place(19), place(2), place(1), place(5)},
		phase: v1alpha1.WorkspaceProvisioning, ready: "False Queued",
	},
	"empty":                {mods: []wsMod{func(w *v1alpha1.Workspace) { w.Spec.VirtualMachines, w.Spec.Containers = nil, nil }}, steps: admitted, phase: v1alpha1.WorkspaceReady, ready: allReady},
	"deleted-when-ready":   {steps: steps(up, goes), phase: ""},
	"deleted-while-queued": {steps: []step{(*world).deleted}, phase: ""},
	"deleted-when-admitted": {
		steps: steps(admitted, []step{imageQueued("db")}, goes), phase: "",
	},
	"deleted-and-held": {
		steps: steps(up, []step{holds(plan.VirtualMachine, "db"), (*world).deleted, (*world).collects, (*world).sleeps, (*world).letsGo, (*world).stops, (*world).namespaceGoes}), phase: "",
	},
	"deleted-and-a-pod-does-not-stop": {
		steps: steps(up, []step{(*world).deleted, (*world).collects, func(w *world) {
			at := w.ws.DeletionTimestamp
			w.running["db"] = plan.Remnant{Kind: "Pod", Name: "virt-launcher-db", Node: "node-1", DeletedAt: at}
		}, (*world).sleeps, (*world).stops, (*world).namespaceGoes}), phase: "",
	},
	"deleted-with-its-namespace": {
		steps: steps(up, []step{loses(plan.Namespace, "ws-lab"), (*world).deleted, (*world).namespaceGoes}), phase: "",
	},
	"deleted-from-a-shared-namespace": {
		mods:  []wsMod{inShared},
		steps: steps([]step{takes(plan.Namespace, "shared")}, up, []step{(*world).deleted, (*world).collects, (*world).stops}), phase: "",
	},
	"namespace-missing": {
		mods:  []wsMod{inShared},
		steps: steps(admitted, []step{(*world).sleeps, takes(plan.Namespace, "shared")}, allRun), phase: v1alpha1.WorkspaceReady, ready: allReady,
	},
	"namespace-taken": {
		steps: steps([]step{takes(plan.Namespace, "ws-lab")}, admitted, []step{(*world).sleeps, (*world).strangersGo}, allRun), phase: v1alpha1.WorkspaceReady, ready: allReady,
	},
	"namespace-refused": {
		steps: steps([]step{refuses(plan.Namespace, "ws-lab", v1alpha1.WorkspaceForbidden, "may not create namespaces")}, admitted,
			[]step{(*world).heals, (*world).sleeps}, allRun), phase: v1alpha1.WorkspaceReady, ready: allReady,
	},
	"namespace-lost": {
		steps: steps(up, []step{loses(plan.Namespace, "ws-lab"), (*world).namespaceGoes}, allRun), phase: v1alpha1.WorkspaceReady, ready: allReady,
	},
	"policy-lost":          {steps: steps(up, []step{loses(plan.NetworkPolicy, "workspace")}), phase: v1alpha1.WorkspaceReady, ready: allReady},
	"policy-opened":        {steps: steps(up, []step{(*world).opensPolicy}), phase: v1alpha1.WorkspaceReady, ready: allReady},
	"policy-name-is-taken": {steps: steps([]step{takes(plan.NetworkPolicy, "workspace")}, admitted, []step{(*world).strangersGo, (*world).sleeps}, allRun), phase: v1alpha1.WorkspaceReady, ready: allReady},
	"policy-refused": {
		steps: steps([]step{refuses(plan.NetworkPolicy, "workspace", v1alpha1.WorkspaceRejected, "no such CIDR")}, admitted),
		phase: v1alpha1.WorkspaceFailed, ready: "False Rejected",
	},
	"not-isolated-any-more":  {steps: steps(up, []step{isolate(false), isolate(true)}), phase: v1alpha1.WorkspaceReady, ready: allReady},
	"on-a-secondary-network": {mods: []wsMod{onMultus}, steps: steps(up, []step{runs("router")}), phase: v1alpha1.WorkspaceReady, ready: allReady},
	"entry-removed":          {steps: steps(up, []step{dropsTools, (*world).collects, (*world).stops}), phase: v1alpha1.WorkspaceReady, ready: allReady},
	"entry-removed-and-held": {
		steps: steps(up, []step{holds(plan.VirtualMachine, "tools"), dropsTools, (*world).collects, (*world).sleeps, (*world).letsGo, (*world).stops}),
		phase: v1alpha1.WorkspaceReady, ready: allReady,
	},
	"entry-renamed": {steps: steps(up, []step{renamed("web"), (*world).collects, (*world).stops, serves("web")}), phase: v1alpha1.WorkspaceReady, ready: allReady},
	"entry-added": {
		steps: steps(up, []step{edit("adds cache", func(s *v1alpha1.WorkspaceSpec) {
			s.Containers = append(s.Containers, v1alpha1.WorkspaceContainer{Name: "cache", Image: "redis:8"})
		}), serves("cache")}), phase: v1alpha1.WorkspaceReady, ready: allReady,
	},
	"a-container-takes-the-name-of-a-machine": {
		steps: steps(up, []step{edit("makes tools a container", func(s *v1alpha1.WorkspaceSpec) {
			s.VirtualMachines = s.VirtualMachines[:1]
			s.Containers = append(s.Containers, v1alpha1.WorkspaceContainer{Name: "tools", Image: "tools:1", Ports: []v1alpha1.WorkspacePort{{ContainerPort: 80}}})
		}), (*world).collects, (*world).stops, serves("tools")}), phase: v1alpha1.WorkspaceReady, ready: allReady,
	},
	"image-changed": {
		steps: steps(up, []step{image(0, "db-image-2"), (*world).collects, (*world).stops, imageQueued("db"), runs("db")}), phase: v1alpha1.WorkspaceReady, ready: allReady,
	},
	"machine-deleted":    {steps: steps(up, []step{loses(plan.VirtualMachine, "db"), (*world).collects, (*world).stops, runs("db")}), phase: v1alpha1.WorkspaceReady, ready: allReady},
	"deployment-deleted": {steps: steps(up, []step{loses(plan.Deployment, "api"), loses(plan.Service, "api"), (*world).collects, serves("api")}), phase: v1alpha1.WorkspaceReady, ready: allReady},
	"machine-name-taken": {
		steps: steps(admitted, []step{loses(plan.VirtualMachine, "db"), func(w *world) { w.collects(); takes(plan.VirtualMachine, "db")(w) }, runs("tools"), serves("api")}),
		phase: v1alpha1.WorkspaceFailed, ready: "False NameTaken",
	},
	"machine-refused": {
		steps: steps([]step{refuses(plan.VirtualMachine, "db", v1alpha1.WorkspaceRejected, "the webhook says no")}, admitted, []step{runs("tools"), serves("api"), (*world).heals, (*world).sleeps, runs("db")}),
		phase: v1alpha1.WorkspaceReady, ready: allReady,
	},
	"machine-fails-and-recovers": {steps: steps(up, []step{fails("db"), imageQueued("db"), runs("db")}), phase: v1alpha1.WorkspaceReady, ready: allReady},
	"quota":                      {steps: steps(up, []step{quota("api"), (*world).sleeps, serves("api")}), phase: v1alpha1.WorkspaceReady, ready: allReady},
	"image-pull": {
		steps: steps(admitted, []step{runs("db"), runs("tools"), waits("api", "ErrImagePull", "not found"), pullFails("api"), (*world).sleeps, apiImage("my-registry/api:2"), serves("api")}),
		phase: v1alpha1.WorkspaceReady, ready: allReady,
	},
	"unschedulable": {
		steps: steps(admitted, []step{runs("db"), runs("tools"), noNode("api", "0/3 nodes are available"), noNode("api", "0/4 nodes are available"), (*world).sleeps}),
		phase: v1alpha1.WorkspaceFailed, ready: "False Unschedulable",
	},
	"crashes-while-the-database-is-queued": {
		steps: steps(admitted, []step{runs("tools"), imageQueued("db"), crashes("api"), func(w *world) { w.passes(2 * time.Hour) }, runs("db"), (*world).sleeps, serves("api")}),
		phase: v1alpha1.WorkspaceReady, ready: allReady,
	},
	"a-crash-loop-is-ready-for-moments": {
		steps: steps(up, []step{crashes("api"), runsAgain("api"), crashes("api"), runsAgain("api"), func(w *world) { w.passes(20 * time.Second) }, crashes("api"), func(w *world) { w.passes(time.Minute) },
			runsAgain("api"), crashes("api"), runsAgain("api"), (*world).sleeps}),
		phase: v1alpha1.WorkspaceReady, ready: allReady,
	},
	"a-container-ends-once": {steps: steps(up, []step{runsAgain("api"), crashes("api"), runsAgain("api"), (*world).sleeps}), phase: v1alpha1.WorkspaceReady, ready: allReady},
	"secret-missing": {
		steps: steps(admitted, []step{runs("db"), runs("tools"), waits("api", "CreateContainerConfigError", `secret "password" not found`), (*world).sleeps, serves("api")}),
		phase: v1alpha1.WorkspaceReady, ready: allReady,
	},
	"timeout": {
		steps: steps(admitted, []step{runs("db"), imageQueued("tools"), serves("api"), func(w *world) { w.passes(3 * time.Hour) }, cloning("tools"), (*world).sleeps, runs("tools")}),
		phase: v1alpha1.WorkspaceReady, ready: allReady,
	},
	"scaled-to-nothing": {steps: steps(up, []step{scalesDown, serves("api")}), phase: v1alpha1.WorkspaceReady, ready: allReady},
}

// play tells the story; the operator crashes after the write of that number, if it is above 0.
func (s story) play(t *testing.T, crashAt int) *world {
	t.Helper()
	var w *world
	w = newWorld(func(format string, args ...any) {
		t.Helper()
		t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), w.transcript())
	}, s.mods...)
	w.crashAt = crashAt
	w.breathes()
	for _, step := range s.steps {
		step(w)
		w.breathes()
	}
	return w
}

func (s story) ends(t *testing.T, w *world) {
	t.Helper()
	if s.phase == "" {
		assert.Nil(t, w.ws, w.transcript())
		assert.Empty(t, w.running)
		return
	}
	require.NotNil(t, w.ws)
	assert.Equal(t, s.phase, w.ws.Status.Phase, w.transcript())
	assert.Equal(t, s.ready, apitest.ConditionOf(w.ws.Status.Conditions, v1alpha1.ConditionReady), w.transcript())
}

func TestStories(t *testing.T) {
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			w := s.play(t, 0)
			golden(t, name, w.transcript())
			s.ends(t, w)
			if s.phase == v1alpha1.WorkspaceReady {
				assert.Nil(t, w.ws.Status.Deadline)
				assert.Nil(t, w.ws.Status.TroubledSince)
				assert.NotNil(t, w.ws.Status.ProvisionedAt)
			}
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run go test with -update")
	assert.Equal(t, string(want), got)
}

// A crash after any write leaves a state from which the story ends as it would have. Many stories begin alike: what comes before
// the crash is tried once.
func TestStoriesSurviveACrashAfterEveryWrite(t *testing.T) {
	tried := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(stories)) {
		s := stories[name]
		whole := s.play(t, 0)
		for k := 1; k <= whole.writes; k++ {
			before := fmt.Sprintln(len(s.mods), whole.lines[:whole.marks[k-1]])
			if tried[before] {
				continue
			}
			tried[before] = true
			w := s.play(t, k)
			require.Contains(t, w.transcript(), "crashes", name)
			s.ends(t, w)
			assert.LessOrEqual(t, w.writes, whole.writes+1, "%s, crash after write %d: no write twice, but a word that was to wait\n%s", name, k, w.transcript())
		}
	}
}

// Whatever happens in whatever order, the laws hold at each write; and when all is well again, the workspace is Ready; and when
// it is deleted then, nothing of it remains, and what is somebody else's does.
func TestAnyOrderOfEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w *world
		mods := []wsMod{}
		if rapid.Bool().Draw(t, "shared") {
			mods = append(mods, inShared)
		}
		w = newWorld(func(format string, args ...any) {
			t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), w.transcript())
		}, mods...)
		names := slices.Sorted(maps.Keys(happenings))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "crash") == 0 {
				w.crashAt = w.writes + rapid.IntRange(1, 3).Draw(t, "in")
			}
			happenings[rapid.SampledFrom(names).Draw(t, "what")](w)
			if rapid.Bool().Draw(t, "at once") {
				w.settle()
			}
		}
		w.recovers()
		takes(plan.Deployment, "stranger")(w)
		w.leaves()
	})
}

// recovers: all is well again.
func (w *world) recovers() {
	if w.ws.Spec.TargetNamespace != "" {
		takes(plan.Namespace, "shared")(w)
	}
	w.heals()
	for range 10 {
		for _, step := range []step{(*world).letsGo, (*world).strangersGo, (*world).collects, (*world).stops, (*world).namespaceGoes, (*world).sleeps, (*world).granted} {
			step(w)
			w.breathes()
		}
		if w.ws.Spec.TargetNamespace != "" {
			takes(plan.Namespace, "shared")(w)
			w.breathes()
		}
		for _, entry := range w.ws.Spec.VirtualMachines {
			runs(entry.Name)(w)
		}
		for _, entry := range w.ws.Spec.Containers {
			serves(entry.Name)(w)
		}
		w.breathes()
		if w.ws.Status.Phase == v1alpha1.WorkspaceReady && w.ws.Status.ObservedGeneration == w.ws.Generation {
			return
		}
	}
	w.fail("it does not become Ready")
}

func (w *world) leaves() {
	w.deleted()
	for range 5 {
		for _, step := range []step{(*world).letsGo, (*world).collects, (*world).stops} {
			step(w)
			w.breathes()
		}
		if w.ws != nil && w.ws.OwnsNamespace() {
			w.namespaceGoes()
			w.breathes()
		}
	}
	switch {
	case w.ws != nil:
		w.fail("it does not go")
	case len(w.vms)+len(w.services)+len(w.policies)+len(w.running) > 0:
		w.fail("something of it is still there")
	case w.namespace != nil && w.deployments["stranger"] == nil:
		w.fail("somebody else's Deployment went with it")
	}
}

var happenings = map[string]step{
	"granted": (*world).granted, "granted again": (*world).granted, "place 1": place(1), "place 7": place(7), "slot lost": func(w *world) { w.slot.Held = false },
	"db queued": imageQueued("db"), "db runs": runs("db"), "db fails": fails("db"), "tools runs": runs("tools"), "tools cloning": cloning("tools"),
	"api serves": serves("api"), "api pending": pending("api"), "api crashes": crashes("api"), "api runs again": runsAgain("api"), "api pulls": pullFails("api"), "api quota": quota("api"), "api no node": noNode("api", "0/3"),
	"all run": func(w *world) { runs("db")(w); runs("tools")(w); serves("api")(w) },
	"isolate": isolate(true), "open": isolate(false), "image": image(0, "another"), "image back": image(0, "db-image"), "container image": apiImage("other:2"), "scale": scalesDown,
	"rename": renamed("web"), "rename back": renamed("api"), "drop": dropsTools,
	"lose db": loses(plan.VirtualMachine, "db"), "lose api": loses(plan.Deployment, "api"), "lose service": loses(plan.Service, "api"), "lose policy": loses(plan.NetworkPolicy, "workspace"),
	"lose namespace": loses(plan.Namespace, "ws-lab"), "namespace goes": (*world).namespaceGoes, "open policy": (*world).opensPolicy,
	"take namespace": takes(plan.Namespace, "ws-lab"), "shared comes": takes(plan.Namespace, "shared"), "take policy": takes(plan.NetworkPolicy, "workspace"), "take db": takes(plan.VirtualMachine, "db"),
	"take service": takes(plan.Service, "api"), "strangers go": (*world).strangersGo, "hold db": holds(plan.VirtualMachine, "db"), "hold service": holds(plan.Service, "api"), "let go": (*world).letsGo,
	"refuse namespace": refuses(plan.Namespace, "ws-lab", v1alpha1.WorkspaceForbidden, "no"), "refuse policy": refuses(plan.NetworkPolicy, "workspace", v1alpha1.WorkspaceRejected, "no"),
	"refuse db": refuses(plan.VirtualMachine, "db", v1alpha1.WorkspaceQuotaExceeded, "no"), "heal": (*world).heals,
	"collect": (*world).collects, "stop": (*world).stops, "a second": func(w *world) { w.passes(time.Second) }, "a while": func(w *world) { w.passes(2 * time.Minute) },
	"an age": func(w *world) { w.passes(time.Hour) }, "sleep": (*world).sleeps,
}
