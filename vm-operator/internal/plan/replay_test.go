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
	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

// story is a row of mutators; the operator settles before the first and after each.
type story struct {
	mods  []vmMod
	steps []func(*world)
	// what it ends with
	phase v1alpha1.VirtualMachinePhase
	ready string // the condition Ready, as "Status Reason"
	disks int    // created
}

func steps(lists ...[]func(*world)) []func(*world) { return slices.Concat(lists...) }

var (
	imageIsReady = []func(*world){(*world).imageComes, (*world).imageReady, (*world).claims}
	diskIsThere  = []func(*world){(*world).clones, (*world).cloned}
	guestIsUp    = []func(*world){(*world).stopped, (*world).starts, (*world).runs}
	up           = steps(imageIsReady, diskIsThere, guestIsUp)
	ends         = []func(*world){(*world).halts, (*world).gc, (*world).gc}
)

func templated(vm *v1alpha1.VirtualMachine) {
	spec := apitest.Image("ubuntu").Spec
	vm.Spec.VMDiskImageTemplate = &spec
}

func strategy(s v1alpha1.RunStrategy) vmMod {
	return func(vm *v1alpha1.VirtualMachine) { vm.Spec.RunStrategy = s }
}

func ignored(vm *v1alpha1.VirtualMachine) { vm.Spec.IgnoreOnDeploy = true }

const running = "True Running"

