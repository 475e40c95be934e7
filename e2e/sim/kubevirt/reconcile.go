package kubevirt

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pelotech/open-terrain/e2e/sim/kubevirt/objects"
)

// soon is when to look again after somebody else has written at the same time, or the cache was behind.
const soon = 10 * time.Millisecond

// reconcile takes one step of a VirtualMachine's life and shows it. Every step that is written wakes it again.
func (s *Simulator) reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	vm := &virtv1.VirtualMachine{}
	if err := s.reader().Get(ctx, request.NamespacedName, vm); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	again, err := s.play(ctx, vm.DeepCopy())
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	return reconcile.Result{RequeueAfter: again}, err
}

// reader is live unless it has to be fast: a cache that is behind would have steps left out of what is shown.
func (s *Simulator) reader() client.Reader {
	if s.options.Instant != nil {
		return s.cached
	}
	return s.live
}

func (s *Simulator) play(ctx context.Context, vm *virtv1.VirtualMachine) (time.Duration, error) {
	if vm.Spec.Template == nil {
		return 0, nil
	}
	if err := s.finalizer(ctx, vm); err != nil {
		return 0, err
	}
	shown := vm.DeepCopy()
	seen, err := s.look(ctx, vm)
	if err != nil {
		return 0, err
	}
	if s.options.Instant != nil {
		return s.playInstantly(ctx, shown, seen)
	}
	again := soon
	if vm.Status.PrintableStatus != "" { // it is Stopped first
		if again, err = s.act(ctx, &seen); err != nil {
			return 0, err
		}
	}
	later, err := s.show(ctx, shown, seen)
	if err != nil {
		return 0, err
	}
	if vm.DeletionTimestamp != nil && seen.VMI == nil {
		return 0, s.letGo(ctx, vm)
	}
	return sooner(again, later), nil
}

// sooner of two waits, 0 being none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// finalizer marks a VirtualMachine that is looked at for the first time.
func (s *Simulator) finalizer(ctx context.Context, vm *virtv1.VirtualMachine) error {
	if s.options.Instant != nil || vm.DeletionTimestamp != nil || controllerutil.ContainsFinalizer(vm, objects.FinalizerMachine) {
		return nil
	}
	before := vm.DeepCopy()
	controllerutil.AddFinalizer(vm, objects.FinalizerMachine)
	metav1.SetMetaDataAnnotation(&vm.ObjectMeta, objects.AnnObservedAPI, virtv1.GroupVersion.Version)
	metav1.SetMetaDataAnnotation(&vm.ObjectMeta, objects.AnnObservedStorageAPI, virtv1.GroupVersion.Version)
	return s.live.Patch(ctx, vm, locked(before))
}

func (s *Simulator) letGo(ctx context.Context, vm *virtv1.VirtualMachine) error {
	s.forget(vm.UID)
	before := vm.DeepCopy()
	if !controllerutil.RemoveFinalizer(vm, objects.FinalizerMachine) {
		return nil
	}
	return client.IgnoreNotFound(s.live.Patch(ctx, vm, locked(before)))
}

// locked is a patch that fails when the cache was behind.
func locked(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// look reads all that there is of a VirtualMachine.
func (s *Simulator) look(ctx context.Context, vm *virtv1.VirtualMachine) (objects.Seen, error) {
	seen := objects.Seen{VM: vm, Disks: objects.DisksOf(&vm.Spec.Template.Spec)}
	vmi := &virtv1.VirtualMachineInstance{}
	switch err := s.reader().Get(ctx, client.ObjectKeyFromObject(vm), vmi); {
	case err == nil && metav1.IsControlledBy(vmi, vm):
		seen.VMI = vmi.DeepCopy()
	case client.IgnoreNotFound(err) != nil:
		return seen, err
	}
	for i := range seen.Disks {
		if err := s.lookAt(ctx, vm.Namespace, &seen.Disks[i]); err != nil {
			return seen, err
		}
	}
	return seen, nil
}

// show writes the VirtualMachine's status if it is not the one that is shown, and says when it will change by itself.
func (s *Simulator) show(ctx context.Context, shown *virtv1.VirtualMachine, seen objects.Seen) (again time.Duration, err error) {
	behaviour, next := s.options.Behaviour(seen.VM), objects.Status(seen, metav1.Now())
	if len(behaviour.Flap) > 0 && seen.VMI != nil {
		next.PrintableStatus, again = s.flap(shown, behaviour)
	}
	if behaviour.Status != nil {
		behaviour.Status(&next)
	}
	if equality.Semantic.DeepEqual(shown.Status, next) {
		return again, nil
	}
	seen.VM.Status = next
	return again, s.live.Status().Patch(ctx, seen.VM, client.MergeFrom(shown))
}

// flap is the next of the states when the last one has been shown for long enough.
func (s *Simulator) flap(shown *virtv1.VirtualMachine, behaviour Behaviour) (virtv1.VirtualMachinePrintableStatus, time.Duration) {
	every := behaviour.FlapEvery
	if every == 0 {
		every = defaultFlapEvery
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(behaviour.Flap, shown.Status.PrintableStatus)
	if rest := every - time.Since(s.flapped[shown.UID]); rest > 0 && i >= 0 {
		return behaviour.Flap[i], rest
	}
	s.flapped[shown.UID] = time.Now()
	return behaviour.Flap[(i+1)%len(behaviour.Flap)], every
}
