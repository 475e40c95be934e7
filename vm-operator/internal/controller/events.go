package controller

import (
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/status"
	corev1 "k8s.io/api/core/v1"
	clientevents "k8s.io/client-go/tools/events"
)

// events tells people what has happened: for transitions, none for a wait.
type events struct {
	recorder clientevents.EventRecorder
}

// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// of emits the events of a transition that has been written.
func (e *events) of(before, after *v1alpha1.VirtualMachine) {
	for _, event := range status.EventsOf(&before.Status, &after.Status) {
		kind := corev1.EventTypeNormal
		if event.Warning {
			kind = corev1.EventTypeWarning
		}
		e.recorder.Eventf(after, nil, kind, event.Reason, event.Action, "%s", event.Note)
	}
}
