package kubevirt

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/pelotech/open-terrain/e2e/sim/kubevirt/objects"
)

const diskIndex = "disk"

// watch maps everything to the VirtualMachine that it belongs to.
func (s *Simulator) watch(ctx context.Context, mgr manager.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &virtv1.VirtualMachine{}, diskIndex, disksOf); err != nil {
		return err
	}
	byDisk := handler.EnqueueRequestsFromMapFunc(s.usersOf)
	control := builder.ControllerManagedBy(mgr).Named("kubevirt").
		For(&virtv1.VirtualMachine{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{UpdateFunc: requested}))).
		Owns(&virtv1.VirtualMachineInstance{}).
		Watches(&cdiv1.DataVolume{}, byDisk).
		WatchesRawSource(source.Channel(s.changed, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: s.options.Workers})
	if s.options.Instant == nil {
		control = control.
			Watches(&corev1.PersistentVolumeClaim{}, byDisk).
			Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(machineOf))
	}
	return control.Complete(reconcile.Func(s.reconcile))
}

func disksOf(o client.Object) []string {
	vm, is := o.(*virtv1.VirtualMachine)
	if !is || vm.Spec.Template == nil {
		return nil
	}
	var names []string
	for _, disk := range objects.DisksOf(&vm.Spec.Template.Spec) {
		names = append(names, disk.Name)
	}
	return names
}

// requested is true when virtctl has asked to start or stop, and when somebody has taken a finalizer away.
func requested(e event.UpdateEvent) bool {
	before, isBefore := e.ObjectOld.(*virtv1.VirtualMachine)
	after, isAfter := e.ObjectNew.(*virtv1.VirtualMachine)
	if !isBefore || !isAfter {
		return false
	}
	return len(before.Status.StateChangeRequests) != len(after.Status.StateChangeRequests) || !slices.Equal(before.Finalizers, after.Finalizers)
}

// usersOf are the VirtualMachines with a disk of that name.
func (s *Simulator) usersOf(ctx context.Context, o client.Object) []reconcile.Request {
	var users virtv1.VirtualMachineList
	if err := s.cached.List(ctx, &users, client.InNamespace(o.GetNamespace()), client.MatchingFields{diskIndex: o.GetName()}); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range users.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&users.Items[i])})
	}
	return requests
}

// machineOf is the VirtualMachine of a launcher pod: its instance has its name.
func machineOf(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetLabels()[objects.LabelID]}}}
}
