package desired

import (
	"slices"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
)

// Mismatch names the fields of the template that the image has otherwise, among those that decide what the disk holds and
// where: the spec's part of v1alpha1.RevisionOf.
func Mismatch(template v1alpha1.VMDiskImageSpec, image *v1alpha1.VMDiskImage) []string {
	have := image.Spec
	var names []string
	for _, field := range []struct {
		name string
		same bool
	}{
		{"url", template.URL == have.URL},
		{"sourceType", template.SourceType == have.SourceType},
		{"diskSize", template.DiskSize.Cmp(have.DiskSize) == 0},
		{"secretRef", template.SecretRef == have.SecretRef},
		{"certConfigMap", template.CertConfigMap == have.CertConfigMap},
		{"checksum", template.Checksum == have.Checksum},
		{"storageClass", template.StorageClass == have.StorageClass},
		{"snapshotClass", template.SnapshotClass == have.SnapshotClass},
		{"accessModes", slices.Equal(slices.Sorted(slices.Values(template.AccessModes)), slices.Sorted(slices.Values(have.AccessModes)))},
		{"volumeMode", template.VolumeMode == have.VolumeMode},
	} {
		if !field.same {
			names = append(names, field.name)
		}
	}
	return names
}
