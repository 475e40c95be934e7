package kubevirt

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/pelotech/open-terrain/e2e/sim/kubevirt/objects"
)

const (
	podScheduled    = virtv1.VirtualMachineInstanceConditionType(corev1.PodScheduled)
	dataVolumeReady = virtv1.VirtualMachineInstanceConditionType("DataVolumesReady")
)

// advance takes an instance that is to live one step on.
func (s *Simulator) advance(ctx context.Context, seen *objects.Seen) (time.Duration, error) {
	vmi := seen.VMI
	if wait := s.options.Step - s.since(vmi); wait > 0 && vmi.Status.Phase != virtv1.Running {
		return wait, nil
	}
	before := vmi.DeepCopy()
	again, err := s.step(ctx, seen)
	if err != nil || equality.Semantic.DeepEqual(before, vmi) {
		return again, err
	}
	if err := s.live.Patch(ctx, vmi, locked(before)); err != nil {
		return 0, err
	}
	if before.Status.Phase != vmi.Status.Phase && !vmi.IsFinal() {
		return sooner(s.pace(vmi), again), nil
	}
	return again, nil
}

// step changes the instance in seen, and writes all but that.
func (s *Simulator) step(ctx context.Context, seen *objects.Seen) (time.Duration, error) {
	vmi := seen.VMI
	switch vmi.Status.Phase {
	case virtv1.VmPhaseUnset:
		objects.SetPhase(vmi, virtv1.Pending, metav1.Now())
		objects.SetNotReady(vmi, objects.ReasonNoPod, "virt-launcher pod has not yet been scheduled", metav1.Now())
	case virtv1.Pending:
		return s.makeLauncher(ctx, seen)
	case virtv1.Scheduling:
		return s.schedule(ctx, seen)
	case virtv1.Scheduled:
		return s.boot(ctx, seen)
	case virtv1.Running:
		return 0, s.run(ctx, seen)
	}
	return 0, nil
}

// makeLauncher waits for the disks and the networks, and creates the launcher pod.
func (s *Simulator) makeLauncher(ctx context.Context, seen *objects.Seen) (time.Duration, error) {
	vmi, now := seen.VMI, metav1.Now()
	if claimMissing(vmi, seen.Disks) {
		return 0, nil
	}
	disksReady(vmi, seen.Disks)
	if slices.ContainsFunc(seen.Disks, func(d objects.Disk) bool { return !d.Startable() }) {
		return 0, nil
	}
	network, err := s.missingNetwork(ctx, vmi)
	if err != nil {
		return 0, err
	}
	if network != "" {
		return s.notCreated(vmi, "failed to render launch manifest: failed to locate network attachment definition "+network), nil
	}
	err = s.live.Create(ctx, objects.LauncherPod(vmi))
	if apierrors.IsForbidden(err) {
		return s.notCreated(vmi, "failed to create virtual machine pod: "+err.Error()), nil
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return 0, err
	}
	objects.DropCondition(vmi, podScheduled)
	objects.SetPhase(vmi, virtv1.Scheduling, now)
	objects.SetNotReady(vmi, objects.ReasonGuestNotRunning, "Guest VM is not reported as running", now)
	return 0, nil
}

// claimMissing shows that a claim is not there, or no longer that it was not. PodScheduled stays as it is then.
func claimMissing(vmi *virtv1.VirtualMachineInstance, disks []objects.Disk) bool {
	i := slices.IndexFunc(disks, objects.Disk.Missing)
	if i < 0 {
		objects.DropCondition(vmi, virtv1.VirtualMachineInstanceSynchronized)
		return false
	}
	message := fmt.Sprintf("PVC %s/%s does not exist, waiting for it to appear", vmi.Namespace, disks[i].Name)
	objects.SetCondition(vmi, objects.IsNot(virtv1.VirtualMachineInstanceSynchronized, objects.ReasonPVCNotFound, message, metav1.Now()))
	objects.SetCondition(vmi, objects.IsNot(podScheduled, corev1.PodReasonUnschedulable, message, metav1.Now()))
	return true
}

func (s *Simulator) notCreated(vmi *virtv1.VirtualMachineInstance, message string) time.Duration {
	objects.SetCondition(vmi, objects.IsNot(virtv1.VirtualMachineInstanceSynchronized, objects.ReasonFailedCreate, message, metav1.Now()))
	return s.options.Retry
}

