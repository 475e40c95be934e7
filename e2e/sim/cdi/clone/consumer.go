package clone

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// immediate is the annotation that does without a consumer.
const immediate = "cdi.kubevirt.io/storage.bind.immediate.requested"

// awaitConsumer waits for the first pod that uses the claim, where the storage class wants one.
func (p *Play) awaitConsumer(ctx context.Context) error {
	if waits, err := p.needsConsumer(ctx); err != nil || !waits {
		return err
	}
	if err := p.write(ctx, cdiv1.PendingPopulation); err != nil {
		return err
	}
	for {
		var pods corev1.PodList
		if err := p.Client.List(ctx, &pods, client.InNamespace(p.DV.Namespace)); err != nil {
			return err
		}
		if slices.ContainsFunc(pods.Items, p.uses) {
			return nil
		}
		if err := pause(ctx, look); err != nil {
			return err
		}
	}
}

func (p *Play) needsConsumer(ctx context.Context) (bool, error) {
	name := p.claim.Spec.StorageClassName
	if _, at := p.DV.Annotations[immediate]; at || p.Instant || name == nil || p.claim.Status.Phase == corev1.ClaimBound {
		return false, nil
	}
	class := &storagev1.StorageClass{}
	if err := p.Client.Get(ctx, client.ObjectKey{Name: *name}, class); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer, nil
}

func (p *Play) uses(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == p.claim.Name
	})
}
