// Package volumes plays the provisioner and the volume controller: it makes claims and gives them volumes.
package volumes

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Provisioner makes claims and binds them.
type Provisioner struct{ Client client.Client }

// Name is the name of a claim's volume; there is no such PersistentVolume.
func Name(claim *corev1.PersistentVolumeClaim) string { return "pvc-" + string(claim.UID) }

// Make creates a claim, or returns the one that is there if it has the same owner and is to stay.
func (p Provisioner) Make(ctx context.Context, claim *corev1.PersistentVolumeClaim, owner client.Object) (*corev1.PersistentVolumeClaim, error) {
	err := p.Client.Create(ctx, claim)
	if !apierrors.IsAlreadyExists(err) {
		return claim, err
	}
	found := &corev1.PersistentVolumeClaim{}
	if err := p.Client.Get(ctx, client.ObjectKeyFromObject(claim), found); err != nil {
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

// Bind gives a claim a volume, as the provisioner and the volume controller do together.
func (p Provisioner) Bind(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume string) error {
	if claim.Spec.VolumeName == "" {
		before := claim.DeepCopy()
		claim.Spec.VolumeName = volume
		if err := p.Client.Patch(ctx, claim, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return p.SetStatus(ctx, claim, corev1.PersistentVolumeClaimStatus{
		Phase: corev1.ClaimBound, AccessModes: claim.Spec.AccessModes,
		Capacity: corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
	})
}

// SetStatus replaces a claim's status.
func (p Provisioner) SetStatus(ctx context.Context, claim *corev1.PersistentVolumeClaim, status corev1.PersistentVolumeClaimStatus) error {
	next := claim.DeepCopy() // a patch that failed must not look done at the next try
	next.Status = status
	if err := p.Client.Status().Patch(ctx, next, client.MergeFrom(claim)); err != nil {
		return err
	}
	*claim = *next
	return nil
}