var stories = map[string]story{
	"image-is-ready": {steps: up, phase: v1alpha1.VirtualMachineReady, ready: running, disks: 1},
	"image-comes-later": {
		steps: steps([]func(*world){(*world).imageComes, (*world).claims, (*world).imageQueued, (*world).imageSyncing, (*world).imageReady}, diskIsThere, guestIsUp),
		phase: v1alpha1.VirtualMachineReady, ready: running, disks: 1,
	},
	"image-from-the-template": {
		mods:  []vmMod{templated},
		steps: steps([]func(*world){(*world).claims, (*world).imageQueued, (*world).imageReady}, diskIsThere, guestIsUp),
		phase: v1alpha1.VirtualMachineReady, ready: running, disks: 1,
	},
	"image-is-another": {
		mods:  []vmMod{templated, func(vm *v1alpha1.VirtualMachine) { vm.Spec.VMDiskImageTemplate.Checksum = "md5:00" }},
		steps: steps([]func(*world){func(w *world) { w.imageGone(); w.imageComes() }}, up),
		phase: v1alpha1.VirtualMachineReady, ready: running, disks: 1,
	},
	"image-never-comes": {steps: []func(*world){(*world).sleeps}, phase: v1alpha1.VirtualMachineFailed, ready: "False ImageMissing"},
	"image-fails-and-recovers": {
		steps: steps([]func(*world){(*world).imageComes, (*world).claims, (*world).imageFails, (*world).imageQueued, (*world).imageReady}, diskIsThere, guestIsUp),
		phase: v1alpha1.VirtualMachineReady, ready: running, disks: 1,
	},
	"image-not-allowed": {
		steps: []func(*world){(*world).imageComes, (*world).imageReady, (*world).revoked, (*world).sleeps, (*world).granted, (*world).claims},
		phase: v1alpha1.VirtualMachineProvisioning, ready: "False DiskCloning", disks: 1,
	},
	"grant-revoked-later": {
		steps: steps(up, []func(*world){(*world).revoked, (*world).claims, (*world).deletesDisk}, ends),
		phase: v1alpha1.VirtualMachineProvisioning, ready: "False ImageNotAllowed", disks: 1,
	},
	"image-lost": {
		mods:  []vmMod{templated},
		steps: steps(up, []func(*world){(*world).imageDeleted, (*world).imageGone, (*world).deletesDisk}, ends, []func(*world){(*world).claims, (*world).imageReady}, diskIsThere, guestIsUp),
		phase: v1alpha1.VirtualMachineReady, ready: running, disks: 2,
	},
	"ignored-on-deploy": {
		mods: []vmMod{ignored}, steps: steps(imageIsReady, diskIsThere, []func(*world){(*world).stopped, (*world).starts}),
		phase: v1alpha1.VirtualMachineReady, ready: "True NotStarted", disks: 1,
	},
	"halted-and-started": {
		steps: steps(up, []func(*world){func(w *world) { w.runStrategy(v1alpha1.RunHalted)() }, (*world).halts, func(w *world) { w.runStrategy(v1alpha1.RunAlways)() }, (*world).starts, (*world).runs}),
		phase: v1alpha1.VirtualMachineReady, ready: running, disks: 1,
	},
	"first-consumer": {
		steps: steps(imageIsReady, []func(*world){(*world).awaitsConsumer, (*world).starts, (*world).clones, (*world).cloned, (*world).runs}),
		phase: v1alpha1.VirtualMachineReady, ready: running, disks: 1,
	},
	"first-consumer-not-started": {
		mods: []vmMod{ignored}, steps: steps(imageIsReady, []func(*world){(*world).awaitsConsumer, (*world).stopped}),
		phase: v1alpha1.VirtualMachineReady, ready: "True NotStarted", disks: 1,
	},
	"disk-deleted-while-running": {
		steps: steps(up, []func(*world){(*world).deletesDisk}, ends, diskIsThere, guestIsUp),
		phase: v1alpha1.VirtualMachineReady, ready: running, disks: 2,
	},
	"claim-deleted-while-running": {
		steps: steps(up, []func(*world){(*world).deletesClaim}, ends, diskIsThere, guestIsUp),
		phase: v1alpha1.VirtualMachineReady, ready: running, disks: 2,
	},
	"claim-made-again-while-stopped": {
		mods:  []vmMod{ignored},
		steps: steps(imageIsReady, diskIsThere, []func(*world){(*world).stopped, (*world).claimAgain, (*world).clonesAgain, (*world).clonedAgain}),
		phase: v1alpha1.VirtualMachineReady, ready: "True NotStarted", disks: 1,
	},
	"disk-lost-while-stopped": {
		mods: []vmMod{ignored}, steps: steps(imageIsReady, diskIsThere, []func(*world){(*world).stopped, (*world).deletesDisk, (*world).gc}, diskIsThere),
		phase: v1alpha1.VirtualMachineReady, ready: "True NotStarted", disks: 2,
	},
	"clone-refused": {
		steps: steps(imageIsReady, []func(*world){(*world).cloneRefused}), phase: v1alpha1.VirtualMachineFailed, ready: "False CloneFailed", disks: 1,
	},
	"image-updated-before-the-clone": {
		steps: steps(imageIsReady, []func(*world){(*world).cloneWithoutSource, (*world).imageUpdated, (*world).gc}, diskIsThere, guestIsUp),
		phase: v1alpha1.VirtualMachineReady, ready: running, disks: 2,
	},
	"quota": {
		steps: steps([]func(*world){(*world).quota}, imageIsReady, []func(*world){(*world).sleeps, (*world).sleeps, (*world).heals}, diskIsThere, guestIsUp),
		phase: v1alpha1.VirtualMachineReady, ready: running, disks: 1,
	},
	"password-missing": {
		steps: steps([]func(*world){func(w *world) {
			w.missing = &plan.Refusal{Reason: v1alpha1.ReasonSecretMissing, Message: "There is no Secret p"}
		}}, imageIsReady, diskIsThere, []func(*world){(*world).sleeps, (*world).heals}, guestIsUp),
		phase: v1alpha1.VirtualMachineReady, ready: running, disks: 1,
	},
	"machine-refused": {
		steps: steps([]func(*world){func(w *world) { w.refuses(plan.Machine, v1alpha1.ReasonRefused, "malformed MAC") }}, imageIsReady, diskIsThere,
			[]func(*world){(*world).heals}, guestIsUp),
		phase: v1alpha1.VirtualMachineReady, ready: running, disks: 1,
	},
	"unschedulable": {
		steps: steps(imageIsReady, diskIsThere, []func(*world){(*world).starts, (*world).unschedulable, (*world).sleeps, (*world).runs}),
		phase: v1alpha1.VirtualMachineReady, ready: running, disks: 1,
	},
	"unschedulable-and-changed": {
		steps: steps(imageIsReady, diskIsThere, []func(*world){(*world).starts, (*world).unschedulable, (*world).sleeps, (*world).sleeps,
			func(w *world) { w.wantsMemory("2Gi") }, (*world).asksForRestart, (*world).starts, (*world).runs}),
		phase: v1alpha1.VirtualMachineReady, ready: running, disks: 1,
	},
	"crash-loop": {
		steps: steps(imageIsReady, diskIsThere, []func(*world){(*world).starts, (*world).crashes, (*world).sleeps}),
		phase: v1alpha1.VirtualMachineFailed, ready: "False CrashLooping", disks: 1,
	},
	"machine-deleted": {
		steps: steps(up, []func(*world){(*world).deletesMachine, (*world).gc}, guestIsUp), phase: v1alpha1.VirtualMachineReady, ready: running, disks: 1,
	},
	"drift": {
		steps: steps(up, []func(*world){(*world).changesMachine, (*world).unlabels}), phase: v1alpha1.VirtualMachineReady, ready: running, disks: 1,
	},
	"secret-deleted-before-the-start": {
		mods:  []vmMod{strategy(v1alpha1.RunHalted)},
		steps: steps(imageIsReady, diskIsThere, []func(*world){(*world).stopped, (*world).deletesSecret, func(w *world) { w.passes(time.Hour); w.runStrategy(v1alpha1.RunAlways)() }, (*world).starts, (*world).runs}),
		phase: v1alpha1.VirtualMachineReady, ready: running, disks: 1,
	},
	"secret-deleted-during-the-start": {
		steps: steps(imageIsReady, diskIsThere, []func(*world){(*world).starts, (*world).deletesSecret, (*world).sleeps, (*world).sleeps, (*world).runs}),
		phase: v1alpha1.VirtualMachineReady, ready: running, disks: 1,
	},
	"secret-deleted-while-running": {
		steps: steps(up, []func(*world){(*world).deletesSecret, (*world).halts, (*world).starts, (*world).sleeps, (*world).runs}),
		phase: v1alpha1.VirtualMachineReady, ready: running, disks: 1,
	},
	"secret-is-somebody-elses": {
		steps: steps([]func(*world){(*world).takesSecret}, imageIsReady, diskIsThere, []func(*world){(*world).sleeps, (*world).heals}, guestIsUp),
		phase: v1alpha1.VirtualMachineReady, ready: running, disks: 1,
	},
	"password-not-authorized": {
		steps: steps([]func(*world){func(w *world) {
			w.missing = &plan.Refusal{Reason: v1alpha1.ReasonNotAuthorized, Message: "The operator may not read the Secret p"}
		}}, imageIsReady, diskIsThere, []func(*world){(*world).sleeps, (*world).heals}, guestIsUp),
		phase: v1alpha1.VirtualMachineReady, ready: running, disks: 1,
	},
	"update": {
		steps: steps(up, []func(*world){func(w *world) { w.wantsMemory("4Gi") }, func(w *world) {
			w.kubevirt("Running", condition("Ready", "True", "", ""), condition("RestartRequired", "True", "", "memory updated in template spec"))
		}, (*world).halts, (*world).starts, (*world).runs}), phase: v1alpha1.VirtualMachineReady, ready: running, disks: 1,
	},
	"timeout": {
		steps: steps(imageIsReady, diskIsThere, []func(*world){(*world).starts}, slices.Repeat([]func(*world){(*world).sleeps}, 7), []func(*world){(*world).runs}),
		phase: v1alpha1.VirtualMachineReady, ready: running, disks: 1,
	},
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
	w.settle()
	for _, step := range s.steps {
		step(w)
		w.settle()
	}
	return w
}

