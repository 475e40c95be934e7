package desired_test

import (
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/desired"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestDiskSize(t *testing.T) {
	cases := map[string]struct{ asked, restore, want string }{
		"nothing asked is the snapshot's":               {"", "25Gi", ""},
		"less than the snapshot is the snapshot's":      {"18Gi", "25Gi", ""},
		"as much, in other words, is the snapshot's":    {"25600Mi", "25Gi", ""},
		"more is asked for":                             {"26Gi", "25Gi", "26Gi"},
		"with a size that is not known it is asked for": {"18Gi", "", "18Gi"},
		"nothing is known, and nothing asked":           {"", "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			vm := guest(func(s *v1alpha1.VirtualMachineSpec) { s.Resources.DiskSize = quantity(c.asked) })
			image := imageOf(vm)
			image.Status.Artifact.RestoreSize = quantity(c.restore)
			assert.Equal(t, quantity(c.want), desired.DiskSize(vm, image.Status.Artifact))

			requests := desired.Disk(vm, image).Spec.Storage.Resources.Requests
			if c.want == "" {
				assert.Empty(t, requests, "no size at all: CDI takes the snapshot's")
				return
			}
			assert.Equal(t, resource.MustParse(c.want), requests[corev1.ResourceStorage])
		})
	}
}

func quantity(s string) *resource.Quantity {
	if s == "" {
		return nil
	}
	q := resource.MustParse(s)
	return &q
}

func TestADiskIsMadeAsTheImageWas(t *testing.T) {
	vm := guest(func(s *v1alpha1.VirtualMachineSpec) { s.VMDiskImageRef.Namespace = "farm" })
	image := imageOf(vm)
	image.Spec.StorageClass, image.Spec.VolumeMode = "gp3", corev1.PersistentVolumeBlock
	image.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{"ReadOnlyMany", "ReadWriteMany"}
	disk := desired.Disk(vm, image)
	assert.Equal(t, "farm", disk.Spec.Source.Snapshot.Namespace)
	assert.Equal(t, "gp3", *disk.Spec.Storage.StorageClassName)
	assert.Equal(t, corev1.PersistentVolumeBlock, *disk.Spec.Storage.VolumeMode)
	assert.Equal(t, []corev1.PersistentVolumeAccessMode{"ReadWriteMany"}, disk.Spec.Storage.AccessModes, "a guest writes")
	assert.Len(t, image.Spec.AccessModes, 2, "the image is only read")
	assert.Equal(t, []string{v1alpha1.FinalizerDisk}, disk.Finalizers, "from its creation")
}
