package objects

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"
)

// PodAddress is the address of a launcher pod; it follows from its name.
func PodAddress(pod *corev1.Pod) string {
	sum := 0
	for _, c := range pod.Namespace + pod.Name {
		sum = (31*sum + int(c)) & 0xffff
	}
	return fmt.Sprintf("10.0.%d.%d", sum>>8, sum&0xff)
}

// Interfaces of a guest that runs, in the order of its template: the pod network's has the pod's address, the others those
// that the guest agent reports.
func Interfaces(vmi *virtv1.VirtualMachineInstance, pod *corev1.Pod, reported map[string]string) []virtv1.VirtualMachineInstanceNetworkInterface {
	var all []virtv1.VirtualMachineInstanceNetworkInterface
	for index, i := range vmi.Spec.Domain.Devices.Interfaces {
		address := reported[i.Name]
		for _, network := range vmi.Spec.Networks {
			if network.Name == i.Name && network.Pod != nil {
				address = PodAddress(pod)
			}
		}
		has := virtv1.VirtualMachineInstanceNetworkInterface{Name: i.Name, MAC: i.MacAddress, IP: address, QueueCount: 1, InfoSource: "domain"}
		if address != "" {
			has.IPs = []string{address}
		}
		if len(reported) > 0 {
			has.InterfaceName, has.InfoSource = fmt.Sprintf("eth%d", index), "domain, guest-agent"
		}
		all = append(all, has)
	}
	return all
}

// Running brings an instance to Running, or refreshes what its guest agent says.
func Running(vmi *virtv1.VirtualMachineInstance, pod *corev1.Pod, reported map[string]string, now metav1.Time) {
	if vmi.Status.Phase != virtv1.Running {
		SetPhase(vmi, virtv1.Running, now)
		SetCondition(vmi, Is(virtv1.VirtualMachineInstanceReady, now))
		SetCondition(vmi, IsNot(virtv1.VirtualMachineInstanceIsMigratable, ReasonNotLiveMigratable,
			"cannot migrate VMI: PVC is not shared, live migration requires that all PVCs must be shared (using ReadWriteMany access mode)", now))
	}
	vmi.Status.Interfaces = Interfaces(vmi, pod, reported)
	if len(reported) > 0 {
		SetCondition(vmi, Is(virtv1.VirtualMachineInstanceAgentConnected, now))
	} else {
		DropCondition(vmi, virtv1.VirtualMachineInstanceAgentConnected)
	}
}

// PodStatus of a launcher pod in a phase; reason is why its containers wait, or why it has no node.
func PodStatus(pod *corev1.Pod, phase corev1.PodPhase, waiting string, now metav1.Time) corev1.PodStatus {
	status := corev1.PodStatus{Phase: phase, StartTime: &now, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now},
	}}
	state, ready := corev1.ContainerState{}, corev1.ConditionFalse
	switch phase {
	case corev1.PodPending:
		state.Waiting = &corev1.ContainerStateWaiting{Reason: waiting}
	case corev1.PodRunning:
		state.Running, ready = &corev1.ContainerStateRunning{StartedAt: now}, corev1.ConditionTrue
		status.PodIP = PodAddress(pod)
		status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	case corev1.PodFailed:
		state.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", FinishedAt: now}
	default:
		state.Terminated = &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: now}
	}
	status.Conditions = append(status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: ready, LastTransitionTime: now})
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, State: state, Ready: ready == corev1.ConditionTrue,
		})
	}
	return status
}

// UnscheduledStatus is that of a pod that no node takes.
func UnscheduledStatus(message string, now metav1.Time) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message, LastTransitionTime: now,
	}}}
}