func TestStories(t *testing.T) {
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			w := s.play(t, 0)
			golden(t, name, w.transcript())
			assert.Equal(t, s.phase, w.vm.Status.Phase)
			assert.Equal(t, s.ready, apitest.ConditionOf(w.vm.Status.Conditions, v1alpha1.ConditionReady))
			assert.Equal(t, s.disks, w.disks)
			if s.phase == v1alpha1.VirtualMachineReady {
				assert.Nil(t, w.vm.Status.Deadline)
				assert.Nil(t, w.vm.Status.TroubledSince)
				assert.Equal(t, w.disk.UID, w.vm.Status.Disk.UID)
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

// A crash after any write leaves a state from which the story ends as it would have.
func TestStoriesSurviveACrashAfterEveryWrite(t *testing.T) {
	for name, s := range stories {
		whole := s.play(t, 0)
		for k := 1; k <= whole.writes; k++ {
			w := s.play(t, k)
			require.Contains(t, w.transcript(), "crashes")
			assert.Equal(t, s.phase, w.vm.Status.Phase, "%s, crash after write %d:\n%s", name, k, w.transcript())
			assert.Equal(t, s.disks, w.disks, "%s, crash after write %d", name, k)
			assert.LessOrEqual(t, w.writes-w.again, whole.writes-whole.again, "%s, crash after write %d: no write twice, but that of what is never read\n%s", name, k, w.transcript())
		}
	}
}

// Whatever happens in whatever order, the laws hold at each write; and when all is well again, the machine is Ready.
func TestAnyOrderOfEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w *world
		mods := []vmMod{templated, strategy(rapid.SampledFrom([]v1alpha1.RunStrategy{v1alpha1.RunAlways, v1alpha1.RunHalted}).Draw(t, "strategy"))}
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
		w.heals()
		for range 10 {
			if w.vm.Status.Phase == v1alpha1.VirtualMachineReady && w.disk.DeletionTimestamp == nil && w.machine.GetDeletionTimestamp() == nil {
				return
			}
			if w.image != nil && w.image.DeletionTimestamp != nil {
				w.imageGone()
			}
			if w.disk != nil && w.disk.DeletionTimestamp != nil { // it is kept as long as the guest runs
				w.halts()
			}
			for _, step := range steps([]func(*world){(*world).gc, (*world).settle, (*world).granted, (*world).claims}, []func(*world){(*world).clonedAgain}, up, []func(*world){(*world).sleeps, (*world).runs}) {
				step(w)
				w.settle()
			}
		}
		w.fail("it does not become Ready")
	})
}

