package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/desired"
	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
	"github.com/pelotech/open-terrain/vm-operator/internal/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"pgregory.net/rapid"
)

// anySnapshot is one that need not have come about in any way: caches may show anything.
func anySnapshot(t *rapid.T) plan.Snapshot {
	yes := func(what string) bool { return rapid.Bool().Draw(t, what) }
	gone := &metav1.Time{Time: epoch}
	s := plan.Snapshot{VM: newVM(templated, strategy(rapid.SampledFrom([]v1alpha1.RunStrategy{
		v1alpha1.RunAlways, v1alpha1.RunRerunOnFailure, v1alpha1.RunOnce, v1alpha1.RunManual, v1alpha1.RunHalted,
	}).Draw(t, "strategy"))), NamespaceLabels: namespaceLabels, Counted: yes("counted")}
	if yes("has status") {
		s.VM.Status.Disk = &v1alpha1.VirtualMachineDiskStatus{DataVolume: "d", UID: rapid.SampledFrom([]types.UID{"", "uid-disk", "uid-former"}).Draw(t, "disk UID")}
	}
	if yes("image") {
		s.Image = anyImage(t)
	}
	if yes("disk") {
		s.Disk = desired.Disk(s.VM, newWorld(t.Fatalf).anyImage())
		s.Disk.UID = "uid-disk"
		s.Disk.Status.Phase = rapid.SampledFrom([]cdiv1.DataVolumePhase{"", cdiv1.Pending, cdiv1.PendingPopulation, cdiv1.CloneInProgress, cdiv1.Succeeded, cdiv1.Failed}).Draw(t, "disk phase")
		if yes("disk is going") {
			s.Disk.DeletionTimestamp = gone
		}
		if yes("disk is bare") {
			s.Disk.Finalizers, s.Disk.Labels = nil, nil
		}
		if yes("disk is foreign") {
			s.Disk.OwnerReferences = nil
		}
		if yes("clone fails") {
			s.Disk.Status.Conditions = []cdiv1.DataVolumeCondition{cdiCondition(cdiv1.DataVolumeReady, "CloneWithoutSource", "gone")}
		}
	}
	if yes("claim") {
		s.Claim = &corev1.PersistentVolumeClaim{}
		s.Claim.Status.Phase = rapid.SampledFrom([]corev1.PersistentVolumeClaimPhase{corev1.ClaimBound, corev1.ClaimLost}).Draw(t, "claim phase")
	}
	anyMachine(t, &s)
	return s
}

func anyImage(t *rapid.T) *v1alpha1.VMDiskImage {
	w := newWorld(t.Fatalf)
	w.imageComes()
	for _, step := range []func(){w.imageReady, w.claims, w.imageDeleted, w.revoked} {
		if rapid.Bool().Draw(t, "image") {
			step()
		}
	}
	return w.image
}

func anyMachine(t *rapid.T, s *plan.Snapshot) {
	yes := func(what string) bool { return rapid.Bool().Draw(t, what) }
	if yes("cloud-init") {
		s.CloudInit = "wanted"
	}
	if yes("applied") {
		s.Applied = plan.SecretApplied{Fingerprint: rapid.SampledFrom([]string{"wanted", "other"}).Draw(t, "applied"), At: epoch}
	}
	if yes("machine") {
		machine, err := desired.Machine(s.VM, rapid.SampledFrom([]string{"", "wanted", "other"}).Draw(t, "annotation"))
		if err != nil {
			t.Fatal(err)
		}
		if yes("machine is foreign") {
			machine.SetOwnerReferences(nil)
		}
		machine.Object["status"] = map[string]any{"printableStatus": rapid.SampledFrom([]string{"", "Stopped", "Running", "Unknown", "Paused"}).Draw(t, "printable")}
		machine.SetUID("uid-machine")
		if yes("restart required") {
			machine.Object["status"].(map[string]any)["conditions"] = []any{map[string]any{
				"type": "RestartRequired", "status": "True", "lastTransitionTime": epoch.UTC().Format(time.RFC3339),
			}}
		}
		s.Machine = machine
	}
	if yes("instance") {
		phase := rapid.SampledFrom([]string{"", "Pending", "Scheduling", "Scheduled", "Running", "Unknown", "Succeeded", "Failed"}).Draw(t, "phase")
		s.Instance = &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": phase}}}
		s.Instance.SetCreationTimestamp(metav1.NewTime(epoch))
		s.Instance.SetOwnerReferences([]metav1.OwnerReference{{UID: rapid.SampledFrom([]types.UID{"uid-machine", "uid-other"}).Draw(t, "of"), Controller: new(true)}})
	}
}

