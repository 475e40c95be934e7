package invariant

import (
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	"k8s.io/apimachinery/pkg/types"
)

// InUse is I6: while virtual machines use an image, it does not go, and nothing that its artifact names is deleted. A part
// that status no longer names may go: status is written first.
func InUse(s Settings, events []history.Event) []Violation {
	f := &found{invariant: "I6"}
	replay(s, events, func(st *state, e history.Event) {
		if !goes(e) {
			return
		}
		if image, ok := e.Prev.(*otv1alpha1.VMDiskImage); ok {
			if n := users(image); e.Deleted && n > 0 {
				f.add(e, "it goes while %d virtual machines use it", n)
			}
			return
		}
		for _, image := range st.images {
			if n := users(image); n > 0 && names(image, e.Resource, e.NamespacedName()) && st.partOf(image, e) {
				f.add(e, "it is deleted while %d virtual machines use %s/%s, whose artifact names it", n, image.Namespace, image.Name)
			}
		}
	})
	return f.list
}

// goes says that the event is the end of an object, or the first that tells of it.
func goes(e history.Event) bool {
	if e.Prev == nil || e.Prev.GetDeletionTimestamp() != nil {
		return false
	}
	return e.Deleted || e.Object != nil && e.Object.GetDeletionTimestamp() != nil
}

// names says that the image's artifact names the object.
func names(image *otv1alpha1.VMDiskImage, resource string, name types.NamespacedName) bool {
	artifact := image.Status.Artifact
	if artifact == nil || image.Namespace != name.Namespace {
		return false
	}
	switch resource {
	case "datavolumes", "persistentvolumeclaims":
		return artifact.DataVolume == name.Name
	case "volumesnapshots":
		return artifact.Snapshot == name.Name
	}
	return false
}

// partOf says that the object is the image's own: a claim is its DataVolume's.
func (st *state) partOf(image *otv1alpha1.VMDiskImage, e history.Event) bool {
	return e.Resource == "persistentvolumeclaims" || ownerOf(e.Prev) == image.UID
}
