package desired

import (
	"slices"
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Image is the image of an entry of a DataSync: a new one, or the existing one as it shall be. What the entry leaves out
// is filled in from the policy once, when there is nothing else to go by. From then on the value stays as the image has
// it, so that a changed default downloads nothing again; the image remembers in an annotation which values these are.
func Image(d *v1alpha1.DataSync, vm v1alpha1.DataSyncVM, existing *v1alpha1.VMDiskImage, p policy.Policy) *v1alpha1.VMDiskImage {
	image := &v1alpha1.VMDiskImage{ObjectMeta: metav1.ObjectMeta{
		Name:            v1alpha1.DataSyncImageName(d.Name, vm.Name),
		Namespace:       d.Namespace,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, v1alpha1.SchemeGroupVersion.WithKind("DataSync"))},
	}}
	if existing != nil {
		image = existing.DeepCopy()
	}
	image.Spec = specOf(vm.DeepCopy())
	fillIn(image, existing, p)
	request(image, d.Annotations[v1alpha1.AnnotationSyncRequestedAt])
	return image
}

// specOf is what the entry itself says, and the API server's own defaults.
func specOf(vm *v1alpha1.DataSyncVM) v1alpha1.VMDiskImageSpec {
	spec := v1alpha1.VMDiskImageSpec{
		Name: vm.Name, URL: vm.URL, SourceType: vm.SourceType, SecretRef: vm.SecretRef, CertConfigMap: vm.CertConfigMap,
		Checksum: vm.Checksum, StorageClass: vm.StorageClass, SnapshotClass: vm.SnapshotClass, AccessModes: vm.AccessModes,
		VolumeMode: vm.VolumeMode, VolumePolicy: vm.VolumePolicy, UnusedTTL: vm.UnusedTTL, AllowedNamespaces: vm.AllowedNamespaces,
	}
	if vm.DiskSize != nil {
		spec.DiskSize = *vm.DiskSize
	}
	if spec.VolumePolicy == "" {
		spec.VolumePolicy = v1alpha1.VolumeRetain
	}
	return spec
}

// fields are those that the policy has a default for.
var fields = []struct {
	name string
	open func(*v1alpha1.VMDiskImageSpec) bool // nothing is said, and something could be
	fill func(to, from *v1alpha1.VMDiskImageSpec)
}{
	{
		"diskSize", func(s *v1alpha1.VMDiskImageSpec) bool { return s.DiskSize.IsZero() },
		func(to, from *v1alpha1.VMDiskImageSpec) { to.DiskSize = from.DiskSize },
	},
	{ // The keys of the bucket are for no other server.
		"secretRef", func(s *v1alpha1.VMDiskImageSpec) bool { return s.SecretRef == "" && s.SourceType == v1alpha1.SourceS3 },
		func(to, from *v1alpha1.VMDiskImageSpec) { to.SecretRef = from.SecretRef },
	},
	{
		"snapshotClass", func(s *v1alpha1.VMDiskImageSpec) bool { return s.SnapshotClass == "" },
		func(to, from *v1alpha1.VMDiskImageSpec) { to.SnapshotClass = from.SnapshotClass },
	},
	{
		"storageClass", func(s *v1alpha1.VMDiskImageSpec) bool { return s.StorageClass == "" },
		func(to, from *v1alpha1.VMDiskImageSpec) { to.StorageClass = from.StorageClass },
	},
}

// fillIn completes the spec. A field that was filled in before keeps its value, also if that is none.
func fillIn(image, existing *v1alpha1.VMDiskImage, p policy.Policy) {
	defaults := &v1alpha1.VMDiskImageSpec{
		DiskSize: p.DefaultDiskSize.DeepCopy(), SecretRef: p.DefaultSecretRef,
		SnapshotClass: p.DefaultSnapshotClass, StorageClass: p.DefaultStorageClass,
	}
	before := strings.Split(image.Annotations[v1alpha1.AnnotationDefaulted], ",")
	var filled []string
	for _, field := range fields {
		if !field.open(&image.Spec) {
			continue
		}
		from := defaults
		if existing != nil && slices.Contains(before, field.name) {
			from = &existing.Spec
		}
		field.fill(&image.Spec, from)
		filled = append(filled, field.name)
	}
	delete(image.Annotations, v1alpha1.AnnotationDefaulted)
	if len(filled) > 0 {
		metav1.SetMetaDataAnnotation(&image.ObjectMeta, v1alpha1.AnnotationDefaulted, strings.Join(filled, ","))
	}
}

// request passes on that a fresh sync is asked for, once: the image may have been asked for another one since.
func request(image *v1alpha1.VMDiskImage, value string) {
	if value == "" || image.Annotations[v1alpha1.AnnotationRequestCopied] == value {
		return
	}
	metav1.SetMetaDataAnnotation(&image.ObjectMeta, v1alpha1.AnnotationSyncRequestedAt, value)
	metav1.SetMetaDataAnnotation(&image.ObjectMeta, v1alpha1.AnnotationRequestCopied, value)
}