// The laws hold for every snapshot, whether it can come about or not.
func TestTheLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySnapshot(t)
		now := epoch.Add(time.Duration(rapid.IntRange(-10, 7200).Draw(t, "seconds")) * time.Second)
		d := plan.Next(s, settings, now)
		does := func(a plan.Action) bool { return slices.Contains(d.Actions, a) }
		running := s.Instance != nil && !slices.Contains([]any{"Succeeded", "Failed"}, s.Instance.Object["status"].(map[string]any)["phase"])
		ours := func(o metav1.Object) bool { return metav1.IsControlledBy(o, s.VM) }
		switch {
		case does(plan.CreateDisk) && (s.Disk != nil || !plan.Usable(s)):
			t.Fatal("a disk is created without claim or admission, or a second one")
		case (does(plan.DeleteDisk) || does(plan.ReleaseDisk)) && (running || !ours(s.Disk) || !d.Doubtful):
			t.Fatal("a disk goes under a running guest, or without a question")
		case does(plan.KeepDisk) && (!ours(s.Disk) || s.Disk.DeletionTimestamp != nil):
			t.Fatal("a disk is kept that is somebody else's, or going")
		case does(plan.DeleteInstance) && (!slices.Contains([]any{"", "Pending", "Scheduling"}, s.Instance.Object["status"].(map[string]any)["phase"]) ||
			!ours(s.Machine) || !metav1.IsControlledBy(s.Instance, s.Machine) || !d.Doubtful):
			t.Fatal("an instance goes that may run, or is another machine's, or without a question")
		case does(plan.ApplySecret) && s.CloudInit == "":
			t.Fatal("a Secret is applied that cannot be made")
		case does(plan.ApplyMachine) && s.Machine == nil && !does(plan.ApplySecret) && s.Applied.Fingerprint != s.CloudInit:
			t.Fatal("a machine is made without its Secret")
		case does(plan.ApplySecret) && running && s.Instance.Object["status"].(map[string]any)["phase"] == "Running" && s.Machine != nil &&
			s.Machine.GetAnnotations()[v1alpha1.AnnotationCloudInit] == s.CloudInit:
			t.Fatal("a Secret is applied that a guest that runs has read")
		case does(plan.ApplyMachine) && s.Machine != nil && !ours(s.Machine):
			t.Fatal("somebody else's object is applied")
		case does(plan.ApplyMachine) && s.Machine == nil && (s.Disk == nil || !ours(s.Disk)):
			t.Fatal("a machine is made without a disk")
		case does(plan.CreateImage) && s.Image != nil:
			t.Fatal("an image is created that exists")
		}
		lawfulReport(t, s, d, now)
	})
}

// lawfulReport: what is told is well formed, and telling it again changes nothing.
func lawfulReport(t *rapid.T, s plan.Snapshot, d plan.Decision, now time.Time) {
	st := persisted(status.Of(s.VM, d.Report, metav1.NewTime(now)))
	if d.Report.Silent {
		return
	}
	if wrong := apitest.Wrong(st.Conditions, s.VM.Generation); len(wrong) > 0 {
		t.Fatalf("conditions: %v", wrong)
	}
	if st.Message == "" || st.Phase != v1alpha1.VirtualMachinePhaseOf(st.Conditions) {
		t.Fatalf("phase %s, message %q", st.Phase, st.Message)
	}
	if st.Phase == v1alpha1.VirtualMachineReady && st.Deadline != nil {
		t.Fatal("Ready has a deadline")
	}
}
