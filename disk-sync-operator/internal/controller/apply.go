package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/desired"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/status"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// +kubebuilder:rbac:groups=pelotech.ot,resources=vmdiskimages/status,verbs=patch

// report writes the status that the report asks for, if it differs, and gives the image as it is then. Events and
// metrics follow a write that succeeded.
func (r *Images) report(ctx context.Context, s plan.Snapshot, report plan.Report, maxAttempts int) (*v1alpha1.VMDiskImage, error) {
	next := status.Of(s.Image, report, maxAttempts, metav1.NewTime(r.now()))
	if equality.Semantic.DeepEqual(s.Image.Status, next) {
		return s.Image, nil
	}
	apply, err := status.Configuration(s.Image, next)
	if err != nil {
		return nil, err
	}
	if err := r.client.Status().Apply(ctx, apply, client.FieldOwner(FieldOwner), client.ForceOwnership); err != nil {
		return nil, fmt.Errorf("write the status: %w", err)
	}
	image := s.Image.DeepCopy()
	image.Status, image.ResourceVersion = next, ptr.Deref(apply.ResourceVersion, "")
	log.FromContext(ctx).Info("status written", "phase", next.Phase, "message", next.Message)
	r.events.of(s.Image, image)
	r.metrics.transition(s.Image, image)
	return image, nil
}

// +kubebuilder:rbac:groups=cdi.kubevirt.io,resources=datavolumes,verbs=create;delete;patch
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshots,verbs=create;delete;patch
// +kubebuilder:rbac:groups=pelotech.ot,resources=vmdiskimages/finalizers,verbs=update

// carryOutAll changes the children, until one change fails.
func (r *Images) carryOutAll(ctx context.Context, s plan.Snapshot, d plan.Decision) error {
	for _, action := range d.Actions {
		if err := r.carryOut(ctx, s, action); err != nil {
			return err
		}
	}
	for _, obsolete := range d.Obsolete {
		child, is := obsolete.(client.Object)
		if !is {
			return fmt.Errorf("%T is no object of the API", obsolete)
		}
		log.FromContext(ctx).Info("deleting a child of another revision", "kind", kindOf(child), "name", child.GetName())
		if err := r.delete(ctx, child); err != nil {
			return err
		}
	}
	return nil
}

// carryOut changes one child.
func (r *Images) carryOut(ctx context.Context, s plan.Snapshot, action plan.Action) error {
	log.FromContext(ctx).V(1).Info("changing a child", "action", action)
	switch action {
	case plan.CreateDataVolume:
		dv := desired.DataVolume(s.Image, s.Slot)
		if err := r.create(ctx, s, dv); err != nil {
			r.tellOfFence(s.Image, err)
			return err
		}
		r.sightings.note(s.Image, dv)
		return nil
	case plan.CreateSnapshot:
		return r.create(ctx, s, desired.VolumeSnapshot(s.Image))
	case plan.DeleteDataVolume:
		return r.delete(ctx, s.DataVolume)
	case plan.DeleteSnapshot:
		return r.delete(ctx, s.VolumeSnapshot)
	case plan.LabelDataVolume:
		return r.label(ctx, s.Image, cdiv1.SchemeGroupVersion.WithKind("DataVolume"), s.DataVolume)
	case plan.LabelSnapshot:
		return r.label(ctx, s.Image, snapshotv1.SchemeGroupVersion.WithKind("VolumeSnapshot"), s.VolumeSnapshot)
	}
	return fmt.Errorf("unknown action %q", action)
}

// create makes a child. One of that name that is ours already is as good: another leader, or this one in another
// life, has made it. What belongs to a former image goes by itself, and its going is an event.
func (r *Images) create(ctx context.Context, s plan.Snapshot, child client.Object) error {
	err := r.client.Create(ctx, child)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	existing, ok := child.DeepCopyObject().(client.Object)
	if !ok {
		return err
	}
	switch found := r.live.Get(ctx, client.ObjectKeyFromObject(child), existing); {
	case apierrors.IsNotFound(found): // try again: it may have been one that sends us no event
		return fmt.Errorf("the former %s has just gone: %w", child.GetName(), err)
	case found != nil:
		return fmt.Errorf("look at the existing %s: %w", child.GetName(), found)
	}
	owner := metav1.GetControllerOf(existing)
	switch {
	case owner != nil && owner.UID == s.Image.UID:
		child.SetUID(existing.GetUID())
		return nil
	case existing.GetDeletionTimestamp() != nil, owner != nil && owner.Kind == "VMDiskImage" && owner.Name == s.Image.Name:
		return fmt.Errorf("wait until the former %s is gone: %w", child.GetName(), err)
	}
	return &refused{fmt.Sprintf("a %s %s exists that does not belong to this image: delete or rename it", kindOf(child), child.GetName())}
}

func kindOf(obj client.Object) string {
	if _, is := obj.(*snapshotv1.VolumeSnapshot); is {
		return "VolumeSnapshot"
	}
	return "DataVolume"
}

// delete removes the very object that was looked at, and no other of its name. In the background: in the foreground an
// importer pod would wait for its scratch claim, and the claim for the pod.
func (r *Images) delete(ctx context.Context, child client.Object) error {
	uid := child.GetUID()
	err := r.client.Delete(ctx, child, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid})
	return client.IgnoreNotFound(err) // a conflict, because it is another one by now, is a reason to look again
}

// label gives the very child that was looked at our label again.
func (r *Images) label(ctx context.Context, image *v1alpha1.VMDiskImage, kind schema.GroupVersionKind, child client.Object) error {
	own := &unstructured.Unstructured{}
	own.SetGroupVersionKind(kind)
	own.SetNamespace(child.GetNamespace())
	own.SetName(child.GetName())
	own.SetUID(child.GetUID())
	own.SetLabels(map[string]string{v1alpha1.LabelImage: string(image.UID)})
	err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(own), client.FieldOwner(FieldOwner), client.ForceOwnership)
	if apierrors.IsConflict(err) {
		return nil // another one by now
	}
	return err
}

// refused is a create that will not succeed as long as nobody changes something.
type refused struct{ message string }

func (e *refused) Error() string { return e.message }

// slotFence is in every refusal of the chart's policy of that name. It is no verdict on the DataVolume: either the slot is
// another image's by now, as the next look will show, or the API server has not heard yet that it is ours.
const slotFence = "pelotech.ot/slot-fence"

func isFenced(err error) bool { return err != nil && strings.Contains(err.Error(), slotFence) }

// fencePatience is how long the fence may refuse a DataVolume before it is told: by then the API server should have heard.
const fencePatience = 30 * time.Second

func (r *Images) tellOfFence(image *v1alpha1.VMDiskImage, err error) {
	started := image.Status.StartedAt
	if isFenced(err) && started != nil && r.now().Sub(started.Time) > fencePatience {
		r.events.fenced(image)
	}
}

// refusalOf is what the API server, a webhook or a quota has against a child; empty for trouble that passes. A namespace that
// is going does not: an image in use outlives its deletion for as long as it is used, and others wait for the slot.
func refusalOf(err error) string {
	var own *refused
	switch {
	case err == nil, isFenced(err):
		return ""
	case errorAs(err, &own):
		return own.message
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return err.Error()
	}
	return ""
}
