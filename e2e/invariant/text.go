package invariant

import (
	"fmt"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// latest is the object of an event, or what it was before it was deleted.
func latest(e history.Event) client.Object {
	if e.Deleted {
		return e.Prev
	}
	return e.Object
}

// Line describes an event in one line.
func Line(e history.Event) string {
	verb := "changes"
	switch {
	case e.Deleted:
		verb = "is deleted"
	case e.Created():
		verb = "is created"
	}
	return fmt.Sprintf("%6d %s %s %s/%s %s%s", e.Revision, e.Seen.Format("05.000"), e.Resource, e.Namespace, e.Name, verb, detail(latest(e)))
}

// detail is what matters of an object.
func detail(object client.Object) string {
	switch o := object.(type) {
	case *otv1alpha1.VMDiskImage:
		return fmt.Sprintf(": phase=%s attempts=%d ticket=%d users=%d %q%s", o.Status.Phase, o.Status.Attempts, o.Status.Ticket, users(o), o.Status.Message, ending(o))
	case *cdiv1.DataVolume:
		return fmt.Sprintf(": phase=%s attempt=%s slot=%s%s", o.Status.Phase, o.Annotations[otv1alpha1.AnnotationAttempt], o.Annotations[otv1alpha1.AnnotationSlot], ending(o))
	case *coordinationv1.Lease:
		return ": holder=" + holder(o)
	case *corev1.PersistentVolumeClaim:
		return fmt.Sprintf(": phase=%s%s", o.Status.Phase, ending(o))
	case *corev1.Pod:
		return fmt.Sprintf(": phase=%s%s", o.Status.Phase, ending(o))
	case *snapshotv1.VolumeSnapshot:
		if o.Status != nil && o.Status.ReadyToUse != nil {
			return fmt.Sprintf(": ready=%t%s", *o.Status.ReadyToUse, ending(o))
		}
	case *corev1.ConfigMap:
		return fmt.Sprintf(": %v", o.Data)
	}
	return detailOfMachine(object)
}

func detailOfMachine(object client.Object) string {
	switch o := object.(type) {
	case *otv1alpha1.VirtualMachine:
		return fmt.Sprintf(" (ours): phase=%s %q%s", o.Status.Phase, o.Status.Message, ending(o))
	case *virtv1.VirtualMachine:
		return fmt.Sprintf(" (KubeVirt's): %s%s", o.Status.PrintableStatus, ending(o))
	case *virtv1.VirtualMachineInstance:
		return fmt.Sprintf(": phase=%s%s", o.Status.Phase, ending(o))
	}
	return ""
}

func ending(object client.Object) string {
	if object.GetDeletionTimestamp() != nil {
		return " (being deleted)"
	}
	return ""
}

// Excerpt is the last lines, at most n, of a history up to a violation, as far as the invariants look at it.
func Excerpt(events []history.Event, v Violation, n int) string {
	var lines []string
	for _, e := range events {
		if e.Revision > v.Event.Revision {
			break
		}
		if telling(e) {
			lines = append(lines, Line(e))
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func telling(e history.Event) bool {
	switch latest(e).(type) {
	case *otv1alpha1.VMDiskImage, *cdiv1.DataVolume, *snapshotv1.VolumeSnapshot, *corev1.Pod,
		*otv1alpha1.VirtualMachine, *virtv1.VirtualMachine, *virtv1.VirtualMachineInstance:
		return true
	case *coordinationv1.Lease:
		return strings.HasPrefix(e.Name, otv1alpha1.DiskSyncSlotPrefix)
	case *corev1.ConfigMap:
		return e.Name == otv1alpha1.PolicyConfigMapName
	}
	return false
}
