package controller

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// +kubebuilder:rbac:groups=pelotech.ot,resources=vmdiskimages,verbs=delete

// prune deletes the very version of the image that was looked at: a claim in between makes it a conflict, and the image
// stays. The children go with their owner.
func (r *Images) prune(ctx context.Context, s plan.Snapshot) error {
	image := s.Image
	err := r.client.Delete(ctx, image.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground),
		client.Preconditions{UID: &image.UID, ResourceVersion: &image.ResourceVersion})
	if err != nil {
		return fmt.Errorf("prune the image: %w", err)
	}
	size := sizeOf(s)
	log.FromContext(ctx).Info("image pruned", "bytes", size.Value())
	r.events.pruned(image, prunedNote(s, size))
	r.metrics.pruned(size.Value())
	return nil
}

// sizeOf the volume, if there is one, and the snapshot.
func sizeOf(s plan.Snapshot) resource.Quantity {
	size := resource.Quantity{Format: resource.BinarySI}
	if s.Claim != nil {
		size.Add(s.Claim.Status.Capacity[corev1.ResourceStorage])
	}
	if vs := s.VolumeSnapshot; vs != nil && vs.Status != nil && vs.Status.RestoreSize != nil {
		size.Add(*vs.Status.RestoreSize)
	}
	return size
}

// prunedNote says what was deleted, and what stays behind and costs money.
func prunedNote(s plan.Snapshot, size resource.Quantity) string {
	note := fmt.Sprintf("Nothing has used it for its time to live: deleted, with volume and snapshot of %s", &size)
	if content := s.Content; content != nil && content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentRetain {
		note += fmt.Sprintf("; the VolumeSnapshotContent %s and the storage's snapshot are kept (deletionPolicy Retain)", content.Name)
	}
	return note
}

// expiring lists the images that pruning is about, or may be about in a moment, for the rare event that its rules have
// changed.
func (r *Images) expiring(ctx context.Context) ([]types.NamespacedName, error) {
	images := &v1alpha1.VMDiskImageList{}
	if err := r.client.List(ctx, images, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the images: %w", err)
	}
	var keys []types.NamespacedName
	for i := range images.Items {
		if stage := plan.StageOf(&images.Items[i].Status); stage == plan.Succeeded || stage == plan.Snapshotting {
			keys = append(keys, client.ObjectKeyFromObject(&images.Items[i]))
		}
	}
	return keys, nil
}
