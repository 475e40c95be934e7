package kubevirt

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pelotech/open-terrain/e2e/sim/kubevirt/objects"
)

// launcher is the launcher pod of an instance, or nil. It is read live: it has been made a moment ago. One that somebody has
// deleted goes at once, and its guest with it.
func (s *Simulator) launcher(ctx context.Context, vmi *virtv1.VirtualMachineInstance) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := s.live.Get(ctx, client.ObjectKey{Namespace: vmi.Namespace, Name: objects.LauncherName(vmi)}, pod)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if pod.DeletionTimestamp != nil {
		return nil, s.removePod(ctx, pod)
	}
	return pod, nil
}

// schedule plays the scheduler and the kubelet: the pod gets its node when there is one, and runs when its Secrets are there.
func (s *Simulator) schedule(ctx context.Context, seen *objects.Seen) (time.Duration, error) {
	vmi := seen.VMI
	pod, err := s.launcher(ctx, vmi)
	if err != nil {
		return 0, err
	}
	if pod == nil {
		objects.SetPhase(vmi, virtv1.Failed, metav1.Now())
		return 0, nil
	}
	if claimMissing(vmi, seen.Disks) {
		return 0, nil
	}
	if message := s.unschedulable(seen.VM, vmi); message != "" && pod.Spec.NodeName == "" {
		objects.SetCondition(vmi, objects.IsNot(podScheduled, corev1.PodReasonUnschedulable, message, metav1.Now()))
		return s.options.Retry, s.setPod(ctx, pod, objects.UnscheduledStatus(message, metav1.Now()))
	}
	objects.DropCondition(vmi, podScheduled)
	disksReady(vmi, seen.Disks)
	for _, disk := range seen.Disks {
		if !disk.Ready() {
			return 0, nil // as the first consumer it waits for its volume
		}
	}
	if err := s.bind(ctx, pod); err != nil {
		return 0, err
	}
	secret, err := s.missingSecret(ctx, vmi)
	if err != nil {
		return 0, err
	}
	if secret != "" { // which only an event of the pod tells
		return s.options.Retry, s.setPod(ctx, pod, objects.PodStatus(pod, corev1.PodPending, "ContainerCreating", metav1.Now()))
	}
	objects.SetPhase(vmi, virtv1.Scheduled, metav1.Now())
	vmi.Status.NodeName = objects.NodeName
	return 0, s.setPod(ctx, pod, objects.PodStatus(pod, corev1.PodRunning, "", metav1.Now()))
}

// unschedulable is the scheduler's message when the node does not take a guest.
func (s *Simulator) unschedulable(vm *virtv1.VirtualMachine, vmi *virtv1.VirtualMachineInstance) string {
	if message := s.options.Behaviour(vm).Unschedulable; message != "" {
		return message
	}
	if objects.Memory(vmi).Cmp(s.options.NodeMemory) > 0 {
		return "0/1 nodes are available: 1 Insufficient memory. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
	}
	return ""
}

func (s *Simulator) bind(ctx context.Context, pod *corev1.Pod) error {
	if pod.Spec.NodeName != "" {
		return nil
	}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: objects.NodeName},
	}
	if err := s.live.SubResource("binding").Create(ctx, pod.DeepCopy(), binding); err != nil {
		return fmt.Errorf("bind %s: %w", pod.Name, err)
	}
	return s.live.Get(ctx, client.ObjectKeyFromObject(pod), pod)
}

// setPod writes a pod's status if it has changed in more than its times.
func (s *Simulator) setPod(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	if pod.Status.Phase == status.Phase && len(pod.Status.Conditions) == len(status.Conditions) {
		return nil
	}
	before := pod.DeepCopy()
	pod.Status = status
	return s.live.Status().Patch(ctx, pod, client.MergeFrom(before))
}

// removePod takes a pod away as its kubelet would.
func (s *Simulator) removePod(ctx context.Context, pod *corev1.Pod) error {
	return client.IgnoreNotFound(s.live.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID}))
}
