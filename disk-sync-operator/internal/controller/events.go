package controller

import (
	"errors"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientevents "k8s.io/client-go/tools/events"
)

// events tells people what has happened: one event for a transition, none for a wait.
type events struct {
	recorder clientevents.EventRecorder
}

// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// of emits the event of a transition that has been written, if it deserves one.
func (e *events) of(before, after *v1alpha1.VMDiskImage) {
	event, ok := status.EventOf(&before.Status, &after.Status)
	if !ok {
		return
	}
	kind := corev1.EventTypeNormal
	if event.Warning {
		kind = corev1.EventTypeWarning
	}
	e.recorder.Eventf(after, nil, kind, event.Reason, event.Action, "%s", event.Note)
}

// fenced tells of a DataVolume that the slot fence goes on refusing, and names the remedy.
func (e *events) fenced(image *v1alpha1.VMDiskImage) {
	e.recorder.Eventf(image, nil, corev1.EventTypeWarning, "SlotFenced", "Sync",
		"The slot fence goes on refusing the DataVolume, most likely because the API server reads outdated Leases "+
			"(kubernetes#130887): restart it, or delete the ValidatingAdmissionPolicyBinding whose name ends in -slot-fence")
}

// pruned tells of an image that is gone.
func (e *events) pruned(image *v1alpha1.VMDiskImage, note string) {
	e.recorder.Eventf(image, nil, corev1.EventTypeNormal, "Pruned", "Prune", "%s", note)
}

func (e *events) warn(about runtime.Object, reason, note string, args ...any) {
	e.recorder.Eventf(about, nil, corev1.EventTypeWarning, reason, "ReadPolicy", note, args...)
}

func errorAs[T error](err error, target *T) bool { return errors.As(err, target) }
