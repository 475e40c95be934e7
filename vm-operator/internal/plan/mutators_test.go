package plan_test

import (
	"time"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// People and the disk-sync-operator.

func (w *world) imageComes() {
	if w.image == nil {
		w.image = apitest.Image("ubuntu", apitest.In("farm"), apitest.Spec(func(s *v1alpha1.VMDiskImageSpec) {
			s.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll}
		}))
		w.image.UID = w.uid("image")
		w.line("user", "creates the image")
	}
}

func (w *world) imageIs(phase v1alpha1.Phase, message string) {
	if w.image != nil && !w.image.IsReady() {
		w.image.Status.Phase, w.image.Status.Message = phase, message
		w.line("disk-sync", "%s: %s", phase, message)
	}
}

func (w *world) imageQueued() {
	w.imageIs(v1alpha1.PhaseQueued, "Waiting for a slot; 2 were ahead when it was queued")
}
func (w *world) imageSyncing() { w.imageIs(v1alpha1.PhaseSyncing, "Attempt 1 of 3 is under way") }
func (w *world) imageFails()   { w.imageIs(v1alpha1.PhaseFailed, "SourceNotFound: 404") }

func (w *world) imageReady() { w.artifact("rev1") }

func (w *world) imageUpdated() {
	if w.image != nil && w.image.IsReady() {
		w.artifact("rev2")
	}
}

func (w *world) artifact(revision string) {
	if w.image == nil || w.image.DeletionTimestamp != nil {
		return
	}
	size := resource.MustParse("1100Mi")
	w.image.Status.Artifact = &v1alpha1.Artifact{Revision: revision, Snapshot: "ubuntu-" + revision, RestoreSize: &size}
	apitest.Condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSnapshotReady, metav1.NewTime(epoch))(w.image)
	w.image.Status.Phase = v1alpha1.PhaseSucceeded
	w.line("disk-sync", "Succeeded: %s", revision)
}

func (w *world) imageDeleted() {
	if w.image != nil && w.image.DeletionTimestamp == nil {
		w.image.DeletionTimestamp = &metav1.Time{Time: w.now}
		w.line("user", "deletes the image")
	}
}

func (w *world) imageGone() {
	if w.image != nil {
		w.image, w.counted = nil, false
		w.line("user", "the image is gone")
	}
}

func (w *world) revoked() { w.grants(v1alpha1.NamespacesFromSame, "revokes the grant") }
func (w *world) granted() { w.grants(v1alpha1.NamespacesFromAll, "grants the image") }

func (w *world) grants(from v1alpha1.NamespacesFrom, line string) {
	if w.image != nil {
		w.image.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: from}
		w.line("user", "%s", line)
	}
}

// claims count the VM where the image admits it; the disk-sync-operator protects what is counted.
func (w *world) claims() {
	if w.image == nil || w.image.DeletionTimestamp != nil {
		return
	}
	holds := w.image.Admits(w.vm.Namespace, namespaceLabels)
	if holds == w.counted {
		return
	}
	w.counted = holds
	if holds {
		w.image.Status.References, w.image.Finalizers = &v1alpha1.References{Count: 1}, []string{v1alpha1.FinalizerProtection}
	} else {
		w.image.Status.References, w.image.Finalizers = &v1alpha1.References{}, nil
	}
	w.line("claims", "%d", w.image.Status.References.Count)
}

// CDI.

func (w *world) cdi(phase cdiv1.DataVolumePhase, conditions ...cdiv1.DataVolumeCondition) {
	if w.disk == nil || w.disk.DeletionTimestamp != nil || w.disk.Status.Phase == cdiv1.Succeeded {
		return
	}
	w.disk.Status.Phase, w.disk.Status.Conditions = phase, conditions
	text := ""
	for _, c := range conditions {
		text += ": " + c.Reason
	}
	w.line("cdi", "%s%s", phase, text)
}

