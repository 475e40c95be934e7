package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/plan"
	"github.com/pelotech/open-terrain/workspace-operator/internal/status"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// FieldOwner is the field manager of what the operator applies.
const FieldOwner = "workspace-operator"

// Workspaces reconciles Workspaces: observe, plan, then children, then status (see the package plan).
type Workspaces struct {
	client    client.Client
	cache     client.Reader // for lists that need not wait for our own writes
	live      client.Reader
	admission *Admission
	settings  plan.Settings
	now       func() time.Time
	events    *events
	metrics   *metrics
	mu        sync.Mutex // of the writes to untaken
	untaken   memo[untakenFields]
	told      memo[time.Time]
	shall     memo[shall]
}

// Reconcile brings one Workspace as far as it goes. What is to be deleted is decided on the API server's own word: a cache may be
// behind, or not see what has lost its label.
func (r *Workspaces) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	s, err := r.observe(ctx, r.cached(), req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if s.Workspace == nil {
		r.forget(req)
		return reconcile.Result{}, nil
	}
	d := plan.Next(s, r.settings, r.now())
	if d.Doubtful {
		if s, err = r.observe(ctx, r.fromAPI(), req.Name); err != nil || s.Workspace == nil {
			return reconcile.Result{}, err
		}
		d = plan.Next(s, r.settings, r.now())
	}
	result, err := r.act(ctx, s, d)
	if err == nil && d.Again {
		result.RequeueAfter = time.Millisecond
	}
	return result, err
}

// act changes the children, and then says so. Status is written when a change failed, too: the deadline runs in any case.
func (r *Workspaces) act(ctx context.Context, s plan.Snapshot, d plan.Decision) (reconcile.Result, error) {
	failed := r.carryOut(ctx, &s, d.Actions)
	if len(s.Refusals) > 0 || failed != nil {
		s.Failing = failed != nil
		d = plan.Next(s, r.settings, r.now())
	}
	if err := errors.Join(failed, r.report(ctx, s.Workspace, d.Report)); err != nil {
		return conflictIsLater(err)
	}
	if d.WakeAt.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: max(d.WakeAt.Sub(r.now()), time.Millisecond)}, nil
}

// +kubebuilder:rbac:groups=pelotech.ot,resources=workspaces/status,verbs=patch

// report writes the status that the report asks for, if it differs. Events and metrics follow a write that succeeded.
func (r *Workspaces) report(ctx context.Context, ws *v1alpha1.Workspace, report plan.Report) error {
	next := status.Of(ws, report, metav1.NewTime(r.now()))
	if equality.Semantic.DeepEqual(ws.Status, next) {
		r.metrics.states.note(ws)
		return nil
	}
	apply, err := status.Configuration(ws, next)
	if err != nil {
		return err
	}
	if err := r.client.Status().Apply(ctx, apply, client.FieldOwner(FieldOwner), client.ForceOwnership); err != nil {
		return wrap("write the status", err)
	}
	after := ws.DeepCopy()
	after.Status, after.ResourceVersion = next, ptr.Deref(apply.ResourceVersion, "")
	r.told.note(ws, r.now())
	log.FromContext(ctx).Info("status written", "phase", next.Phase, "message", next.Message)
	r.events.of(ws, after)
	r.metrics.states.note(after)
	r.metrics.transition(ws, after, r.now())
	return nil
}

// forget what was remembered of a Workspace that is gone.
func (r *Workspaces) forget(req reconcile.Request) {
	r.metrics.states.forget(req.Name)
	r.untaken.forget(req.NamespacedName)
	r.told.forget(req.NamespacedName)
	r.shall.forget(req.NamespacedName)
}

// conflictIsLater turns a conflict into another look: the object has changed, and its event may be here already. So does an
// object, or a namespace, that has gone meanwhile.
func conflictIsLater(err error) (reconcile.Result, error) {
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil
	case apierrors.IsNotFound(err), isTerminating(err):
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	return reconcile.Result{}, err
}
