package kubevirt

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pelotech/open-terrain/e2e/sim/kubevirt/objects"
)

// act starts or stops the guest, or takes the instance one step on. What it writes is in seen afterwards.
func (s *Simulator) act(ctx context.Context, seen *objects.Seen) (time.Duration, error) {
	vm, vmi := seen.VM, seen.VMI
	wanted := vm.DeletionTimestamp == nil && wantsGuest(vm, vmi)
	switch {
	case vmi == nil && wanted:
		return s.startGuest(ctx, seen)
	case vmi == nil:
		return 0, nil
	case vmi.DeletionTimestamp != nil:
		s.missed(vm, vmi, wanted)
		return s.end(ctx, seen)
	case !wanted && rests(vm, vmi):
		return 0, nil
	case !wanted || vmi.IsFinal():
		return s.stopGuest(ctx, seen)
	}
	return s.guide(ctx, seen)
}

// guide takes a guest that is to live one step on. One that ends before it ran could not start.
func (s *Simulator) guide(ctx context.Context, seen *objects.Seen) (time.Duration, error) {
	again, err := s.advance(ctx, seen)
	if err == nil && seen.VMI.IsFinal() && !ran(seen.VMI) {
		s.failed(seen.VM, seen.VMI)
	}
	return again, err
}

// ran is true of an instance whose guest has run at some time.
func ran(vmi *virtv1.VirtualMachineInstance) bool {
	return slices.ContainsFunc(vmi.Status.PhaseTransitionTimestamps, func(t virtv1.VirtualMachineInstancePhaseTransitionTimestamp) bool {
		return t.Phase == virtv1.Running
	})
}

// wantsGuest says whether the runStrategy wants a guest that runs, given the one that there is.
func wantsGuest(vm *virtv1.VirtualMachine, vmi *virtv1.VirtualMachineInstance) bool {
	succeeded := vmi != nil && vmi.Status.Phase == virtv1.Succeeded
	switch objects.Strategy(vm) {
	case virtv1.RunStrategyAlways:
		return true
	case virtv1.RunStrategyRerunOnFailure:
		return !succeeded
	case virtv1.RunStrategyOnce:
		return vmi == nil || !vmi.IsFinal()
	case virtv1.RunStrategyManual:
		asked := func(action virtv1.StateChangeRequestAction) bool {
			return slices.ContainsFunc(vm.Status.StateChangeRequests, func(r virtv1.VirtualMachineStateChangeRequest) bool { return r.Action == action })
		}
		if vmi == nil {
			return asked(virtv1.StartRequest)
		}
		return !vmi.IsFinal() && !asked(virtv1.StopRequest)
	}
	return false
}

// rests is true of an instance that has ended and is kept, because its guest is not to run again.
func rests(vm *virtv1.VirtualMachine, vmi *virtv1.VirtualMachineInstance) bool {
	kept := []virtv1.VirtualMachineRunStrategy{virtv1.RunStrategyRerunOnFailure, virtv1.RunStrategyOnce, virtv1.RunStrategyManual}
	return vmi.IsFinal() && vm.DeletionTimestamp == nil && slices.Contains(kept, objects.Strategy(vm))
}

func (s *Simulator) startGuest(ctx context.Context, seen *objects.Seen) (time.Duration, error) {
	vm := seen.VM
	if wait := s.untilRetry(vm); wait > 0 {
		return wait, nil
	}
	if refusal := objects.Refusal(vm); refusal != "" {
		seen.Failure = "Failure while starting VMI: " + refusal
		return s.options.Retry, nil
	}
	vmi := objects.Instance(vm)
	err := s.live.Create(ctx, vmi)
	if apierrors.IsInvalid(err) {
		seen.Failure = "Failure while starting VMI: " + err.Error()
		return s.options.Retry, nil
	}
	if err != nil {
		return 0, err
	}
	seen.VMI = vmi
	vm.Status.StateChangeRequests = nil
	return s.pace(vmi), nil
}

// untilRetry is the rest of the back-off.
func (s *Simulator) untilRetry(vm *virtv1.VirtualMachine) time.Duration {
	s.mu.Lock()
	at, has := s.retryAt[vm.UID]
	s.mu.Unlock()
	if failure := vm.Status.StartFailure; !has && failure != nil && failure.RetryAfterTimestamp != nil {
		at = failure.RetryAfterTimestamp.Time // counted by a former simulator
	}
	return time.Until(at)
}

// stopGuest deletes the instance, of a guest that is not to run or that has ended.
func (s *Simulator) stopGuest(ctx context.Context, seen *objects.Seen) (time.Duration, error) {
	vmi := seen.VMI
	s.mu.Lock()
	s.ours[vmi.UID] = true
	s.mu.Unlock()
	if !vmi.IsFinal() {
		seen.VM.Status.StartFailure = nil
	}
	if err := s.live.Delete(ctx, vmi.DeepCopy(), client.Preconditions{UID: &vmi.UID}); err != nil {
		return 0, err
	}
	return soon, s.cachedAgain(ctx, seen)
}

// cachedAgain reads the instance again after it was deleted: what is shown must not be older than what was done.
func (s *Simulator) cachedAgain(ctx context.Context, seen *objects.Seen) error {
	vmi := &virtv1.VirtualMachineInstance{}
	err := s.live.Get(ctx, client.ObjectKeyFromObject(seen.VMI), vmi)
	switch {
	case apierrors.IsNotFound(err):
		seen.VMI = nil
		return nil
	case err == nil:
		seen.VMI = vmi
	}
	return err
}

// missed counts an instance that somebody has taken away as one that did not come up.
func (s *Simulator) missed(vm *virtv1.VirtualMachine, vmi *virtv1.VirtualMachineInstance, wanted bool) {
	s.mu.Lock()
	ours := s.ours[vmi.UID]
	s.mu.Unlock()
	if wanted && !ours {
		s.failed(vm, vmi)
	}
}

// failed counts a guest that did not come up, once, and sets the time of the next try.
func (s *Simulator) failed(vm *virtv1.VirtualMachine, vmi *virtv1.VirtualMachineInstance) {
	failure := vm.Status.StartFailure
	if failure != nil && failure.LastFailedVMIUID == vmi.UID {
		return
	}
	count := 1
	if failure != nil {
		count += failure.ConsecutiveFailCount
	}
	wait := min(time.Duration(count*count), maxBackoffFactor) * s.options.Backoff
	at := time.Now().Add(wait)
	s.mu.Lock()
	s.retryAt[vm.UID] = at
	s.mu.Unlock()
	vm.Status.StartFailure = &virtv1.VirtualMachineStartFailure{
		ConsecutiveFailCount: count, LastFailedVMIUID: vmi.UID, RetryAfterTimestamp: new(metav1.NewTime(at)),
	}
}

// pace is when to take the next step of an instance that is not held up: at once, or when the pause is over.
func (s *Simulator) pace(vmi *virtv1.VirtualMachineInstance) time.Duration {
	return max(s.options.Step-s.since(vmi), time.Millisecond)
}
