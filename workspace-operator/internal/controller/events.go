package controller

import (
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/pelotech/open-terrain/workspace-operator/internal/status"
	corev1 "k8s.io/api/core/v1"
	clientevents "k8s.io/client-go/tools/events"
)

// events tells people what has happened: for transitions, none for a wait.
type events struct {
	recorder clientevents.EventRecorder
}

// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// of emits the events of a transition that has been written.
func (e *events) of(before, after *v1alpha1.Workspace) {
	for _, event := range status.EventsOf(&before.Status, &after.Status) {
		kind := corev1.EventTypeNormal
		if event.Warning {
			kind = corev1.EventTypeWarning
		}
		e.recorder.Eventf(after, nil, kind, event.Reason, event.Action, "%s", event.Note)
	}
}

// badPolicy names the value that is not in force.
func (e *events) badPolicy(cm *corev1.ConfigMap, bad policy.KeyError) {
	e.recorder.Eventf(cm, nil, corev1.EventTypeWarning, "InvalidPolicy", "ReadPolicy", "%s; the former policy stays in force", bad.Error())
}
