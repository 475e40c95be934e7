package desired_test

import (
	"testing"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/desired"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bare leaves out all that the policy can fill in.
func bare(source v1alpha1.SourceType) func(*v1alpha1.DataSyncVM) {
	return func(vm *v1alpha1.DataSyncVM) { vm.SourceType, vm.DiskSize = source, nil }
}

func defaults() policy.Policy {
	return policy.Policy{
		DefaultDiskSize: resource.MustParse("24Gi"), DefaultSecretRef: "keys", DefaultStorageClass: "gp3", DefaultSnapshotClass: "ebs",
	}
}

func TestAnImageHasWhatTheEntrySays(t *testing.T) {
	ttl := metav1.Duration{Duration: 3}
	d := apitest.DataSync("lab", apitest.VM("web-server", func(vm *v1alpha1.DataSyncVM) {
		vm.SecretRef, vm.CertConfigMap, vm.Checksum, vm.StorageClass, vm.SnapshotClass = "s", "c", "md5:0", "fast", "snap"
		vm.VolumeMode, vm.VolumePolicy, vm.UnusedTTL = "Block", v1alpha1.VolumeDeleteAfterSnapshot, &ttl
		vm.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll}
		vm.AccessModes = []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"}
	}))
	image := desired.Image(d, d.Spec.VMs[0], nil, defaults())
	assert.Equal(t, v1alpha1.DataSyncImageName("lab", "web-server"), image.Name)
	assert.Equal(t, apitest.Namespace, image.Namespace)
	assert.True(t, metav1.IsControlledBy(image, d))
	assert.Empty(t, image.Annotations)
	assert.Equal(t, v1alpha1.VMDiskImageSpec{
		Name: "web-server", URL: "https://images.example.com/web-server.qcow2", SourceType: v1alpha1.SourceHTTP, DiskSize: resource.MustParse("1Gi"),
		SecretRef: "s", CertConfigMap: "c", Checksum: "md5:0", StorageClass: "fast", SnapshotClass: "snap", VolumeMode: "Block",
		AccessModes: []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"}, VolumePolicy: v1alpha1.VolumeDeleteAfterSnapshot, UnusedTTL: &ttl,
		AllowedNamespaces: &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll},
	}, image.Spec)
}

func TestThePolicyFillsInWhatTheEntryLeavesOut(t *testing.T) {
	for source, secret := range map[v1alpha1.SourceType]string{
		v1alpha1.SourceS3: "keys", v1alpha1.SourceHTTP: "", v1alpha1.SourceRegistry: "", v1alpha1.SourceBlank: "",
	} {
		t.Run(string(source), func(t *testing.T) {
			d := apitest.DataSync("lab", apitest.VM("a", bare(source)))
			spec := desired.Image(d, d.Spec.VMs[0], nil, defaults()).Spec
			assert.Equal(t, "24Gi", spec.DiskSize.String())
			assert.Equal(t, secret, spec.SecretRef, "the keys of the bucket are for no other server")
			assert.Equal(t, "gp3", spec.StorageClass)
			assert.Equal(t, "ebs", spec.SnapshotClass)
			assert.Equal(t, v1alpha1.VolumeRetain, spec.VolumePolicy)
		})
	}
}

func TestDefaultsStayAsTheyWere(t *testing.T) {
	d := apitest.DataSync("lab", apitest.VM("a", bare(v1alpha1.SourceS3)))
	other := policy.Policy{DefaultDiskSize: resource.MustParse("48Gi"), DefaultSecretRef: "others", DefaultStorageClass: "slow"}
	change := func(mod func(*v1alpha1.DataSyncVM)) v1alpha1.DataSyncVM {
		vm := *d.Spec.VMs[0].DeepCopy()
		mod(&vm)
		return vm
	}

	t.Run("when only the policy changes", func(t *testing.T) {
		image := desired.Image(d, d.Spec.VMs[0], nil, defaults())
		assert.Equal(t, image, desired.Image(d, d.Spec.VMs[0], image, other))
	})
	t.Run("also when there was none", func(t *testing.T) {
		image := desired.Image(d, d.Spec.VMs[0], nil, policy.Policy{DefaultDiskSize: resource.MustParse("1Gi"), DefaultSecretRef: "keys"})
		assert.Equal(t, image, desired.Image(d, d.Spec.VMs[0], image, defaults()))
	})
	t.Run("also when another field of the entry changes", func(t *testing.T) {
		image := desired.Image(d, d.Spec.VMs[0], nil, defaults())
		next := desired.Image(d, change(func(vm *v1alpha1.DataSyncVM) { vm.URL = "https://b.example/c/d" }), image, other)
		assert.Equal(t, "https://b.example/c/d", next.Spec.URL)
		assert.Equal(t, "24Gi", next.Spec.DiskSize.String())
	})
	t.Run("until the entry gives a value", func(t *testing.T) {
		image := desired.Image(d, d.Spec.VMs[0], nil, defaults())
		given := desired.Image(d, change(func(vm *v1alpha1.DataSyncVM) { vm.StorageClass = "mine" }), image, other)
		assert.Equal(t, "mine", given.Spec.StorageClass)
		assert.Equal(t, "24Gi", given.Spec.DiskSize.String())
		taken := desired.Image(d, d.Spec.VMs[0], given, other)
		assert.Equal(t, "slow", taken.Spec.StorageClass, "the entry gave it, and gives it no longer: the default of today")
		assert.Equal(t, "24Gi", taken.Spec.DiskSize.String())
	})
	t.Run("but not for another source", func(t *testing.T) {
		image := desired.Image(d, d.Spec.VMs[0], nil, defaults())
		next := desired.Image(d, change(func(vm *v1alpha1.DataSyncVM) { vm.SourceType = v1alpha1.SourceHTTP }), image, other)
		assert.Empty(t, next.Spec.SecretRef)
	})
}

func TestARequestIsPassedOnOnce(t *testing.T) {
	d := apitest.DataSync("lab", apitest.VM("a"), apitest.Requested("one"))
	image := desired.Image(d, d.Spec.VMs[0], nil, policy.Policy{})
	assert.Equal(t, "one", image.Annotations[v1alpha1.AnnotationSyncRequestedAt])

	image.Annotations[v1alpha1.AnnotationSyncRequestedAt] = "of the image alone"
	assert.Equal(t, image, desired.Image(d, d.Spec.VMs[0], image, policy.Policy{}), "it is not taken back")

	apitest.Requested("two")(d)
	assert.Equal(t, "two", desired.Image(d, d.Spec.VMs[0], image, policy.Policy{}).Annotations[v1alpha1.AnnotationSyncRequestedAt])

	delete(d.Annotations, v1alpha1.AnnotationSyncRequestedAt)
	assert.Equal(t, image, desired.Image(d, d.Spec.VMs[0], image, policy.Policy{}), "no request is no new request")
}

func TestWhatOthersHaveWrittenOnAnImageStays(t *testing.T) {
	d := apitest.DataSync("lab", apitest.VM("a"))
	image := desired.Image(d, d.Spec.VMs[0], nil, policy.Policy{})
	image.Labels, image.Finalizers = map[string]string{"team": "a"}, []string{v1alpha1.FinalizerProtection}
	metav1.SetMetaDataAnnotation(&image.ObjectMeta, v1alpha1.AnnotationDryRun, "true")
	assert.Equal(t, image, desired.Image(d, d.Spec.VMs[0], image, policy.Policy{}))

	image.Spec.Checksum = "md5:0"
	assert.Empty(t, desired.Image(d, d.Spec.VMs[0], image, policy.Policy{}).Spec.Checksum, "but the spec is the entry's")
}
