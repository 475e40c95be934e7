// Package controller does all the input and output of the disk-sync-operator: it observes, has the plan decide, and
// carries out the decision. Three workers share the work:
//
//   - images follow each image by itself, many at a time;
//   - admission passes the slots on, one Lease after the other, in the order of the tickets;
//   - starts begin the attempts of images that got a slot, one after the other, in the order that they got it.
package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// FieldOwner is the field manager of the statuses that this operator applies.
const FieldOwner = "disk-sync-operator"

// Images reconciles VMDiskImages: observe, plan, then status, children and slot, in that order (see the package plan).
type Images struct {
	client    client.Client
	live      client.Reader
	policy    func(context.Context) (policy.Policy, error)
	admission *Admission
	progress  time.Duration
	now       func() time.Time
	events    *events
	metrics   *metrics
	sightings *sightings

	// start hands an image that is to begin an attempt to the starts.
	start func(types.NamespacedName)
}

// Reconcile follows an image by itself. Attempts are begun by the starts, in order.
func (r *Images) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return r.reconcile(ctx, req.NamespacedName, func(context.Context, plan.Snapshot, plan.Decision, plan.Settings) (reconcile.Result, error) {
		r.start(req.NamespacedName)
		return reconcile.Result{}, nil
	})
}

// Starts begins attempts.
type Starts struct{ *Images }

// Reconcile begins the image's attempt, if one is due.
func (r Starts) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return r.reconcile(ctx, req.NamespacedName, r.act)
}

type beginner func(context.Context, plan.Snapshot, plan.Decision, plan.Settings) (reconcile.Result, error)

func (r *Images) reconcile(ctx context.Context, key types.NamespacedName, begin beginner) (reconcile.Result, error) {
	p, err := r.policy(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	snapshot, err := r.observe(ctx, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.releaseStrangers(ctx, key, snapshot.Image); err != nil || snapshot.Image == nil {
		return reconcile.Result{}, err
	}
	settings := plan.Settings{Policy: p, ProgressInterval: r.progress}
	decision := plan.Next(snapshot, settings, r.now())
	if begins(decision) {
		return begin(ctx, snapshot, decision, settings)
	}
	return r.act(ctx, snapshot, decision, settings)
}

// begins says that the decision starts a download.
func begins(d plan.Decision) bool {
	return d.Report.Starts || slices.Contains(d.Actions, plan.CreateDataVolume)
}

// act carries out a decision: status first, then the children, then the slot.
func (r *Images) act(ctx context.Context, s plan.Snapshot, d plan.Decision, set plan.Settings) (reconcile.Result, error) {
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("attempt", d.Report.Attempt, "stage", d.Report.Stage))
	image, err := r.report(ctx, s, d.Report, set.Policy.MaxAttempts())
	if err != nil {
		return conflictIsLater(err)
	}
	s.Image = image
	for _, action := range d.Actions {
		err := r.carryOut(ctx, s, action)
		if refusal := refusalOf(err); refusal != "" && s.Refusal == "" {
			s.Refusal = refusal
			return r.act(ctx, s, plan.Next(s, set, r.now()), set)
		}
		if err != nil {
			return conflictIsLater(err)
		}
	}
	if d.ReleaseSlot {
		if err := r.release(ctx, s); err != nil {
			return reconcile.Result{}, err
		}
	}
	if d.WakeAt.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: max(d.WakeAt.Sub(r.now()), time.Millisecond)}, nil
}

// conflictIsLater turns a conflict into another look: the object has changed, and its event may be here already.
func conflictIsLater(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// release gives up the slot. It is only ever given up on proof: a DataVolume that has Succeeded, or the API server's own
// word that there is none (an event of its creation by a former leader may be on the way).
func (r *Images) release(ctx context.Context, s plan.Snapshot) error {
	if s.DataVolume == nil || !ownedBy(s.DataVolume, s.Image.UID) {
		downloads, err := r.downloads(ctx, s.Image)
		if err != nil {
			return err
		}
		if downloads {
			return errors.New("keep the slot: the image's DataVolume still exists")
		}
	}
	r.sightings.forget(s.Image.UID)
	r.admission.release(holderIdentity(s.Image), s.Slot)
	return nil
}

// releaseStrangers gives up the slots of images of this name that do not exist any more, once the garbage collector has
// deleted their DataVolumes.
func (r *Images) releaseStrangers(ctx context.Context, key types.NamespacedName, image *v1alpha1.VMDiskImage) error {
	for _, uid := range r.admission.holdersOf(key) {
		if image != nil && image.UID == uid {
			continue
		}
		left, err := r.leftBehind(ctx, key.Namespace, uid)
		if err != nil {
			return err
		}
		if left {
			continue // its deletion is an event
		}
		r.sightings.forget(uid)
		r.admission.releaseAll(v1alpha1.SlotHolder(key, uid))
	}
	return nil
}
