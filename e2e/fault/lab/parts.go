package lab

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// part of an image's artifact.
func (s *Scene) part(ctx context.Context, image *otv1alpha1.VMDiskImage, kind otv1alpha1.LossKind) (client.Object, error) {
	artifact := image.Status.Artifact
	if artifact == nil {
		return nil, fmt.Errorf("%s has no artifact", image.Name)
	}
	meta := metav1.ObjectMeta{Namespace: image.Namespace, Name: artifact.DataVolume}
	switch kind {
	case otv1alpha1.LostDataVolume:
		return &cdiv1.DataVolume{ObjectMeta: meta}, nil
	case otv1alpha1.LostClaim:
		return &corev1.PersistentVolumeClaim{ObjectMeta: meta}, nil
	}
	meta.Name = artifact.Snapshot
	snapshot := &snapshotv1.VolumeSnapshot{ObjectMeta: meta}
	if kind == otv1alpha1.LostSnapshot {
		return snapshot, nil
	}
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(snapshot), snapshot); err != nil {
		return nil, err
	}
	name := ""
	if snapshot.Status != nil {
		name = ptr.Deref(snapshot.Status.BoundVolumeSnapshotContentName, "")
	}
	return &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
}
