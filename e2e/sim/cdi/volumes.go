package cdi

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func volumeName(prime *corev1.PersistentVolumeClaim) string { return "pvc-" + string(prime.UID) }

// createOwned creates a claim, or returns the one that is there if it has the same owner and is to stay.
func (s *Simulator) createOwned(ctx context.Context, claim *corev1.PersistentVolumeClaim, owner client.Object) (*corev1.PersistentVolumeClaim, error) {
	err := s.client.Create(ctx, claim)
	if !apierrors.IsAlreadyExists(err) {
		return claim, err
	}
	found := &corev1.PersistentVolumeClaim{}
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(claim), found); err != nil {
		return nil, err
	}
	if found.DeletionTimestamp != nil {
		return nil, fmt.Errorf("Resource %q marked for deletion", found.Name) //nolint:staticcheck // CDI's words
	}
	if !metav1.IsControlledBy(found, owner) {
		return nil, fmt.Errorf("Resource %q already exists and is not managed by DataVolume", found.Name) //nolint:staticcheck // CDI's words
	}
	return found, nil
}

// bind gives a claim a volume, as the provisioner and the volume controller do together.
func (s *Simulator) bind(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume string) error {
	if claim.Spec.VolumeName == "" {
		before := claim.DeepCopy()
		claim.Spec.VolumeName = volume
		if err := s.client.Patch(ctx, claim, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return s.setClaimStatus(ctx, claim, boundStatus(claim))
}

func boundStatus(claim *corev1.PersistentVolumeClaim) corev1.PersistentVolumeClaimStatus {
	return corev1.PersistentVolumeClaimStatus{
		Phase: corev1.ClaimBound, AccessModes: claim.Spec.AccessModes,
		Capacity: corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
	}
}

func (s *Simulator) setClaimStatus(ctx context.Context, claim *corev1.PersistentVolumeClaim, status corev1.PersistentVolumeClaimStatus) error {
	next := claim.DeepCopy() // a patch that failed must not look done at the next try
	next.Status = status
	if err := s.client.Status().Patch(ctx, next, client.MergeFrom(claim)); err != nil {
		return err
	}
	*claim = *next
	return nil
}
