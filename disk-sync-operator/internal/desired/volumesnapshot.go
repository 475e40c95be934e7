package desired

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
)

// VolumeSnapshot is the snapshot of the image's volume, of the same name.
func VolumeSnapshot(image *v1alpha1.VMDiskImage) *snapshotv1.VolumeSnapshot {
	meta := childMeta(image)
	return &snapshotv1.VolumeSnapshot{
		ObjectMeta: meta,
		Spec: snapshotv1.VolumeSnapshotSpec{
			Source:                  snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: new(meta.Name)},
			VolumeSnapshotClassName: optional(image.Spec.SnapshotClass),
		},
	}
}
