// Package naive is an operator that does what the invariants forbid, so that a check that never turns red is noticed. It
// admits whoever comes first, counts from a list that is old, makes the DataVolume before it says so anywhere, and tries
// again at once and for ever.
package naive

import (
	"context"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Operator is the naive operator.
type Operator struct {
	Client client.Client
	// Concurrency is the limit that it means to keep.
	Concurrency int
	// Stale is how old the list is that it counts from.
	Stale time.Duration

	counted time.Time
	running int
}

// Run looks at all images again and again, until ctx is done. It returns errors other than those of objects that have
// changed or gone.
func (o *Operator) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := o.round(ctx); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

func (o *Operator) round(ctx context.Context) error {
	var images otv1alpha1.VMDiskImageList // by name, not by age
	if err := o.Client.List(ctx, &images); err != nil {
		return err
	}
	if time.Since(o.counted) > o.Stale {
		o.counted, o.running = time.Now(), 0
		for i := range images.Items {
			if images.Items[i].Status.Phase == otv1alpha1.PhaseSyncing {
				o.running++
			}
		}
	}
	for i := range images.Items {
		if err := o.look(ctx, &images.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (o *Operator) look(ctx context.Context, image *otv1alpha1.VMDiskImage) error {
	switch image.Status.Phase {
	case otv1alpha1.PhaseSyncing:
		return o.follow(ctx, image)
	case otv1alpha1.PhaseSucceeded:
		return nil
	}
	if o.running >= o.Concurrency {
		return nil
	}
	if err := o.Client.Create(ctx, volume(image)); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	return o.say(ctx, image, metav1.ConditionFalse, otv1alpha1.ReasonSyncing)
}

// follow says Succeeded without a snapshot, and starts again whatever has failed.
func (o *Operator) follow(ctx context.Context, image *otv1alpha1.VMDiskImage) error {
	dv := volume(image)
	if err := o.Client.Get(ctx, client.ObjectKeyFromObject(dv), dv); apierrors.IsNotFound(err) {
		return o.say(ctx, image, metav1.ConditionFalse, otv1alpha1.ReasonQueued)
	} else if err != nil {
		return err
	}
	if dv.Status.Phase == cdiv1.Succeeded {
		return o.say(ctx, image, metav1.ConditionTrue, otv1alpha1.ReasonSynced)
	}
	for _, c := range dv.Status.Conditions {
		if c.Type == cdiv1.DataVolumeRunning && c.Reason == "Error" && dv.DeletionTimestamp == nil {
			if err := o.Client.Delete(ctx, dv); err != nil {
				return err
			}
			return o.say(ctx, image, metav1.ConditionFalse, otv1alpha1.ReasonQueued)
		}
	}
	return nil
}

func (o *Operator) say(ctx context.Context, image *otv1alpha1.VMDiskImage, synced metav1.ConditionStatus, reason string) error {
	image.Status.Revision = otv1alpha1.RevisionOf(image)
	for _, kind := range []string{otv1alpha1.ConditionSynced, otv1alpha1.ConditionSnapshotReady, otv1alpha1.ConditionReady} {
		meta.SetStatusCondition(&image.Status.Conditions, metav1.Condition{Type: kind, Status: synced, Reason: reason})
	}
	image.Status.Phase = otv1alpha1.PhaseOf(image.Status.Conditions)
	return o.Client.Status().Update(ctx, image)
}

func volume(image *otv1alpha1.VMDiskImage) *cdiv1.DataVolume {
	return &cdiv1.DataVolume{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: image.Namespace, Name: otv1alpha1.ChildName(image.Name, otv1alpha1.RevisionOf(image)),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(image, otv1alpha1.SchemeGroupVersion.WithKind("VMDiskImage"))},
		},
		Spec: cdiv1.DataVolumeSpec{
			Source:  &cdiv1.DataVolumeSource{HTTP: &cdiv1.DataVolumeSourceHTTP{URL: image.Spec.URL}},
			Storage: &cdiv1.StorageSpec{Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: image.Spec.DiskSize}}},
		},
	}
}
