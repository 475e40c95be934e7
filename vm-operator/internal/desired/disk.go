package desired

import (
	"slices"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// annotationKeep keeps CDI before 1.62 from collecting a DataVolume that has Succeeded.
const annotationKeep = "cdi.kubevirt.io/storage.deleteAfterCompletion"

// Disk is the root disk: a clone of the image's artifact, which must be there. The finalizer is there from the start, for a
// disk that is deleted under a running guest is lost when the guest stops.
//
// CDI is not asked to bind it at once: with a storage class that waits for a consumer the disk is to be made where the
// guest is scheduled.
func Disk(vm *v1alpha1.VirtualMachine, image *v1alpha1.VMDiskImage) *cdiv1.DataVolume {
	artifact := image.Status.Artifact
	meta := owned(vm, v1alpha1.VirtualMachineChild(vm))
	meta.Finalizers = []string{v1alpha1.FinalizerDisk}
	meta.Annotations = map[string]string{
		annotationKeep:                   "false",
		v1alpha1.AnnotationImageRevision: artifact.Revision,
	}
	return &cdiv1.DataVolume{
		ObjectMeta: meta,
		Spec: cdiv1.DataVolumeSpec{
			Source: &cdiv1.DataVolumeSource{Snapshot: &cdiv1.DataVolumeSourceSnapshot{
				Namespace: image.Namespace, Name: artifact.Snapshot,
			}},
			Storage: diskStorage(vm, image),
		},
	}
}

// diskStorage asks for what the image was made with, for a snapshot cannot be restored in another mode. What the image
// leaves to CDI's StorageProfile is left to it here, too.
func diskStorage(vm *v1alpha1.VirtualMachine, image *v1alpha1.VMDiskImage) *cdiv1.StorageSpec {
	storage := &cdiv1.StorageSpec{AccessModes: writable(image.Spec.AccessModes)}
	if image.Spec.StorageClass != "" {
		storage.StorageClassName = new(image.Spec.StorageClass)
	}
	if image.Spec.VolumeMode != "" {
		storage.VolumeMode = new(image.Spec.VolumeMode)
	}
	if size := DiskSize(vm, image.Status.Artifact); size != nil {
		storage.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: *size}
	}
	return storage
}

// DiskSize is the size to ask CDI for, or nil where the snapshot's own is to be taken: CDI never clones into less than the
// snapshot's restoreSize, which is more than the diskSize that the image was made with, and would wait for ever.
func DiskSize(vm *v1alpha1.VirtualMachine, artifact *v1alpha1.Artifact) *resource.Quantity {
	asked := vm.Spec.Resources.DiskSize
	if asked == nil || artifact.RestoreSize != nil && asked.Cmp(*artifact.RestoreSize) <= 0 {
		return nil
	}
	return new(asked.DeepCopy())
}

// writable leaves out the mode that no guest can run on.
func writable(modes []corev1.PersistentVolumeAccessMode) []corev1.PersistentVolumeAccessMode {
	return slices.DeleteFunc(slices.Clone(modes), func(mode corev1.PersistentVolumeAccessMode) bool {
		return mode == corev1.ReadOnlyMany
	})
}
