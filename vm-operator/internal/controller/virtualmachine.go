// Package controller does all the input and output of the vm-operator: it observes, has the plan decide, and carries out the
// decision. Two workers share the work:
//
//   - virtual machines are followed each by itself, many at a time;
//   - claims keep, for each image, the count of the virtual machines that use it: one write for many.
package controller

import (
	"context"
	"errors"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
	"github.com/pelotech/open-terrain/vm-operator/internal/status"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// FieldOwner is the field manager of what the operator applies.
	FieldOwner = "vm-operator"
	// ReferencesFieldOwner is that of the references on images.
	ReferencesFieldOwner = "vm-operator-references"
)

// VirtualMachines reconciles VirtualMachines: observe, plan, then children, then status (see the package plan).
type VirtualMachines struct {
	client   client.Client
	cache    client.Reader // for lists that need not wait for our own writes
	live     client.Reader
	claims   *Claims
	settings plan.Settings
	now      func() time.Time
	events   *events
	metrics  *metrics
	reader   PasswordReader
	applied  memo[plan.SecretApplied]
	untaken  memo[untakenFields]
}

// Reconcile brings one VirtualMachine a step on. What seems to be lost, or is to go, is decided on the API server's own word:
// a cache may be behind, or not see what has lost its label.
func (r *VirtualMachines) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	s, err := r.observe(ctx, r.client, req.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.releaseStrangers(ctx, req.NamespacedName, s.VM); err != nil {
		return conflictIsLater(err)
	}
	if s.VM == nil {
		r.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	d := plan.Next(s, r.settings, r.now())
	if d.Doubtful {
		if s, err = r.observe(ctx, r.live, req.NamespacedName); err != nil || s.VM == nil {
			return reconcile.Result{}, err
		}
		d = plan.Next(s, r.settings, r.now())
	}
	return r.act(ctx, s, d)
}

// act changes the children, and then says so. Status is written when a change failed, too: the deadline runs in any case.
func (r *VirtualMachines) act(ctx context.Context, s plan.Snapshot, d plan.Decision) (reconcile.Result, error) {
	refusals, failed := r.carryOut(ctx, s, d.Actions)
	if len(refusals) > 0 || failed != nil {
		s.Refusals, s.Failing = refusals, failureOf(failed)
		d = plan.Next(s, r.settings, r.now())
	}
	if err := errors.Join(failed, r.report(ctx, s.VM, d.Report)); err != nil {
		return conflictIsLater(err)
	}
	if d.WakeAt.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: max(d.WakeAt.Sub(r.now()), time.Millisecond)}, nil
}

// +kubebuilder:rbac:groups=pelotech.ot,resources=virtualmachines/status,verbs=patch

// report writes the status that the report asks for, if it differs. Events and metrics follow a write that succeeded.
func (r *VirtualMachines) report(ctx context.Context, vm *v1alpha1.VirtualMachine, report plan.Report) error {
	next := status.Of(vm, report, metav1.NewTime(r.now()))
	if equality.Semantic.DeepEqual(vm.Status, next) {
		r.metrics.states.note(vm)
		return nil
	}
	apply, err := status.Configuration(vm, next)
	if err != nil {
		return err
	}
	if err := r.client.Status().Apply(ctx, apply, client.FieldOwner(FieldOwner), client.ForceOwnership); err != nil {
		return wrap("write the status", err)
	}
	after := vm.DeepCopy()
	after.Status, after.ResourceVersion = next, ptr.Deref(apply.ResourceVersion, "")
	log.FromContext(ctx).Info("status written", "phase", next.Phase, "message", next.Message)
	r.events.of(vm, after)
	r.metrics.states.note(after)
	r.metrics.transition(vm, after, r.now())
	return nil
}

// forget what was remembered of a VirtualMachine that is gone.
func (r *VirtualMachines) forget(key types.NamespacedName) {
	r.metrics.states.forget(key)
	r.applied.forget(key)
	r.untaken.forget(key)
}

// conflictIsLater turns a conflict into another look: the object has changed, and its event may be here already. So does an
// object, or a namespace, that has gone meanwhile.
func conflictIsLater(err error) (reconcile.Result, error) {
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil
	case apierrors.IsNotFound(err):
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	return reconcile.Result{}, err
}