func disksReady(vmi *virtv1.VirtualMachineInstance, disks []objects.Disk) {
	volumes := slices.ContainsFunc(disks, func(d objects.Disk) bool { return d.DataVolume != nil })
	switch {
	case !volumes:
	case slices.ContainsFunc(disks, func(d objects.Disk) bool { return !d.Ready() }):
		objects.SetCondition(vmi, objects.IsNot(dataVolumeReady, objects.ReasonNotAllReady, "Not all of the VMI's DVs are ready", metav1.Now()))
	default:
		ready := objects.Is(dataVolumeReady, metav1.Now())
		ready.Reason, ready.Message = objects.ReasonAllReady, "All of the VMI's DVs are bound and ready"
		objects.SetCondition(vmi, ready)
	}
}

// boot runs the guest, unless it is told not to.
func (s *Simulator) boot(ctx context.Context, seen *objects.Seen) (time.Duration, error) {
	vmi, behaviour := seen.VMI, s.options.Behaviour(seen.VM)
	pod, err := s.launcher(ctx, vmi)
	switch {
	case err != nil:
		return 0, err
	case pod == nil:
		objects.SetPhase(vmi, virtv1.Failed, metav1.Now())
		return 0, nil
	case behaviour.CrashLoop:
		objects.SetPhase(vmi, virtv1.Failed, metav1.Now())
		return 0, s.setPod(ctx, pod, objects.PodStatus(pod, corev1.PodFailed, "", metav1.Now()))
	case behaviour.NeverRuns:
		return 0, nil
	}
	if wait := behaviour.Delay - s.since(vmi); wait > 0 {
		return wait, nil
	}
	objects.Running(vmi, pod, behaviour.Addresses, metav1.Now())
	seen.VM.Status.StartFailure = nil
	return 0, nil
}

// run looks after a guest that runs: it may end, lose its pod, get interfaces, or report addresses.
func (s *Simulator) run(ctx context.Context, seen *objects.Seen) error {
	vm, vmi, behaviour := seen.VM, seen.VMI, s.options.Behaviour(seen.VM)
	pod, err := s.launcher(ctx, vmi)
	if err != nil {
		return err
	}
	if behaviour.End != "" || pod == nil {
		phase := behaviour.End
		if pod == nil {
			phase = virtv1.Failed
		}
		objects.SetPhase(vmi, phase, metav1.Now())
		objects.SetNotReady(vmi, objects.ReasonGuestNotRunning, "Guest VM is not reported as running", metav1.Now())
		if pod == nil {
			return nil
		}
		return s.setPod(ctx, pod, objects.PodStatus(pod, corev1.PodPhase(phase), "", metav1.Now()))
	}
	if spec, plugged := objects.Hotplug(vm, vmi); plugged {
		vmi.Spec = spec
	}
	if objects.IsCurrent(vm, vmi) {
		vmi.Annotations[objects.AnnGeneration] = strconv.FormatInt(vm.Generation, 10)
	}
	vm.Status.StartFailure = nil
	objects.Running(vmi, pod, behaviour.Addresses, metav1.Now())
	return nil
}

// end takes an instance that is being deleted down: its guest, its pod, then its finalizer.
func (s *Simulator) end(ctx context.Context, seen *objects.Seen) (time.Duration, error) {
	vmi := seen.VMI
	pod, err := s.launcher(ctx, vmi)
	if err != nil {
		return 0, err
	}
	if pod != nil {
		if wait := s.options.Termination - s.since(vmi); wait > 0 && vmi.Status.Phase == virtv1.Running {
			return wait, s.terminating(ctx, vmi)
		}
		return soon, s.removePod(ctx, pod)
	}
	before := vmi.DeepCopy()
	if controllerutil.RemoveFinalizer(vmi, objects.FinalizerInstance) {
		if err := s.live.Patch(ctx, vmi, locked(before)); err != nil {
			return 0, err
		}
	}
	if err := s.cachedAgain(ctx, seen); err != nil || seen.VMI != nil {
		return soon, err
	}
	s.forget(vmi.UID)
	return soon, nil
}

func (s *Simulator) terminating(ctx context.Context, vmi *virtv1.VirtualMachineInstance) error {
	before := vmi.DeepCopy()
	objects.SetNotReady(vmi, objects.ReasonPodTerminating, "virt-launcher pod is terminating", metav1.Now())
	if equality.Semantic.DeepEqual(before, vmi) {
		return nil
	}
	return s.live.Patch(ctx, vmi, locked(before))
}