func (w *world) clones() { w.cdi(cdiv1.CloneFromSnapshotSourceInProgress) }
func (w *world) cloned() {
	if w.disk != nil && w.disk.DeletionTimestamp == nil && w.disk.Status.Phase != cdiv1.Succeeded {
		w.cdi(cdiv1.Succeeded)
		w.claim = &corev1.PersistentVolumeClaim{} // CDI makes it again as long as it clones
		w.claim.UID = w.uid("claim")
		w.claim.Status.Phase = corev1.ClaimBound
	}
}

// claimAgain: somebody deleted the claim, and CDI was there before us.
func (w *world) claimAgain() {
	if w.disk == nil || w.disk.Status.Phase != cdiv1.Succeeded || w.disk.DeletionTimestamp != nil || w.instance != nil {
		return
	}
	w.claim = &corev1.PersistentVolumeClaim{}
	w.claim.UID, w.claim.Status.Phase = w.uid("claim"), corev1.ClaimPending
	w.line("cdi", "makes the claim again, that somebody deleted")
}

// clonesAgain: CDI says what it does only then.
func (w *world) clonesAgain() {
	if w.claim != nil && w.claim.Status.Phase == corev1.ClaimPending {
		w.disk.Status.Phase = cdiv1.CloneFromSnapshotSourceInProgress
		w.line("cdi", "%s", w.disk.Status.Phase)
	}
}

// clonedAgain into the claim that is there.
func (w *world) clonedAgain() {
	if w.claim != nil && w.claim.Status.Phase == corev1.ClaimPending {
		w.disk.Status.Phase, w.claim.Status.Phase = cdiv1.Succeeded, corev1.ClaimBound
		w.line("cdi", "%s", w.disk.Status.Phase)
	}
}
func (w *world) awaitsConsumer() { w.cdi(cdiv1.PendingPopulation) }
func (w *world) cloneRefused() {
	w.cdi(cdiv1.Pending, cdiv1.DataVolumeCondition{
		Type: cdiv1.DataVolumeReady, Status: corev1.ConditionFalse, Reason: "CloneValidationFailed",
		Message: "The clone doesn't meet the validation requirements: target resources requests storage size is smaller than the source 1048576 < 71135396",
	})
}
func (w *world) cloneWithoutSource() {
	w.cdi(cdiv1.Pending, cdiv1.DataVolumeCondition{
		Type: cdiv1.DataVolumeReady, Status: corev1.ConditionFalse, Reason: "CloneWithoutSource",
		Message: "The source snapshot ubuntu-rev1 doesn't exist",
	})
}

// KubeVirt.

func (w *world) kubevirt(printable string, conditions ...any) {
	if w.machine == nil || w.machine.GetDeletionTimestamp() != nil {
		return
	}
	w.machine.Object["status"] = map[string]any{"printableStatus": printable, "conditions": conditions}
	w.line("kubevirt", "%s", printable)
}

func condition(kind, status, reason, message string) any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": message}
}

func (w *world) stopped() { w.kubevirt("Stopped", condition("Ready", "False", "VMINotExists", "")) }

func (w *world) starts() {
	if w.machine != nil && w.instance == nil && w.wants() && w.machine.GetDeletionTimestamp() == nil {
		w.instance = &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": "Scheduling"}}}
		w.instance.SetCreationTimestamp(metav1.NewTime(w.now))
		w.instance.SetOwnerReferences([]metav1.OwnerReference{{UID: w.machine.GetUID(), Controller: new(true)}})
		w.kubevirt("Starting")
	}
}

// wants says that the machine is to run by itself.
func (w *world) wants() bool {
	strategy, _, _ := unstructured.NestedString(w.machine.Object, "spec", "runStrategy")
	return v1alpha1.RunStrategy(strategy).NeedsGuest()
}

func (w *world) runs() {
	if w.instance == nil || w.claim == nil || w.secret == "" {
		return // its pod waits for the volumes
	}
	w.instance.Object["status"] = map[string]any{"phase": "Running", "interfaces": []any{
		map[string]any{"name": "pod", "mac": "AA:BB", "ipAddress": "10.0.0.7"},
	}}
	w.kubevirt("Running", condition("Ready", "True", "", ""))
}

// halts is the end of a guest: the instance goes.
func (w *world) halts() {
	if w.instance != nil {
		w.instance = nil
		w.stopped()
	}
}

