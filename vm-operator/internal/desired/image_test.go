package desired_test

import (
	"reflect"
	"testing"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/desired"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestImage(t *testing.T) {
	template := apitest.Image("any").Spec
	given := &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromSame}
	none := map[string]string(nil)
	cases := map[string]struct {
		namespace string
		grant     *v1alpha1.AllowedNamespaces
		lab, web  bool // namespaces that are admitted
	}{
		"in its own namespace it admits nobody else":       {"lab", nil, true, false},
		"in another one it admits the virtual machine's":   {"farm", nil, true, false},
		"what the template says about it is not overruled": {"farm", given, false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			vm := guest(func(s *v1alpha1.VirtualMachineSpec) {
				s.VMDiskImageRef.Namespace = c.namespace
				s.VMDiskImageTemplate = template.DeepCopy()
				s.VMDiskImageTemplate.AllowedNamespaces = c.grant
			})
			image := desired.Image(vm)
			require.NotNil(t, image)
			assert.Equal(t, vm.ImageKey().Namespace, image.Namespace)
			assert.Equal(t, "ubuntu", image.Name)
			assert.Empty(t, image.OwnerReferences, "others may use it, too")
			assert.Equal(t, "lab/web", image.Annotations[v1alpha1.AnnotationRequestedBy])
			assert.Equal(t, c.lab, image.Admits("lab", map[string]string{corev1.LabelMetadataName: "lab"}))
			assert.Equal(t, c.web, image.Admits("web", map[string]string{corev1.LabelMetadataName: "web"}))
			assert.False(t, image.Admits("none", none))
			assert.Empty(t, desired.Mismatch(*vm.Spec.VMDiskImageTemplate, image), "what was made from the template is what it describes")
			image.Spec.URL = "changed"
			assert.Equal(t, template.URL, vm.Spec.VMDiskImageTemplate.URL, "the template is copied")
		})
	}
	assert.Nil(t, desired.Image(guest()), "no template, no image")
}

// TestMismatchIsAnotherRevision changes every field of the spec, one at a time.
func TestMismatchIsAnotherRevision(t *testing.T) {
	others := map[string]any{
		"Name": "other", "URL": "https://other.example/a", "SourceType": v1alpha1.SourceBlank, "DiskSize": resource.MustParse("2Gi"),
		"SecretRef": "other", "CertConfigMap": "other", "Checksum": "md5:0", "StorageClass": "other", "SnapshotClass": "other",
		"AccessModes": []corev1.PersistentVolumeAccessMode{"ReadWriteMany"}, "VolumeMode": corev1.PersistentVolumeBlock,
		"VolumePolicy": v1alpha1.VolumeDeleteAfterSnapshot, "UnusedTTL": &metav1.Duration{Duration: 1},
		"AllowedNamespaces": &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll},
	}
	spec := reflect.TypeFor[v1alpha1.VMDiskImageSpec]()
	for i := range spec.NumField() {
		field := spec.Field(i)
		t.Run(field.Name, func(t *testing.T) {
			require.Contains(t, others, field.Name, "a new field: does it decide what the disk holds?")
			image := apitest.Image("a")
			template := image.Spec
			before := v1alpha1.RevisionOf(image)
			reflect.ValueOf(&image.Spec).Elem().Field(i).Set(reflect.ValueOf(others[field.Name]))
			var want []string
			if v1alpha1.RevisionOf(image) != before {
				name, _ := field.Tag.Lookup("json")
				want = []string{trimOmitEmpty(name)}
			}
			assert.Equal(t, want, desired.Mismatch(template, image))
		})
	}
}

func trimOmitEmpty(tag string) string {
	for i := range tag {
		if tag[i] == ',' {
			return tag[:i]
		}
	}
	return tag
}

func TestMismatchTakesValues(t *testing.T) {
	image := apitest.Image("a", apitest.Spec(func(s *v1alpha1.VMDiskImageSpec) {
		s.DiskSize = resource.MustParse("1024Mi")
		s.AccessModes = []corev1.PersistentVolumeAccessMode{"ReadWriteOnce", "ReadOnlyMany"}
	}))
	template := apitest.Image("b").Spec
	template.URL = image.Spec.URL
	template.AccessModes = []corev1.PersistentVolumeAccessMode{"ReadOnlyMany", "ReadWriteOnce"}
	assert.Empty(t, desired.Mismatch(template, image), "1Gi is 1024Mi, and modes have no order")
	template.AccessModes, template.StorageClass = nil, "gp3"
	assert.Equal(t, []string{"storageClass", "accessModes"}, desired.Mismatch(template, image))
}
