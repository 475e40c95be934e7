package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
)

// Protection is a change of the finalizer by which an image that is in use outlives its deletion.
type Protection string

// The changes of the finalizer that there are.
const (
	KeepProtection   Protection = "Keep"
	AddProtection    Protection = "Add"
	RemoveProtection Protection = "Remove"
)

// InUse says that virtual machines use the image, or wait for it.
func InUse(image *v1alpha1.VMDiskImage) bool {
	return image.Status.References != nil && image.Status.References.Count > 0
}

// Protected says that the image has the finalizer.
func Protected(image *v1alpha1.VMDiskImage) bool {
	return slices.Contains(image.Finalizers, v1alpha1.FinalizerProtection)
}

// ProtectionOf says what to do with the finalizer: it is there exactly as long as the image is in use. To an image that is
// being deleted no finalizer can be added any more.
func ProtectionOf(image *v1alpha1.VMDiskImage) Protection {
	switch used, has := InUse(image), Protected(image); {
	case used && !has && image.DeletionTimestamp == nil:
		return AddProtection
	case !used && has:
		return RemoveProtection
	}
	return KeepProtection
}

// deleting ends what is under way for an image that is being deleted and that a finalizer holds back. Nobody waits for it
// any more, and others wait for its slot. What is finished stays: virtual machines may be reading it. It goes with its
// owner, when the last finalizer does.
func deleting(s Snapshot, stage Stage) Decision {
	report := unchanged(s, stage)
	report.Deletion = heldBy(s.Image)
	switch {
	case stage == New:
		return Decision{Report: report}
	case finished(s, stage):
		return tidy(s, Decision{Report: report, ReleaseSlot: s.Slot != "" && !importing(s)})
	case stage == Syncing:
		report.Stage = Queued // the attempt has ended, and has not failed
	}
	return tidy(s, cleanUp(s, Decision{Report: report, Ended: s.Slot != ""}))
}

// finished says that the children are, or may be, what virtual machines clone from.
func finished(s Snapshot, stage Stage) bool {
	known := s.Image.Status.Artifact
	return stage == Succeeded || stage == Snapshotting ||
		stage == Queued && known != nil && known.Revision == s.Image.Status.Revision // the spec went back to it
}

// importing says that there is a volume of the image that is not complete.
func importing(s Snapshot) bool {
	return s.DataVolume != nil && owned(s, s.DataVolume) && !volumeReady(s)
}

// deletionWaits begins what is said of an image that is being deleted and held back.
const deletionWaits = "Deletion waits for "

// heldBy says what the deletion waits for; empty when that is nothing of ours, and there is nothing to take back.
func heldBy(image *v1alpha1.VMDiskImage) string {
	switch {
	case InUse(image) && Protected(image):
		return deletionWaits + users(image.Status.References)
	case strings.HasPrefix(image.Status.Message, deletionWaits):
		return deletionWaits + "finalizers of others: " + strings.Join(image.Finalizers, ", ")
	}
	return ""
}

// users names those that use an image, as far as they are known.
func users(references *v1alpha1.References) string {
	text := fmt.Sprintf("the %d virtual machines that use it", references.Count)
	if references.Count == 1 {
		text = "the virtual machine that uses it"
	}
	if len(references.Sample) == 0 {
		return text
	}
	text += ": " + strings.Join(references.Sample, ", ")
	if int(references.Count) > len(references.Sample) {
		text += ", ..."
	}
	return text
}
