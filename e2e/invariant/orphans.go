package invariant

import (
	"slices"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// family are the resources that images and virtual machines have, or CDI and KubeVirt have because of them.
var family = []string{
	"vmdiskimages", "datasyncs", "datavolumes", "persistentvolumeclaims", "pods", "volumesnapshots",
	"virtualmachines", "virtualmachineinstances", "secrets",
}

// soon is how near the pruning of an image must be for the end of a history to wait for it.
const soon = 10 * time.Second

// left is what exists at the end of a history.
type left struct {
	objects map[history.Key]client.Object
	uids    map[types.UID]bool
	// were are the images and the virtual machines that there were.
	were map[types.UID]bool
	end  time.Time
}

func leftOf(events []history.Event) left {
	l := left{objects: map[history.Key]client.Object{}, uids: map[types.UID]bool{}, were: map[types.UID]bool{}}
	for _, e := range events {
		keep(l.objects, e.Key, e.Object, e.Deleted || e.Object == nil)
		if (e.Resource == "vmdiskimages" || e.Resource == "virtualmachines") && e.Object != nil {
			l.were[e.Object.GetUID()] = true
		}
		l.end = e.Seen
	}
	for _, object := range l.objects {
		l.uids[object.GetUID()] = true
	}
	return l
}

// eachInFamily calls do for what is left of the family, in the order of keys as they come.
func (l left) eachInFamily(do func(history.Key, client.Object)) {
	for key, object := range l.objects {
		if slices.Contains(family, key.Resource) {
			do(key, object)
		}
	}
}

// NoOrphans is I8, of a history at whose end images have been deleted and the garbage collector has run: no object is left
// whose owner does not exist, or that carries the UID of a former image; no deletion is held up; and no former image holds
// a slot.
func NoOrphans(_ Settings, events []history.Event) []Violation {
	f, l := &found{invariant: "I8"}, leftOf(events)
	l.eachInFamily(func(key history.Key, object client.Object) {
		if wrong := l.orphaned(object); wrong != "" {
			f.add(last(events), "%s %s/%s is left: %s", key.Resource, key.Namespace, key.Name, wrong)
		}
		if what := l.labelled(object); what != "" {
			f.add(last(events), "%s %s/%s is left: its label names %s that is gone", key.Resource, key.Namespace, key.Name, what)
		}
	})
	for key, object := range l.objects {
		lease, ok := object.(*coordinationv1.Lease)
		if ok && holder(lease) != "" && l.were[uidOf(holder(lease))] && !l.uids[uidOf(holder(lease))] {
			f.add(last(events), "%s is held by %s, which is gone", key.Name, holder(lease))
		}
	}
	return f.list
}

// labelled says whose label an object bears that is gone, and that nobody owns; or nothing.
func (l left) labelled(object client.Object) string {
	if object.GetAnnotations()[AnnotationBystander] != "" || metav1.GetControllerOf(object) != nil {
		return ""
	}
	for what, label := range map[string]string{"an image": otv1alpha1.LabelImage, "a virtual machine": otv1alpha1.LabelVirtualMachineUID} {
		if uid := types.UID(object.GetLabels()[label]); l.were[uid] && !l.uids[uid] {
			return what
		}
	}
	return ""
}

// orphaned says what is wrong with an object that is still there, or nothing.
func (l left) orphaned(object client.Object) string {
	if object.GetDeletionTimestamp() != nil {
		return "its deletion has not come to an end"
	}
	for _, owner := range object.GetOwnerReferences() {
		if !l.uids[owner.UID] {
			return "its owner " + owner.Kind + " " + owner.Name + " is gone"
		}
	}
	return ""
}

// Underway tells, as violations of I3, of what has not come to its end though no image waits for it: deletions, garbage, a
// protection that does not fit the use of an image, and pruning that is due.
func Underway(_ Settings, events []history.Event) []Violation {
	f, l := &found{invariant: "I3"}, leftOf(events)
	l.eachInFamily(func(key history.Key, object client.Object) {
		if wrong := l.orphaned(object); wrong != "" {
			f.add(last(events), "%s %s/%s: %s", key.Resource, key.Namespace, key.Name, wrong)
		}
		if image := l.former(key, object); image != "" {
			f.add(last(events), "%s %s/%s is a former child of %s", key.Resource, key.Namespace, key.Name, image)
		}
		switch o := object.(type) {
		case *otv1alpha1.VMDiskImage:
			l.due(f, events, o)
		case *otv1alpha1.DataSync:
			if phase := o.Status.Phase; o.Status.ObservedGeneration != o.Generation || phase != otv1alpha1.DataSyncSucceeded && phase != otv1alpha1.DataSyncFailed {
				f.add(last(events), "the DataSync %s/%s is %q: %s", o.Namespace, o.Name, phase, o.Status.Message)
			}
		}
	})
	return f.list
}

// former is the image that has come to its end and has the object as a child that its artifact does not name; empty for none.
func (l left) former(key history.Key, object client.Object) string {
	uid := ownerOf(object)
	for _, other := range l.objects {
		image, ok := other.(*otv1alpha1.VMDiskImage)
		if !ok || image.UID != uid || image.Status.Phase != otv1alpha1.PhaseSucceeded && image.Status.Phase != otv1alpha1.PhaseFailed {
			continue
		}
		if !names(image, key.Resource, key.NamespacedName()) {
			return image.Name
		}
	}
	return ""
}

func (l left) due(f *found, events []history.Event, image *otv1alpha1.VMDiskImage) {
	protected := slices.Contains(image.Finalizers, otv1alpha1.FinalizerProtection)
	if protected != (users(image) > 0) {
		f.add(last(events), "%s/%s has %d users, and its protection is %t", image.Namespace, image.Name, users(image), protected)
	}
	if at := image.Status.ExpiresAt; at != nil && users(image) == 0 && at.Sub(l.end) < soon && image.Annotations[otv1alpha1.AnnotationDryRun] != "true" {
		f.add(last(events), "%s/%s is about to be pruned", image.Namespace, image.Name)
	}
}

func users(image *otv1alpha1.VMDiskImage) int32 {
	if image.Status.References == nil {
		return 0
	}
	return image.Status.References.Count
}
