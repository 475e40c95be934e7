// Package controller does all the input and output of the disk-sync-operator: it observes, has the plan decide, and
// carries out the decision. Four workers share the work:
//
//   - images follow each image by itself, many at a time;
//   - admission passes the slots on, one Lease after the other, in the order of the tickets;
//   - starts and downloads begin the attempts of images that got a slot, in the order that they got it: the one writes
//     status, the other creates the DataVolume, so that two writes are under way at a time and none overtakes another.
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
	cache     client.Reader // for lists that need not wait for our own writes
	live      client.Reader
	policy    func(context.Context) (p policy.Policy, dryRun bool, err error)
	admission *Admission
	progress  time.Duration
	now       func() time.Time
	events    *events
	metrics   *metrics
	sightings *sightings
	begun     *handovers

	// start hands an image that is to begin an attempt to the starts, download one that has begun to the downloads.
	start, download func(types.NamespacedName)
}

// Reconcile follows an image by itself. Attempts are begun by the starts and the downloads, in order.
func (r *Images) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return r.reconcile(ctx, req.NamespacedName, r.handOver)
}

// handOver leaves the beginning of an attempt to the worker whose turn it is.
func (r *Images) handOver(_ context.Context, s plan.Snapshot, d plan.Decision, _ plan.Settings) (reconcile.Result, error) {
	next := r.download
	if d.Report.Starts {
		next = r.start
	}
	next(client.ObjectKeyFromObject(s.Image))
	return reconcile.Result{}, nil
}

type beginner func(context.Context, plan.Snapshot, plan.Decision, plan.Settings) (reconcile.Result, error)

