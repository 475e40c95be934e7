package plan

import (
	"slices"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// diskStep clones the disk once, and again when it is lost. It is lost when it was ready by status and has gone, or when its
// claim has; both are asked of the API server itself before they are believed.
func diskStep(s Snapshot, image step) step {
	refusal, refusedDisk := s.Refusals[Disk]
	switch {
	case refusedDisk:
		return step{Verdict: refused(refusal), lost: wasReady(s)}
	case s.Disk == nil:
		return diskMissing(s, image)
	case !owned(s, s.Disk):
		return step{Verdict: bad(Final, v1alpha1.ReasonNameTaken,
			"The DataVolume %s does not belong to this virtual machine: delete or rename it", s.Disk.Name)}
	case s.Disk.DeletionTimestamp != nil:
		return diskGoing(s)
	}
	made := diskPresent(s)
	made.lost = made.lost || replaced(s)
	if !protected(s.Disk) || !labelled(s) {
		made.actions = append(made.actions, KeepDisk)
	}
	return made
}

func diskMissing(s Snapshot, image step) step {
	st := step{lost: wasReady(s), doubtful: wasReady(s)}
	switch {
	case Usable(s):
		st.Verdict, st.actions = cloningVerdict(s, st.lost, s.Image.Status.Artifact.Snapshot), []Action{CreateDisk}
	case losing(s, st.lost):
		st.Verdict = bad(image.Weight, v1alpha1.ReasonDiskLost, "The disk was lost; another one is cloned when the image is ready")
	default:
		st.Verdict = bad(image.Weight, v1alpha1.ReasonWaiting, "Waiting for the image")
	}
	return st
}

// diskGoing keeps a disk that somebody deleted for as long as a guest uses it: without our finalizer the data would be gone
// the moment that the guest stops, without a word.
func diskGoing(s Snapshot) step {
	if guestRuns(s) {
		return step{Verdict: bad(Waits, v1alpha1.ReasonDiskDeleted,
			"The DataVolume %s was deleted; it is kept until the guest stops, and its data are lost then", s.Disk.Name), usable: true}
	}
	st := step{
		Verdict:  bad(Waits, v1alpha1.ReasonDiskDeleted, "The DataVolume %s was deleted; another one is cloned when it is gone", s.Disk.Name),
		doubtful: protected(s.Disk),
	}
	if losing(s, false) { // by us
		st.Reason, st.Message = v1alpha1.ReasonDiskLost, "The disk was lost; another one is cloned when what is left of it is gone"
	}
	if protected(s.Disk) {
		st.actions = []Action{ReleaseDisk}
	}
	return st
}

func diskPresent(s Snapshot) step {
	switch s.Disk.Status.Phase {
	case cdiv1.Succeeded:
		return diskCloned(s)
	case cdiv1.PendingPopulation, cdiv1.WaitForFirstConsumer:
		return diskAwaitsConsumer(s)
	}
	return diskCloning(s)
}

func diskCloned(s Snapshot) step {
	switch gone := s.Claim == nil || s.Claim.Status.Phase == corev1.ClaimLost; {
	case gone && guestRuns(s):
		return step{Verdict: bad(Waits, v1alpha1.ReasonDiskLost, "The claim %s is gone", s.Disk.Name), doubtful: true, usable: true}
	case gone:
		return step{
			Verdict: bad(Waits, v1alpha1.ReasonDiskLost, "The disk was lost; another one is cloned when what is left of it is gone"),
			actions: []Action{DeleteDisk}, doubtful: true, lost: wasReady(s),
		}
	case s.Claim.DeletionTimestamp != nil:
		return step{Verdict: bad(Waits, v1alpha1.ReasonDiskDeleted,
			"The claim %s was deleted; its data are lost when the guest has stopped", s.Disk.Name), usable: guestRuns(s)}
	}
	if s.Claim.Status.Phase == corev1.ClaimPending { // CDI has made it again, and has not said yet that it clones again
		return step{Verdict: cloningVerdict(s, replaced(s), snapshotOf(s.Disk))}
	}
	return step{Verdict: good(v1alpha1.ReasonDiskReady, "The disk %s is ready", s.Disk.Name), usable: true}
}

// diskAwaitsConsumer: the storage class makes the volume when somebody uses it, so that the machine must not wait for it. A
// machine that is not to be started has all that it can have.
func diskAwaitsConsumer(s Snapshot) step {
	if s.VM.WantedStrategy().NeedsGuest() {
		return step{Verdict: bad(Waits, v1alpha1.ReasonDiskCloning, "The disk %s is cloned as soon as the guest's pod has a node", s.Disk.Name), usable: true}
	}
	return step{Verdict: good(v1alpha1.ReasonDiskReady, "The disk %s is cloned when the guest first starts", s.Disk.Name), usable: true}
}

// wasReady says that status has a disk that was ready.
func wasReady(s Snapshot) bool { return s.VM.Status.Disk != nil && s.VM.Status.Disk.UID != "" }

// replaced says that the disk, or the claim with its data, is not the one that was ready: that one was lost, and this one
// made, without status being told. CDI makes a claim by itself.
func replaced(s Snapshot) bool {
	if s.Disk == nil || !wasReady(s) {
		return false
	}
	former := s.VM.Status.Disk
	return former.UID != s.Disk.UID || former.ClaimUID != "" && s.Claim != nil && former.ClaimUID != s.Claim.UID
}

// losing says that the disk that is being made takes the place of a lost one.
func losing(s Snapshot, lostNow bool) bool {
	former := s.VM.Status.Disk
	return lostNow || former != nil && former.UID == "" && former.LostAt != nil
}

func protected(disk *cdiv1.DataVolume) bool {
	return slices.Contains(disk.Finalizers, v1alpha1.FinalizerDisk)
}

func labelled(s Snapshot) bool {
	return s.Disk.Labels[v1alpha1.LabelVirtualMachineUID] == string(s.VM.UID) && s.Disk.Labels[v1alpha1.LabelVirtualMachine] == s.VM.Name
}
