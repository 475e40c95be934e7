package datasync

import (
	"fmt"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func failed(message string) Entry { return Entry{Phase: v1alpha1.PhaseFailed, Message: message} }

func waits(message string) Entry { return Entry{Phase: v1alpha1.PhaseQueued, Message: message} }

// notOurs waits for an image that is about to go, and gives up on one that stays.
func notOurs(d *v1alpha1.DataSync, image *v1alpha1.VMDiskImage) Entry {
	owner := metav1.GetControllerOf(image)
	switch {
	case owner != nil && owner.Kind == "DataSync" && owner.Name == d.Name:
		return waits(fmt.Sprintf("Waiting until the VMDiskImage %s of a former DataSync of this name is gone%s", image.Name, usedBy(image)))
	case image.DeletionTimestamp != nil:
		return waits(fmt.Sprintf("Waiting until the VMDiskImage %s, which does not belong to this DataSync, is gone%s", image.Name, usedBy(image)))
	}
	return failed(fmt.Sprintf("A VMDiskImage %s exists that does not belong to this DataSync: rename the entry, or delete that image", image.Name))
}

// follow says what the image, as it shall be, says. A status that is about a former spec, or about a former request, says nothing of this
// one: the image is about to enter the queue again.
func follow(image *v1alpha1.VMDiskImage) Entry {
	st := &image.Status
	switch {
	case st.Revision == "":
		return waits("Waiting for a place in the queue")
	case st.Revision != v1alpha1.RevisionOf(image):
		return Entry{Phase: v1alpha1.PhaseQueued, Message: "The changed image is about to enter the queue", Started: started(image)}
	case st.Phase == v1alpha1.PhaseSucceeded:
		return Entry{Phase: st.Phase, Started: true}
	}
	return Entry{Phase: st.Phase, Message: st.Message, Started: started(image)}
}

func started(image *v1alpha1.VMDiskImage) bool {
	return image.Status.Attempts > 0 || image.Status.Artifact != nil
}

// usedBy tells why an image may take long to go.
func usedBy(image *v1alpha1.VMDiskImage) string {
	if refs := image.Status.References; refs != nil && refs.Count > 0 {
		return fmt.Sprintf("; virtual machines that use it: %d", refs.Count)
	}
	return ""
}
