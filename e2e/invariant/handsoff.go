package invariant

import (
	"slices"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AnnotationBystander marks objects that tests put beside images. They look like children and belong to nobody.
const AnnotationBystander = "e2e.open-terrain/bystander"

// manager is the field manager of the operator, and the beginning of its user agent.
const manager = "disk-sync-operator"

// Write is one request of an operator.
type Write struct {
	Verb, Group, Resource, Subresource, Namespace, Name string
	// UID that the request insists on.
	UID types.UID
}

// HandsOff is the half of I9 that is about requests: the operator only asks for what is its own to do. It deletes nothing
// but objects that an image controls, and insists on their UID; it changes images by UID only; and it creates nothing but
// children and slots.
func HandsOff(s Settings, events []history.Event, writes []Write) []Violation {
	f, ours := &found{invariant: "I9"}, owned(events)
	for _, w := range writes {
		if wrong := meddles(s, w, ours); wrong != "" {
			f.add(last(events), "the operator asks to %s %s %s/%s: %s", w.Verb, strings.Trim(w.Resource+"/"+w.Subresource, "/"), w.Namespace, w.Name, wrong)
		}
	}
	return f.list
}

func meddles(s Settings, w Write, ours map[types.UID]bool) string {
	switch {
	case w.Resource == "leases":
		if w.Namespace != s.Namespace || !strings.HasPrefix(w.Name, otv1alpha1.DiskSyncSlotPrefix) {
			return "it is no slot"
		}
	case w.Verb == "create":
		if !slices.Contains([]string{"datavolumes", "volumesnapshots", "vmdiskimages"}, w.Resource) {
			return "it makes no such objects"
		}
	case !slices.Contains([]string{"datavolumes", "volumesnapshots", "vmdiskimages", "datasyncs"}, w.Resource):
		return "it has no such objects"
	case w.UID == "":
		return "whatever object of that name there is"
	case !ours[w.UID]:
		return "the object with the UID " + string(w.UID) + " is nobody's of ours"
	}
	return ""
}

// owned are the UIDs of all objects that ever were images or DataSyncs, or were controlled by one.
func owned(events []history.Event) map[types.UID]bool {
	uids := map[types.UID]bool{}
	for _, e := range events {
		for _, object := range []client.Object{e.Object, e.Prev} {
			if object != nil && belongs(e.Resource, object) {
				uids[object.GetUID()] = true
			}
		}
	}
	return uids
}

func belongs(resource string, object client.Object) bool {
	if resource == "vmdiskimages" || resource == "datasyncs" {
		return true
	}
	owner := metav1.GetControllerOf(object)
	return owner != nil && (owner.Kind == "VMDiskImage" || owner.Kind == "DataSync")
}

// Foreign is the half of I9 that is about the history: no object carries the operator's mark that is not its own, and
// nothing happens to bystanders. The mark is a field manager: of objects that nobody has ever applied there is none.
func Foreign(s Settings, events []history.Event) []Violation {
	f := &found{invariant: "I9"}
	for _, e := range events {
		bystands(f, e)
		if e.Object == nil || belongs(e.Resource, e.Object) || e.Resource == "leases" && e.Namespace == s.Namespace {
			continue
		}
		if marked(e.Object) && (e.Prev == nil || !marked(e.Prev)) {
			f.add(e, "the operator has written it, and no image controls it")
		}
	}
	return f.list
}

func marked(object client.Object) bool { return markedBy(object, manager) }

func markedBy(object client.Object, manager string) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool { return strings.HasPrefix(m.Manager, manager) })
}

// bystands: a bystander is never deleted, and of what a simulator does not look after, nothing changes.
func bystands(f *found, e history.Event) {
	// A claim that CDI made for a bystander has its annotations, and an owner.
	if e.Prev == nil || e.Prev.GetAnnotations()[AnnotationBystander] == "" || metav1.GetControllerOf(e.Prev) != nil {
		return
	}
	switch {
	case e.Deleted, e.Object.GetDeletionTimestamp() != nil:
		f.add(e, "it is nobody's business, and is deleted")
	case e.Resource != "datavolumes":
		f.add(e, "it is nobody's business, and changes")
	}
}

// NamespaceOf is the namespace of an event's object; that of its snapshot for a VolumeSnapshotContent.
func NamespaceOf(e history.Event) string {
	if content, ok := latest(e).(*snapshotv1.VolumeSnapshotContent); ok {
		return content.Spec.VolumeSnapshotRef.Namespace
	}
	return e.Namespace
}