var happenings = map[string]func(*world){
	"image comes": (*world).imageComes, "image queued": (*world).imageQueued, "image syncing": (*world).imageSyncing, "image fails": (*world).imageFails,
	"image ready": (*world).imageReady, "image updated": (*world).imageUpdated, "image deleted": (*world).imageDeleted, "image gone": (*world).imageGone,
	"revoked": (*world).revoked, "granted": (*world).granted, "claims": (*world).claims, "claims again": (*world).claims,
	"clones": (*world).clones, "cloned": (*world).cloned, "consumer": (*world).awaitsConsumer, "refused": (*world).cloneRefused, "without source": (*world).cloneWithoutSource,
	"claim again": (*world).claimAgain, "clones again": (*world).clonesAgain, "cloned again": (*world).clonedAgain,
	"stopped": (*world).stopped, "starts": (*world).starts, "runs": (*world).runs, "halts": (*world).halts, "crashes": (*world).crashes, "unschedulable": (*world).unschedulable, "restart": (*world).asksForRestart,
	"disk deleted": (*world).deletesDisk, "claim deleted": (*world).deletesClaim, "machine deleted": (*world).deletesMachine, "secret deleted": (*world).deletesSecret,
	"machine changed": (*world).changesMachine, "labels off": (*world).unlabels, "gc": (*world).gc, "gc again": (*world).gc,
	"memory": func(w *world) { w.wantsMemory("4Gi") }, "quota": (*world).quota, "secret taken": (*world).takesSecret, "healed": (*world).heals,
	"a second": func(w *world) { w.passes(time.Second) }, "a while": func(w *world) { w.passes(2 * time.Minute) }, "an age": func(w *world) { w.passes(time.Hour) },
	"sleeps":    (*world).sleeps,
	"restarted": func(w *world) { w.counted = false },
}