func (w *world) crashes() {
	w.kubevirt("CrashLoopBackOff", condition("Ready", "False", "VMINotExists", ""))
	w.instance = nil
}

func (w *world) unschedulable() {
	w.kubevirt("ErrorUnschedulable", condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available: 1 Insufficient memory"))
}

// asksForRestart: the instance keeps the spec that it was made with.
func (w *world) asksForRestart() {
	if w.machine != nil && w.instance != nil {
		c := condition("RestartRequired", "True", "", "memory updated in template spec").(map[string]any)
		c["lastTransitionTime"] = w.now.UTC().Format(time.RFC3339)
		w.kubevirt("ErrorUnschedulable", c, condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available: 1 Insufficient memory"))
	}
}

// People and the garbage collector.

func (w *world) deletesDisk() {
	if w.disk != nil && w.disk.DeletionTimestamp == nil {
		w.disk.DeletionTimestamp = &metav1.Time{Time: w.now}
		w.line("user", "deletes the DataVolume")
	}
}

func (w *world) deletesClaim() {
	if w.claim != nil {
		w.claim.DeletionTimestamp = &metav1.Time{Time: w.now}
		w.line("user", "deletes the claim")
	}
}

func (w *world) deletesMachine() {
	if w.machine != nil {
		w.machine.SetDeletionTimestamp(&metav1.Time{Time: w.now})
		w.line("user", "deletes KubeVirt's machine")
	}
}

func (w *world) deletesSecret() {
	if w.secret != "" {
		w.secret = ""
		w.line("user", "deletes the Secret")
	}
}

func (w *world) changesMachine() {
	if w.machine != nil {
		_ = unstructured.SetNestedField(w.machine.Object, "9Gi", "spec", "template", "spec", "domain", "memory", "guest")
		w.line("user", "changes the memory of KubeVirt's machine")
	}
}

func (w *world) unlabels() {
	if w.disk != nil && w.disk.DeletionTimestamp == nil {
		w.disk.Labels, w.disk.Finalizers = nil, nil
		w.line("user", "takes labels and finalizers off the DataVolume")
	}
}

// gc ends what is being deleted and is held by nothing.
func (w *world) gc() {
	if w.machine != nil && w.machine.GetDeletionTimestamp() != nil {
		w.machine, w.instance = nil, nil
		w.line("gc", "KubeVirt's machine is gone")
	}
	if w.disk != nil && w.disk.DeletionTimestamp != nil && len(w.disk.Finalizers) == 0 {
		w.disk = nil
		w.deletesClaim()
		w.line("gc", "the DataVolume is gone")
	}
	if w.claim != nil && w.claim.DeletionTimestamp != nil && !w.guestRuns() {
		w.claim = nil
		w.line("gc", "the claim is gone")
	}
}

func (w *world) changesSpec(change func(*v1alpha1.VirtualMachineSpec)) {
	change(&w.vm.Spec)
	w.vm.Generation++
	w.line("user", "changes the spec")
}

func (w *world) wantsMemory(memory string) {
	size := resource.MustParse(memory)
	w.changesSpec(func(s *v1alpha1.VirtualMachineSpec) { s.Resources.Memory = &size })
}

func (w *world) runStrategy(strategy v1alpha1.RunStrategy) func() {
	return func() { w.changesSpec(func(s *v1alpha1.VirtualMachineSpec) { s.RunStrategy = strategy }) }
}

func (w *world) refuses(child plan.Child, reason v1alpha1.VirtualMachineReason, message string) {
	w.refusals[child] = plan.Refusal{Reason: reason, Message: message}
	w.line("apiserver", "will refuse the %s: %s", child, reason)
}

func (w *world) takesSecret() {
	w.refuses(plan.Secret, v1alpha1.ReasonNameTaken, "The Secret web-02134b3f does not belong to this virtual machine")
}

func (w *world) quota() {
	w.refuses(plan.Disk, v1alpha1.ReasonQuotaExceeded, `datavolumes "web" is forbidden: exceeded quota: small`)
}
