package plan_test

import (
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

func cdiCondition(kind cdiv1.DataVolumeConditionType, reason, message string) cdiv1.DataVolumeCondition {
	return cdiv1.DataVolumeCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message}
}

// What CDI says about a clone, and what that means.
func TestCloneFailures(t *testing.T) {
	const ready, bound, run = cdiv1.DataVolumeReady, cdiv1.DataVolumeBound, cdiv1.DataVolumeRunning
	for name, c := range map[string]struct {
		phase      cdiv1.DataVolumePhase
		conditions []cdiv1.DataVolumeCondition
		want       string
	}{
		"it has just begun":     {want: "DiskCloning"},
		"it is under way":       {cdiv1.CloneFromSnapshotSourceInProgress, []cdiv1.DataVolumeCondition{cdiCondition(ready, "TransferRunning", ""), cdiCondition(bound, "Pending", "PVC web Pending")}, "DiskCloning"},
		"it is scheduled":       {cdiv1.CloneScheduled, []cdiv1.DataVolumeCondition{cdiCondition(ready, "CloneScheduled", "Cloning from obs/ok-snap into other/restored scheduled")}, "DiskCloning"},
		"a pod copies":          {cdiv1.CloneInProgress, []cdiv1.DataVolumeCondition{{Type: run, Status: corev1.ConditionTrue, Reason: "Error", Message: "it failed before"}}, "DiskCloning"},
		"a copy failed":         {cdiv1.CloneInProgress, []cdiv1.DataVolumeCondition{cdiCondition(run, "Error", "no route to host")}, "CloneFailed, troubled"},
		"it is too small":       {cdiv1.Pending, []cdiv1.DataVolumeCondition{cdiCondition(bound, "CloneValidationFailed", "too small"), cdiCondition(ready, "CloneValidationFailed", "too small")}, "CloneFailed, finally"},
		"the snapshot is gone":  {cdiv1.Pending, []cdiv1.DataVolumeCondition{cdiCondition(ready, "CloneWithoutSource", "The source snapshot nosuch doesn't exist")}, "CloneFailed, troubled"},
		"over quota":            {cdiv1.Pending, []cdiv1.DataVolumeCondition{cdiCondition(bound, "ErrExceededQuota", "no room")}, "QuotaExceeded, troubled"},
		"over quota, in words":  {cdiv1.Pending, []cdiv1.DataVolumeCondition{cdiCondition(bound, "ErrClaimNotValid", `persistentvolumeclaims "web" is forbidden: exceeded quota: small`)}, "QuotaExceeded, troubled"},
		"CDI may not":           {cdiv1.Pending, []cdiv1.DataVolumeCondition{cdiCondition(ready, "NotAuthorized", "not authorized to clone")}, "NotAuthorized, finally"},
		"no storage class":      {"", []cdiv1.DataVolumeCondition{cdiCondition(bound, "ErrClaimNotValid", "no accessMode specified")}, "CloneFailed, finally"},
		"the storage is broken": {cdiv1.Pending, []cdiv1.DataVolumeCondition{cdiCondition(bound, "Pending", "failed to provision volume with StorageClass gp3")}, "CloneFailed, troubled"},
		"it has failed":         {cdiv1.Failed, nil, "CloneFailed, finally"},
	} {
		t.Run(name, func(t *testing.T) {
			w := cloning(t)
			w.cdi(c.phase, c.conditions...)
			d := plan.Next(w.snapshot(), settings, w.now)
			assert.Equal(t, c.want, told(d.Report.Disk))
			assert.Empty(t, d.Actions, "it would be made the same way again")
			assert.Equal(t, d.Report.Disk, d.Report.Blocking)
		})
	}
}

// cloning is a world whose disk has just been created.
func cloning(t *testing.T, mods ...vmMod) *world {
	t.Helper()
	w := newWorld(t.Fatalf, mods...)
	for _, step := range imageIsReady {
		step(w)
		w.settle()
	}
	return w
}

