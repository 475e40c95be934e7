package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	plan "github.com/pelotech/open-terrain/disk-sync-operator/internal/plan/datasync"
	status "github.com/pelotech/open-terrain/disk-sync-operator/internal/status/datasync"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// DataSyncFieldOwner is the field manager of the images that DataSyncs make, and of their statuses.
const DataSyncFieldOwner = "disk-sync-operator-datasync"

// refusedAgain is when to ask again for an image that the API server refused: a quota's end sends no event.
const refusedAgain = time.Minute

// DataSyncs reconciles DataSyncs: observe, plan, then images, then status.
type DataSyncs struct {
	client client.Client
	live   client.Reader
	policy func(context.Context) (policy.Policy, error)
	now    func() time.Time
	events *events
	phases *dataSyncPhases
}

// Reconcile brings the images of a DataSync to what its entries ask for. A DataSync that is being deleted keeps its hands
// off: the garbage collector deletes the images.
func (r *DataSyncs) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	p, err := r.policy(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	s, d, err := r.decide(ctx, req.NamespacedName, p)
	if err != nil || s.DataSync == nil {
		return reconcile.Result{}, err
	}
	if s.Refusals, err = r.carryOut(ctx, d); err != nil {
		return conflictIsLater(err)
	}
	result := reconcile.Result{}
	if len(s.Refusals) > 0 {
		d, result.RequeueAfter = plan.Next(s, p), refusedAgain
	}
	if err := r.report(ctx, s.DataSync, d); err != nil {
		return conflictIsLater(err)
	}
	return result, nil
}

// decide on what the caches say, unless an image is to go: a cache may show the spec from before its entry was added.
func (r *DataSyncs) decide(ctx context.Context, key types.NamespacedName, p policy.Policy) (plan.Snapshot, plan.Decision, error) {
	s, err := r.observe(ctx, r.client, key)
	if err != nil || s.DataSync == nil {
		return s, plan.Decision{}, err
	}
	d := plan.Next(s, p)
	if len(d.Delete) == 0 {
		return s, d, nil
	}
	if s, err = r.observe(ctx, r.live, key); err != nil || s.DataSync == nil {
		return s, plan.Decision{}, err
	}
	return s, plan.Next(s, p), nil
}

// +kubebuilder:rbac:groups=pelotech.ot,resources=datasyncs,verbs=get;list;watch

// observe reads the DataSync from there, and its images from the cache. One that is being deleted is as good as gone.
func (r *DataSyncs) observe(ctx context.Context, from client.Reader, key types.NamespacedName) (plan.Snapshot, error) {
	dataSync := &v1alpha1.DataSync{}
	found, err := read(ctx, from, key, dataSync)
	if err != nil {
		return plan.Snapshot{}, err
	}
	if !found || dataSync.DeletionTimestamp != nil {
		r.phases.forget(key)
		return plan.Snapshot{}, nil
	}
	s := plan.Snapshot{DataSync: dataSync, Named: map[string]*v1alpha1.VMDiskImage{}}
	for _, vm := range dataSync.Spec.VMs {
		image, name := &v1alpha1.VMDiskImage{}, v1alpha1.DataSyncImageName(key.Name, vm.Name)
		found, err := read(ctx, r.client, types.NamespacedName{Namespace: key.Namespace, Name: name}, image)
		if err != nil {
			return s, err
		}
		if found {
			s.Named[name] = image
		}
	}
	owned := &v1alpha1.VMDiskImageList{}
	if err := r.client.List(ctx, owned, client.InNamespace(key.Namespace), client.MatchingFields{imageDataSync: string(dataSync.UID)}); err != nil {
		return s, fmt.Errorf("list the images of %s: %w", key, err)
	}
	for i := range owned.Items {
		s.Owned = append(s.Owned, &owned.Items[i])
	}
	return s, nil
}

// +kubebuilder:rbac:groups=pelotech.ot,resources=vmdiskimages,verbs=create;patch;delete
// +kubebuilder:rbac:groups=pelotech.ot,resources=datasyncs/finalizers,verbs=update

// carryOut changes the images, and tells which of them the API server refuses. Images are created one after the other, so
// that they queue in the order of the entries. A create never takes over what exists already, and a change or a deletion
// is bound to the very object that was looked at.
func (r *DataSyncs) carryOut(ctx context.Context, d plan.Decision) (refusals map[string]string, err error) {
	refusals = map[string]string{}
	for _, image := range d.Create {
		err := r.client.Create(ctx, image.DeepCopy(), client.FieldOwner(DataSyncFieldOwner))
		if apierrors.IsAlreadyExists(err) {
			err = apierrors.NewConflict(v1alpha1.Resource("vmdiskimages"), image.Name, err)
		}
		if err := noteRefusal(refusals, image.Name, err); err != nil {
			return nil, fmt.Errorf("create the image %s: %w", image.Name, err)
		}
	}
	for _, change := range d.Change {
		patch := client.MergeFromWithOptions(change.From, client.MergeFromWithOptimisticLock{})
		err := r.client.Patch(ctx, change.To.DeepCopy(), patch, client.FieldOwner(DataSyncFieldOwner))
		if err := noteRefusal(refusals, change.To.Name, err); err != nil {
			return nil, fmt.Errorf("change the image %s: %w", change.To.Name, err)
		}
	}
	for _, image := range d.Delete {
		log.FromContext(ctx).Info("deleting the image of a former entry", "image", image.Name)
		err := r.client.Delete(ctx, image, client.Preconditions{UID: &image.UID, ResourceVersion: &image.ResourceVersion},
			client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("delete the image %s: %w", image.Name, err)
		}
	}
	return refusals, nil
}

// noteRefusal notes an error that somebody has to do something about, and gives back any other.
func noteRefusal(refusals map[string]string, image string, err error) error {
	if refusal := refusalOf(err); refusal != "" {
		refusals[image] = refusal
		return nil
	}
	return err
}

// +kubebuilder:rbac:groups=pelotech.ot,resources=datasyncs/status,verbs=patch

// report writes the status that the decision asks for, if it differs. The event follows a write that succeeded.
func (r *DataSyncs) report(ctx context.Context, dataSync *v1alpha1.DataSync, d plan.Decision) error {
	next := status.Of(dataSync, d, metav1.NewTime(r.now()))
	r.phases.note(client.ObjectKeyFromObject(dataSync), next.Phase)
	if equality.Semantic.DeepEqual(dataSync.Status, next) {
		return nil
	}
	apply, err := status.Configuration(dataSync, next)
	if err != nil {
		return err
	}
	if err := r.client.Status().Apply(ctx, apply, client.FieldOwner(DataSyncFieldOwner), client.ForceOwnership); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	log.FromContext(ctx).Info("status written", "phase", next.Phase, "ready", next.Ready)
	event, ok := status.EventOf(&dataSync.Status, &next)
	if !ok {
		return nil
	}
	kind := corev1.EventTypeNormal
	if event.Warning {
		kind = corev1.EventTypeWarning
	}
	after := dataSync.DeepCopy()
	after.ResourceVersion = ptr.Deref(apply.ResourceVersion, "")
	r.events.recorder.Eventf(after, nil, kind, event.Reason, event.Action, "%s", event.Note)
	return nil
}
