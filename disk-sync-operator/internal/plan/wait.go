package plan

import (
	"fmt"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// Wait is what an attempt that has not failed is waiting for. The zero value is nothing in particular.
type Wait struct {
	// Reason is what to call it when a deadline passes meanwhile, or empty.
	Reason v1alpha1.FailureReason
	// Message says it to people.
	Message string
}

// Or is the reason, or the other one where there is none.
func (w Wait) Or(otherwise v1alpha1.FailureReason) v1alpha1.FailureReason {
	if w.Reason == "" {
		return otherwise
	}
	return w.Reason
}

// With puts what was waited for behind the message.
func (w Wait) With(message string) string {
	if w.Message == "" {
		return message
	}
	return message + ": " + w.Message
}

// WaitOf reads off the DataVolume and its importer pod what the attempt is waiting for.
func WaitOf(dv *cdiv1.DataVolume, importer *corev1.Pod) Wait {
	if dv == nil {
		return Wait{}
	}
	if running := condition(dv, cdiv1.DataVolumeRunning); running != nil {
		switch running.Reason {
		case "Unschedulable":
			return Wait{Reason: v1alpha1.FailureUnschedulable, Message: clip(running.Message)}
		case errStartingPod:
			return Wait{Message: clip(running.Message)}
		}
	}
	if waiting := waitingContainer(importer); waiting != nil {
		return podWait(dv, waiting)
	}
	if dv.Status.Phase == cdiv1.PhaseUnset || dv.Status.Phase == cdiv1.Pending {
		if bound := condition(dv, cdiv1.DataVolumeBound); bound != nil && bound.Status != corev1.ConditionTrue {
			return Wait{Message: clip(bound.Message)}
		}
	}
	return Wait{}
}

func podWait(dv *cdiv1.DataVolume, waiting *corev1.ContainerStateWaiting) Wait {
	if ca := certConfigMap(dv); ca != "" && waiting.Reason == "ContainerCreating" {
		// The kubelet tells of a volume that cannot be mounted in events only.
		return Wait{Reason: v1alpha1.FailureSecretMissing, Message: fmt.Sprintf("the importer pod is not being started: is there a ConfigMap %q?", ca)}
	}
	if waiting.Reason == "ContainerCreating" || waiting.Reason == "PodInitializing" {
		return Wait{}
	}
	message := waiting.Reason
	if waiting.Message != "" {
		message += ": " + waiting.Message
	}
	return Wait{Message: clip("the importer pod waits: " + message)}
}

func certConfigMap(dv *cdiv1.DataVolume) string {
	switch source := dv.Spec.Source; {
	case source == nil:
	case source.HTTP != nil:
		return source.HTTP.CertConfigMap
	case source.S3 != nil:
		return source.S3.CertConfigMap
	case source.Registry != nil && source.Registry.CertConfigMap != nil:
		return *source.Registry.CertConfigMap
	}
	return ""
}

func waitingContainer(pod *corev1.Pod) *corev1.ContainerStateWaiting {
	if pod == nil || len(pod.Status.ContainerStatuses) == 0 {
		return nil
	}
	return pod.Status.ContainerStatuses[0].State.Waiting
}