// A DataVolume cannot be changed: one that failed makes way for one that would be made another way.
func TestAFailedCloneIsReplacedWhenThatHelps(t *testing.T) {
	size := func(s string) func(*world) {
		return func(w *world) {
			q := resource.MustParse(s)
			w.changesSpec(func(spec *v1alpha1.VirtualMachineSpec) { spec.Resources.DiskSize = &q })
		}
	}
	for name, c := range map[string]struct {
		mod  func(*world)
		want []plan.Action
	}{
		"nothing has changed":             {func(*world) {}, nil},
		"another artifact":                {(*world).imageUpdated, []plan.Action{plan.DeleteDisk}},
		"another size":                    {size("40Gi"), []plan.Action{plan.DeleteDisk}},
		"a size that changes nothing":     {size("1Gi"), nil},
		"another artifact, not to be had": {func(w *world) { w.imageUpdated(); w.revoked() }, nil},
		"another artifact, not claimed":   {func(w *world) { w.imageUpdated(); w.counted = false }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := cloning(t)
			w.cloneRefused()
			w.settle()
			c.mod(w)
			d := plan.Next(w.snapshot(), settings, w.now)
			assert.Equal(t, c.want, d.Actions)
			assert.Equal(t, c.want != nil, d.Doubtful, "asked of the API server itself first")
		})
	}
}

func TestWhatIsSomebodyElsesIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		take func(*world)
		want string
	}{
		"the DataVolume": {func(w *world) { w.disk.OwnerReferences = nil }, "The DataVolume web-02134b3f does not belong"},
		"the machine":    {func(w *world) { w.machine.SetOwnerReferences(nil) }, "The VirtualMachine web of KubeVirt does not belong"},
		"a former one's machine": {func(w *world) {
			w.machine.SetOwnerReferences([]metav1.OwnerReference{{UID: "uid-former", Controller: new(true)}})
		}, "The VirtualMachine web of KubeVirt"},
	} {
		t.Run(name, func(t *testing.T) {
			w := cloning(t)
			for _, step := range steps(diskIsThere, guestIsUp) {
				step(w)
				w.settle()
			}
			c.take(w)
			d := plan.Next(w.snapshot(), settings, w.now)
			assert.Empty(t, d.Actions)
			assert.Equal(t, v1alpha1.ReasonNameTaken, d.Report.Stalled.Reason)
			assert.Contains(t, d.Report.Stalled.Message, c.want)
			assert.Equal(t, w.now.Add(plan.LookAgain), d.WakeAt, "its going may be no event")
		})
	}
}

// What seems to be gone is asked of the API server itself before it is believed.
func TestDoubt(t *testing.T) {
	upAndRunning := func() *world {
		w := cloning(t)
		for _, step := range steps(diskIsThere, guestIsUp) {
			step(w)
			w.settle()
		}
		return w
	}
	for name, c := range map[string]struct {
		mod  func(*world)
		want bool
	}{
		"nothing":                              {func(*world) {}, false},
		"the disk":                             {func(w *world) { w.disk = nil }, true},
		"the claim":                            {func(w *world) { w.claim = nil }, true},
		"the claim is Lost":                    {func(w *world) { w.halts(); w.claim.Status.Phase = corev1.ClaimLost }, true},
		"the machine":                          {func(w *world) { w.machine = nil }, false},
		"a deleted disk is about to be let go": {func(w *world) { w.deletesDisk(); w.halts() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := upAndRunning()
			c.mod(w)
			assert.Equal(t, c.want, plan.Next(w.snapshot(), settings, w.now).Doubtful)
		})
	}
}

func TestTheSizeOfTheDisk(t *testing.T) {
	asks := func(size string) vmMod {
		return func(vm *v1alpha1.VirtualMachine) {
			q := resource.MustParse(size)
			vm.Spec.Resources.DiskSize = &q
		}
	}
	assert.Equal(t, "1100Mi", cloning(t).vm.Status.Disk.Size.String(), "the snapshot's")
	assert.Equal(t, "1100Mi", cloning(t, asks("18Mi")).vm.Status.Disk.Size.String(), "never less")
	w := cloning(t, asks("18Gi"))
	assert.Equal(t, "18Gi", w.vm.Status.Disk.Size.String())
	w.imageGone()
	w.cloned()
	w.settle()
	assert.Equal(t, "18Gi", w.vm.Status.Disk.Size.String(), "it stays")
}

func TestFieldsThatAreNotTakenAreNotAppliedForEver(t *testing.T) {
	w := cloning(t)
	for _, step := range steps(diskIsThere, guestIsUp) {
		step(w)
		w.settle()
	}
	w.changesMachine()
	s := w.snapshot()
	assert.Equal(t, []plan.Action{plan.ApplyMachine}, plan.Next(s, settings, w.now).Actions)
	s.Untaken = []string{"spec.template.spec.domain.memory.guest"}
	assert.Empty(t, plan.Next(s, settings, w.now).Actions)
}
