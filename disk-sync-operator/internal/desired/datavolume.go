// Package desired builds the children of an image: pure functions from the image to whole objects. Their specs are
// immutable, so they are created once, and never changed.
package desired

import (
	"strconv"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

const (
	// annotationImmediateBinding makes CDI fill the volume although nothing consumes it yet; CDI asks only whether it is there.
	annotationImmediateBinding = "cdi.kubevirt.io/storage.bind.immediate.requested"
	// annotationKeep keeps CDI before 1.62 from collecting a DataVolume that has Succeeded.
	annotationKeep = "cdi.kubevirt.io/storage.deleteAfterCompletion"
)

// DataVolume is the download of the image's running attempt, under the slot of that name.
func DataVolume(image *v1alpha1.VMDiskImage, slot string) *cdiv1.DataVolume {
	meta := childMeta(image)
	meta.Annotations = map[string]string{
		annotationImmediateBinding: "true",
		annotationKeep:             "false",
		v1alpha1.AnnotationAttempt: strconv.Itoa(int(image.Status.Attempts)),
		v1alpha1.AnnotationSlot:    slot,
		v1alpha1.AnnotationHolder:  v1alpha1.SlotHolder(types.NamespacedName{Namespace: image.Namespace, Name: image.Name}, image.UID),
	}
	return &cdiv1.DataVolume{
		ObjectMeta: meta,
		Spec: cdiv1.DataVolumeSpec{
			Source:            source(image.Spec),
			Storage:           storage(image.Spec),
			ContentType:       cdiv1.DataVolumeKubeVirt,
			PriorityClassName: v1alpha1.ImportPriorityClass,
		},
	}
}

// childMeta names a child of the revision that status is about, owned by the image.
func childMeta(image *v1alpha1.VMDiskImage) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:            v1alpha1.ChildName(image.Name, image.Status.Revision),
		Namespace:       image.Namespace,
		Labels:          map[string]string{v1alpha1.LabelImage: string(image.UID)},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(image, v1alpha1.SchemeGroupVersion.WithKind("VMDiskImage"))},
	}
}

func source(spec v1alpha1.VMDiskImageSpec) *cdiv1.DataVolumeSource {
	switch spec.SourceType {
	case v1alpha1.SourceHTTP:
		return &cdiv1.DataVolumeSource{HTTP: &cdiv1.DataVolumeSourceHTTP{
			URL: spec.URL, SecretRef: spec.SecretRef, CertConfigMap: spec.CertConfigMap, Checksum: spec.Checksum,
		}}
	case v1alpha1.SourceS3:
		return &cdiv1.DataVolumeSource{S3: &cdiv1.DataVolumeSourceS3{
			URL: spec.URL, SecretRef: spec.SecretRef, CertConfigMap: spec.CertConfigMap,
		}}
	case v1alpha1.SourceRegistry:
		return &cdiv1.DataVolumeSource{Registry: &cdiv1.DataVolumeSourceRegistry{
			URL: &spec.URL, SecretRef: optional(spec.SecretRef), CertConfigMap: optional(spec.CertConfigMap),
		}}
	default:
		return &cdiv1.DataVolumeSource{Blank: &cdiv1.DataVolumeBlankImage{}}
	}
}

// storage leaves to CDI's StorageProfile what the image does not say.
func storage(spec v1alpha1.VMDiskImageSpec) *cdiv1.StorageSpec {
	s := &cdiv1.StorageSpec{
		AccessModes:      spec.AccessModes,
		StorageClassName: optional(spec.StorageClass),
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: spec.DiskSize},
		},
	}
	if spec.VolumeMode != "" {
		s.VolumeMode = new(spec.VolumeMode)
	}
	return s
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