// The whole is told in few writes: the budget of a virtual machine whose image is ready, its share of the claim aside.
func TestWritesFromCreationToReady(t *testing.T) {
	s := stories["image-is-ready"]
	w := newWorld(t.Fatalf)
	for _, step := range imageIsReady {
		step(w)
	}
	w.settle()
	for _, step := range steps(diskIsThere, guestIsUp) {
		step(w)
		w.settle()
	}
	assert.Equal(t, s.phase, w.vm.Status.Phase)
	assert.LessOrEqual(t, w.writes, 6, w.transcript())
}

func TestANewVirtualMachineWaitsQuietlyToBeCounted(t *testing.T) {
	w := newWorld(t.Fatalf)
	w.imageComes()
	w.imageReady()
	w.now = epoch.Add(300 * time.Millisecond)
	assert.False(t, w.reconcile(), "it takes a moment")
	assert.Equal(t, epoch.Add(10*time.Second), w.wakeAt)
	w.sleeps()
	assert.True(t, w.reconcile())
	assert.Equal(t, "False ImageClaiming", apitest.ConditionOf(w.vm.Status.Conditions, v1alpha1.ConditionImageReady))
	w.vm.Status, w.now = v1alpha1.VirtualMachineStatus{}, epoch.Add(-time.Hour)
	assert.True(t, w.reconcile(), "clocks differ")
}

func TestAStartNeedsNoWordUntilItHasLasted(t *testing.T) {
	w := newWorld(t.Fatalf)
	for _, step := range imageIsReady {
		step(w)
		w.settle()
	}
	require.Equal(t, "False DiskCloning", apitest.ConditionOf(w.vm.Status.Conditions, v1alpha1.ConditionReady))
	for _, step := range diskIsThere {
		step(w)
		w.settle()
	}
	require.NotNil(t, w.machine)
	assert.Equal(t, "False DiskCloning", apitest.ConditionOf(w.vm.Status.Conditions, v1alpha1.ConditionReady), "it is started in a moment")
	failing := w.snapshot()
	failing.Machine, failing.Failing = nil, "apply the machine: no answer"
	assert.False(t, plan.Next(failing, settings, w.now).Report.Silent, "KubeVirt's API is away")
	assert.Less(t, w.wakeAt.Sub(w.now), 4*time.Second)
	w.sleeps()
	w.settle()
	assert.Equal(t, "False Starting", apitest.ConditionOf(w.vm.Status.Conditions, v1alpha1.ConditionReady))
	assert.Equal(t, "True DiskReady", apitest.ConditionOf(w.vm.Status.Conditions, v1alpha1.ConditionDiskReady))
}

// A virtual machine that is being deleted only lets its disk go.
func TestDeletion(t *testing.T) {
	w := newWorld(t.Fatalf)
	for _, step := range up {
		step(w)
		w.settle()
	}
	w.vm.DeletionTimestamp = &metav1.Time{Time: w.now}
	d := plan.Next(w.snapshot(), settings, w.now)
	assert.Equal(t, []plan.Action{plan.ReleaseDisk}, d.Actions, "a guest still runs, and goes with it")
	assert.True(t, d.Report.Silent)
	w.disk.Finalizers = nil
	assert.Empty(t, plan.Next(w.snapshot(), settings, w.now).Actions)
}

// Status holds whole seconds: a trouble that is noticed in the middle of one lasts no less for it.
func TestNothingComesTooEarly(t *testing.T) {
	w := newWorld(t.Fatalf)
	for _, step := range steps(imageIsReady, diskIsThere, []func(*world){(*world).starts}) {
		step(w)
		w.settle()
	}
	noticed := epoch.Add(10*time.Second + 900*time.Millisecond)
	w.now = noticed
	w.unschedulable()
	w.settle()
	w.now = noticed.Add(settings.TroubleDebounce - time.Millisecond)
	w.settle()
	assert.Equal(t, v1alpha1.VirtualMachineProvisioning, w.vm.Status.Phase)
	assert.Less(t, w.wakeAt.Sub(w.now), 2*time.Second)
	w.sleeps()
	w.settle()
	assert.Equal(t, v1alpha1.VirtualMachineFailed, w.vm.Status.Phase)
}