func (r *Images) reconcile(ctx context.Context, key types.NamespacedName, begin beginner) (reconcile.Result, error) {
	p, dryRun, err := r.policy(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	snapshot, err := r.observe(ctx, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	again, err := r.releaseStrangers(ctx, key, snapshot.Image)
	if err != nil || snapshot.Image == nil {
		return reconcile.Result{RequeueAfter: again}, err
	}
	if snapshot.Image, err = r.protect(ctx, snapshot.Image); err != nil || snapshot.Image == nil {
		return conflictIsLater(err)
	}
	settings := plan.Settings{Policy: p, ProgressInterval: r.progress, DryRun: dryRun}
	decision := plan.Next(snapshot, settings, r.now())
	if destroys(decision) {
		if snapshot, err = r.observeLive(ctx, key); err != nil || snapshot.Image == nil {
			return reconcile.Result{}, err
		}
		decision = plan.Next(snapshot, settings, r.now())
	}
	if begins(decision) {
		return begin(ctx, snapshot, decision, settings)
	}
	return r.act(ctx, snapshot, decision, settings)
}

// destroys says that the decision ends an attempt or deletes something. That is decided on the API server's own word: the
// caches may show an image as another leader has just left it, and its volume as it was before.
func destroys(d plan.Decision) bool {
	return d.Prune || d.Report.Failure != nil || d.Report.Loss != nil || len(d.Obsolete) > 0 ||
		slices.Contains(d.Actions, plan.DeleteDataVolume) || slices.Contains(d.Actions, plan.DeleteSnapshot)
}

// begins says that the decision starts a download.
func begins(d plan.Decision) bool {
	return d.Report.Starts || slices.Contains(d.Actions, plan.CreateDataVolume)
}

// act carries out a decision: status first, then the slot, for which others wait and under which nothing may begin when its
// attempt has ended, and the children.
func (r *Images) act(ctx context.Context, s plan.Snapshot, d plan.Decision, set plan.Settings) (reconcile.Result, error) {
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("attempt", d.Report.Attempt, "stage", d.Report.Stage))
	image, err := r.report(ctx, s, d.Report, set.Policy.MaxAttempts())
	if err != nil {
		return conflictIsLater(err)
	}
	written := image != s.Image
	s.Image = image
	released, err := r.giveUp(ctx, s, d, written)
	if err != nil {
		return conflictIsLater(err)
	}
	err = r.carryOutAll(ctx, s, d)
	switch refusal := refusalOf(err); {
	case refusal != "" && s.Refusal == "":
		s.Refusal = refusal
		return r.act(ctx, s, plan.Next(s, set, r.now()), set)
	case err != nil:
		return conflictIsLater(err)
	case !released:
		return reconcile.Result{RequeueAfter: leftoverCheck}, nil
	case d.Prune:
		return conflictIsLater(r.prune(ctx, s))
	case d.WakeAt.IsZero():
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: max(d.WakeAt.Sub(r.now()), time.Millisecond)}, nil
}

// leftoverCheck is when to look again whether something is left of an ended attempt, should the caches have told of it in
// an order that made the last event look like another image's.
const leftoverCheck = 5 * time.Second

// conflictIsLater turns a conflict into another look: the object has changed, and its event may be here already.
func conflictIsLater(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// giveUp marks the slot when its attempt has ended, and gives it up if the decision says so.
func (r *Images) giveUp(ctx context.Context, s plan.Snapshot, d plan.Decision, written bool) (released bool, err error) {
	if d.Ended {
		if err := r.admission.end(ctx, s.Hold); err != nil {
			return false, err
		}
	}
	if !d.ReleaseSlot {
		return true, nil
	}
	return r.release(ctx, s, written)
}

// release gives up the slot, on proof that nothing downloads under it any more. What is left goes by itself, and its
// going is an event.
func (r *Images) release(ctx context.Context, s plan.Snapshot, written bool) (released bool, err error) {
	if r.admission.givenUp(s.Hold) {
		return true, nil
	}
	if !written { // a write would have failed
		if err := r.stillAs(ctx, s.Image); err != nil {
			return false, err
		}
	}
	if s.DataVolume == nil || !ownedBy(s.DataVolume, s.Image.UID) {
		left, err := r.remains(ctx, s.Image)
		if err != nil {
			return false, err
		}
		if left != "" {
			log.FromContext(ctx).V(1).Info("the slot is kept", "until it is gone", left)
			return false, nil
		}
	}
	r.sightings.forget(s.Image.UID)
	r.admission.release(s.Hold)
	return true, nil
}

// stillAs fails with a conflict when the image is not what it was when it was looked at: another leader may have begun
// its next attempt under the very slot that this one has no use for. What does not exist begins nothing.
func (r *Images) stillAs(ctx context.Context, image *v1alpha1.VMDiskImage) error {
	current := &v1alpha1.VMDiskImage{}
	found, err := read(ctx, r.live, client.ObjectKeyFromObject(image), current)
	if found && current.UID == image.UID && current.ResourceVersion != image.ResourceVersion {
		return apierrors.NewConflict(v1alpha1.Resource("vmdiskimages"), image.Name, errors.New("it has changed since it was looked at"))
	}
	return err
}

// isAs says that the image exists, and is what it was when it was looked at: nothing begins for another one.
func (r *Images) isAs(ctx context.Context, image *v1alpha1.VMDiskImage) (bool, error) {
	current := &v1alpha1.VMDiskImage{}
	found, err := read(ctx, r.live, client.ObjectKeyFromObject(image), current)
	return found && current.UID == image.UID && current.ResourceVersion == image.ResourceVersion, err
}

// releaseStrangers gives up the slots of images of this name that do not exist any more, once the garbage collector has
// deleted what they had made; until then it says when to look again.
func (r *Images) releaseStrangers(ctx context.Context, key types.NamespacedName, image *v1alpha1.VMDiskImage) (again time.Duration, err error) {
	for _, uid := range r.admission.holdersOf(key) {
		if image != nil && image.UID == uid {
			continue
		}
		left, err := r.remainsOf(ctx, key.Namespace, uid)
		if err != nil {
			return 0, err
		}
		if left != "" {
			log.FromContext(ctx).V(1).Info("the slot of a deleted image is kept", "until it is gone", left)
			again = leftoverCheck
			continue
		}
		r.sightings.forget(uid)
		r.admission.releaseAll(v1alpha1.SlotHolder(key, uid))
	}
	return again, nil
}
