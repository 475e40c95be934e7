package kubevirt

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pelotech/open-terrain/e2e/sim/kubevirt/objects"
)

// playInstantly brings a VirtualMachine to Running with three writes. What has no status yet is not shown as Stopped first.
func (s *Simulator) playInstantly(ctx context.Context, shown *virtv1.VirtualMachine, seen objects.Seen) (time.Duration, error) {
	vm := seen.VM
	if vm.DeletionTimestamp != nil {
		return 0, nil // the garbage collector takes the instance
	}
	again, err := s.actInstantly(ctx, &seen)
	if again > 0 || err != nil {
		return again, err
	}
	if vmi := seen.VMI; vmi != nil && vmi.Status.Phase == virtv1.VmPhaseUnset {
		before := vmi.DeepCopy()
		objects.Running(vmi, objects.LauncherPod(vmi), s.options.Behaviour(vm).Addresses, metav1.Now())
		if err := s.live.Patch(ctx, vmi, client.MergeFrom(before)); err != nil {
			return 0, err
		}
	}
	if vm.Status.PrintableStatus == "" {
		vm.Status.PrintableStatus = virtv1.VirtualMachineStatusStopped
	}
	return s.show(ctx, shown, seen)
}

// actInstantly makes or deletes the instance.
func (s *Simulator) actInstantly(ctx context.Context, seen *objects.Seen) (time.Duration, error) {
	vm, wanted := seen.VM, wantsGuest(seen.VM, seen.VMI)
	switch {
	case wanted && seen.VMI == nil && cloned(seen.Disks):
		if wait := s.options.Instant.Duration - time.Since(vm.CreationTimestamp.Time); wait > 0 {
			return wait, nil
		}
		seen.VMI = objects.Instance(vm)
		seen.VMI.Finalizers = nil
		return 0, s.live.Create(ctx, seen.VMI)
	case !wanted && seen.VMI != nil:
		vmi := seen.VMI
		seen.VMI = nil
		return 0, s.live.Delete(ctx, vmi, client.Preconditions{UID: &vmi.UID})
	}
	return 0, nil
}

// cloned is true when every disk is there. A guest that waits for one has no instance, other than with KubeVirt.
func cloned(disks []objects.Disk) bool {
	return !slices.ContainsFunc(disks, func(d objects.Disk) bool { return d.DataVolume == nil || d.DataVolume.Status.Phase != cdiv1.Succeeded })
}
