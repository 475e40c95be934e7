package lab

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/invariant"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// placeBystanders puts objects beside a story's first image that look like its children, by name and by label, and are
// not: nobody owns them. Nothing may happen to them.
func (s *Scene) placeBystanders(ctx context.Context, image *otv1alpha1.VMDiskImage) error {
	if s.bystanders {
		return nil
	}
	s.bystanders = true
	meta := metav1.ObjectMeta{
		Namespace: image.Namespace, Name: otv1alpha1.ChildName(image.Name, "0badcafe"),
		Labels:      map[string]string{otv1alpha1.LabelImage: string(image.UID)},
		Annotations: map[string]string{invariant.AnnotationBystander: "true", otv1alpha1.AnnotationAttempt: "1"},
	}
	storage := corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}
	for _, object := range []client.Object{
		&corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: storage,
		}},
		&snapshotv1.VolumeSnapshot{ObjectMeta: meta, Spec: snapshotv1.VolumeSnapshotSpec{
			Source: snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: new("somebody-elses")},
		}},
		bystanderVolume(meta, storage),
	} {
		if err := s.Client.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// bystanderVolume has another name than the claim, because it gets one of its own.
func bystanderVolume(meta metav1.ObjectMeta, storage corev1.VolumeResourceRequirements) *cdiv1.DataVolume {
	meta.Name += "-volume"
	return &cdiv1.DataVolume{ObjectMeta: meta, Spec: cdiv1.DataVolumeSpec{
		Source:  &cdiv1.DataVolumeSource{Blank: &cdiv1.DataVolumeBlankImage{}},
		Storage: &cdiv1.StorageSpec{Resources: storage},
	}}
}
