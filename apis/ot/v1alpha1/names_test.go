package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

func TestChildName(t *testing.T) {
	assert.Equal(t, "lab-12345678", v1alpha1.ChildName("lab", "12345678"))
	longest := strings.Repeat("a", 244)
	assert.Equal(t, longest+"-12345678", v1alpha1.ChildName(longest, "12345678"), "253 characters fit")

	cases := map[string]string{
		"one character too many":      strings.Repeat("a", 245),
		"the longest name":            strings.Repeat("a", 253),
		"the cut falls behind a dot":  strings.Repeat("a", 234) + "." + strings.Repeat("b", 18),
		"the cut falls behind a dash": strings.Repeat("a", 234) + "-" + strings.Repeat("b", 18),
		"dots and dashes at the cut":  strings.Repeat("a", 230) + "-----" + strings.Repeat("b", 18),
	}
	for name, image := range cases {
		t.Run(name, func(t *testing.T) {
			child := v1alpha1.ChildName(image, "12345678")
			assert.Empty(t, validation.IsDNS1123Subdomain(child), child)
			assert.True(t, strings.HasSuffix(child, "-12345678"), child)
		})
	}
}

// names are DNS-1123 subdomains of up to 253 characters, long ones with the same beginning among them.
var names = rapid.Custom(func(t *rapid.T) string {
	s := rapid.StringMatching(`[a-z0-9](([-a-z0-9]|[a-z0-9]\.[a-z0-9]){0,130}[a-z0-9])?`).Draw(t, "name")
	if rapid.Bool().Draw(t, "long") {
		s = strings.Repeat("x", rapid.IntRange(200, 252).Draw(t, "prefix")) + s
	}
	if s = s[:min(len(s), 253)]; strings.HasSuffix(s, ".") || strings.HasSuffix(s, "-") {
		s = s[:len(s)-1] + "z"
	}
	return s
}).Filter(func(s string) bool { return len(validation.IsDNS1123Subdomain(s)) == 0 })

func TestChildNamesAreValidAndDistinct(t *testing.T) {
	revisions := rapid.StringMatching(`[0-9a-f]{8}`)
	rapid.Check(t, func(t *rapid.T) {
		name, other := names.Draw(t, "a"), names.Draw(t, "b")
		revision, next := revisions.Draw(t, "revision"), revisions.Draw(t, "next")
		child := v1alpha1.ChildName(name, revision)
		if problems := validation.IsDNS1123Subdomain(child); len(problems) > 0 {
			t.Fatalf("%s: %v", child, problems)
		}
		if same := v1alpha1.ChildName(other, next) == child; same != (name == other && revision == next) {
			t.Fatalf("%s/%s and %s/%s: same child name is %v", name, revision, other, next, same)
		}
	})
}

func TestRevisionChangesWithWhatTheDiskHolds(t *testing.T) {
	changes := map[string]apitest.ImageMod{
		"url":               apitest.Spec(func(s *v1alpha1.VMDiskImageSpec) { s.URL += "x" }),
		"sourceType":        apitest.Spec(func(s *v1alpha1.VMDiskImageSpec) { s.SourceType = v1alpha1.SourceS3 }),
		"diskSize":          apitest.Spec(func(s *v1alpha1.VMDiskImageSpec) { s.DiskSize = resource.MustParse("2Gi") }),
		"secretRef":         apitest.Spec(func(s *v1alpha1.VMDiskImageSpec) { s.SecretRef = "x" }),
		"certConfigMap":     apitest.Spec(func(s *v1alpha1.VMDiskImageSpec) { s.CertConfigMap = "x" }),
		"checksum":          apitest.Spec(func(s *v1alpha1.VMDiskImageSpec) { s.Checksum = "x" }),
		"storageClass":      apitest.Spec(func(s *v1alpha1.VMDiskImageSpec) { s.StorageClass = "x" }),
		"snapshotClass":     apitest.Spec(func(s *v1alpha1.VMDiskImageSpec) { s.SnapshotClass = "x" }),
		"volumeMode":        apitest.Spec(func(s *v1alpha1.VMDiskImageSpec) { s.VolumeMode = corev1.PersistentVolumeBlock }),
		"one access mode":   apitest.Spec(func(s *v1alpha1.VMDiskImageSpec) { s.AccessModes = modes(corev1.ReadWriteOnce) }),
		"two access modes":  apitest.Spec(func(s *v1alpha1.VMDiskImageSpec) { s.AccessModes = modes(corev1.ReadWriteOnce, corev1.ReadWriteMany) }),
		"a requested sync":  apitest.SyncRequested("1"),
		"another request":   apitest.SyncRequested("2"),
		"nothing (as made)": func(*v1alpha1.VMDiskImage) {},
	}
	seen := map[string]string{}
	for what, change := range changes {
		revision := v1alpha1.RevisionOf(apitest.Image("a", change))
		assert.Regexp(t, `^[0-9a-f]{8}$`, revision)
		assert.Empty(t, seen[revision], "%s gives the revision of another change", what)
		seen[revision] = what
	}
}

func TestRevisionStaysWhenTheDiskDoes(t *testing.T) {
	want := v1alpha1.RevisionOf(apitest.Image("a"))
	same := map[string]apitest.ImageMod{
		"unusedTTL":         apitest.Spec(func(s *v1alpha1.VMDiskImageSpec) { s.UnusedTTL = &metav1.Duration{} }),
		"allowedNamespaces": apitest.Spec(func(s *v1alpha1.VMDiskImageSpec) { s.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: "All"} }),
		"volumePolicy":      apitest.Spec(func(s *v1alpha1.VMDiskImageSpec) { s.VolumePolicy = v1alpha1.VolumeDeleteAfterSnapshot }),
		"name":              apitest.Spec(func(s *v1alpha1.VMDiskImageSpec) { s.Name = "x" }),
		"diskSize written otherwise": apitest.Spec(func(s *v1alpha1.VMDiskImageSpec) {
			s.DiskSize = resource.MustParse("1024Mi")
		}),
		"labels and other annotations": func(i *v1alpha1.VMDiskImage) {
			i.Labels, i.Annotations = map[string]string{"a": "b"}, map[string]string{"c": "d"}
		},
		"status and metadata": func(i *v1alpha1.VMDiskImage) {
			i.Status.Attempts, i.Generation, i.ResourceVersion, i.UID = 3, 9, "9", "other"
		},
	}
	for what, change := range same {
		assert.Equal(t, want, v1alpha1.RevisionOf(apitest.Image("a", change)), what)
	}
}

func TestSlots(t *testing.T) {
	assert.Equal(t, "disk-sync-slot-0", v1alpha1.SlotName(0))
	assert.Equal(t, "disk-sync-slot-63", v1alpha1.SlotName(63))
	key := types.NamespacedName{Namespace: "lab", Name: "a.b"}
	assert.Equal(t, "lab/a.b/uid-1", v1alpha1.SlotHolder(key, "uid-1"))
}

func modes(m ...corev1.PersistentVolumeAccessMode) []corev1.PersistentVolumeAccessMode { return m }
