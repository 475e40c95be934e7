package desired_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/desired"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files anew")

// all gives every optional field a value that its source type may have.
func all(s *v1alpha1.VMDiskImageSpec) {
	s.SecretRef, s.CertConfigMap, s.StorageClass, s.SnapshotClass = "keys", "ca", "gp3", "ebs-snapshot"
	s.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	s.VolumeMode = corev1.PersistentVolumeBlock
}

func TestChildren(t *testing.T) {
	cases := map[string][]apitest.ImageMod{
		"http":     {},
		"http-all": {apitest.Spec(all), apitest.Spec(func(s *v1alpha1.VMDiskImageSpec) { s.Checksum = "md5:0123456789abcdef0123456789abcdef" })},
		"s3":       {apitest.From(v1alpha1.SourceS3, "https://s3.example.com/labs/a.qcow2"), apitest.Spec(all)},
		"registry": {apitest.From(v1alpha1.SourceRegistry, "docker://quay.io/labs/a:1"), apitest.Spec(all)},
		"registry-public": {
			apitest.From(v1alpha1.SourceRegistry, "docker://quay.io/labs/a:1"),
		},
		"blank": {apitest.From(v1alpha1.SourceBlank, "")},
	}
	for name, mods := range cases {
		t.Run(name, func(t *testing.T) {
			image := apitest.Image("a", append(mods, apitest.Attempts(2), apitest.Entered())...)
			before := image.DeepCopy()
			golden(t, name+"-datavolume", desired.DataVolume(image, v1alpha1.SlotName(1)))
			golden(t, name+"-volumesnapshot", desired.VolumeSnapshot(image))
			assert.Equal(t, before, image, "the image is only read")
		})
	}
}

func TestChildrenBelongToTheImageByUID(t *testing.T) {
	image := apitest.Image("a", apitest.Entered())
	for _, child := range []metav1.Object{desired.DataVolume(image, "slot"), desired.VolumeSnapshot(image)} {
		assert.True(t, metav1.IsControlledBy(child, image))
		assert.Equal(t, v1alpha1.ChildName("a", image.Status.Revision), child.GetName())
		assert.Equal(t, image.Namespace, child.GetNamespace())
	}
}

func golden(t *testing.T, name string, object any) {
	t.Helper()
	got, err := yaml.Marshal(object)
	require.NoError(t, err)
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run go test with -update")
	assert.Equal(t, string(want), string(got))
}
