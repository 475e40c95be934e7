package plan

import (
	"slices"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/desired"
)

// imageStep waits for an image that may be cloned, and makes one that is missing from the template.
func imageStep(s Snapshot) step {
	name := s.VM.ImageKey().String()
	image := s.Image
	switch {
	case image == nil:
		return imageMissing(s, name)
	case image.DeletionTimestamp != nil:
		return step{Verdict: bad(Waits, v1alpha1.ReasonImageMissing, "The image %s is being deleted", name)}
	case !admitted(s):
		return step{Verdict: bad(Waits, v1alpha1.ReasonImageNotAllowed,
			"The allowedNamespaces of the image %s do not admit the namespace %s: nothing is cloned from it", name, s.VM.Namespace)}
	case image.IsReady() && s.Disk == nil && !Claimed(image, s.Counted):
		return step{Verdict: bad(Waits, v1alpha1.ReasonImageClaiming,
			"Waiting until the image %s counts this virtual machine and is protected", name)}
	case image.IsReady():
		return step{Verdict: good(v1alpha1.ReasonImageReady, "The image %s can be cloned", name)}
	case image.Status.Phase == v1alpha1.PhaseFailed:
		return step{Verdict: bad(Final, v1alpha1.ReasonImageFailed, "The image %s failed: %s", name, image.Status.Message)}
	}
	return step{Verdict: imagePending(image, name)}
}

// imagePending has no percentages: each change would cost a write for each virtual machine that waits.
func imagePending(image *v1alpha1.VMDiskImage, name string) Verdict {
	switch image.Status.Phase {
	case "":
		return bad(Patient, v1alpha1.ReasonImageNotReady, "The image %s is new", name)
	case v1alpha1.PhaseQueued:
		return bad(Patient, v1alpha1.ReasonImageNotReady, "The image %s is Queued: %s", name, image.Status.Message)
	case v1alpha1.PhaseSucceeded: // its snapshot is lost, and has not been found to be
		return bad(Patient, v1alpha1.ReasonImageNotReady, "The image %s has nothing to be cloned from", name)
	}
	return bad(Patient, v1alpha1.ReasonImageNotReady, "The image %s is %s", name, image.Status.Phase)
}

// imageMissing makes the image, also for a machine that has its disk: what it refers to is kept, and its disk may be lost.
func imageMissing(s Snapshot, name string) step {
	refusal, refused := s.Refusals[Image]
	switch {
	case s.VM.Spec.VMDiskImageTemplate == nil:
		return step{Verdict: bad(Waits, v1alpha1.ReasonImageMissing, "There is no image %s, and no vmDiskImageTemplate to make it from", name)}
	case refused:
		return step{Verdict: bad(Final, v1alpha1.ReasonImageRefused, "The image %s cannot be made from vmDiskImageTemplate: %s", name, refusal.Message)}
	}
	return step{
		Verdict: bad(Patient, v1alpha1.ReasonImageNotReady, "The image %s is new", name),
		actions: []Action{CreateImage},
	}
}

func admitted(s Snapshot) bool { return s.Image.Admits(s.VM.Namespace, s.NamespaceLabels) }

// Usable says that a disk may be cloned from the image.
func Usable(s Snapshot) bool {
	return s.Image != nil && s.Image.DeletionTimestamp == nil && admitted(s) && s.Image.IsReady() && Claimed(s.Image, s.Counted)
}

// Claimed says that nobody's deletion takes the image's children any more: its references count us, and the finalizer is on
// it.
func Claimed(image *v1alpha1.VMDiskImage, counted bool) bool {
	return counted && image.DeletionTimestamp == nil &&
		image.Status.References != nil && image.Status.References.Count > 0 &&
		slices.Contains(image.Finalizers, v1alpha1.FinalizerProtection)
}

func mismatch(s Snapshot) []string {
	if s.Image == nil || s.VM.Spec.VMDiskImageTemplate == nil {
		return nil
	}
	return desired.Mismatch(*s.VM.Spec.VMDiskImageTemplate, s.Image)
}

func imageStatus(s Snapshot) v1alpha1.VirtualMachineImageStatus {
	key := s.VM.ImageKey()
	st := v1alpha1.VirtualMachineImageStatus{Namespace: key.Namespace, Name: key.Name}
	if s.Image != nil {
		st.UID, st.Phase = s.Image.UID, s.Image.Status.Phase
	}
	return st
}
