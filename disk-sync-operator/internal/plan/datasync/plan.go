// Package datasync decides what becomes of one DataSync. It is pure: what was read comes in, a Decision comes out.
//
// The law: every entry has one image, named after the DataSync and the entry, and controlled by the DataSync's UID. An
// image that the DataSync does not control is never touched. An image that it controls and that no entry asks for is
// deleted, unless virtual machines use it. What becomes of an image is the image's own affair: its phase is read, and
// nothing of its children.
package datasync

import (
	"maps"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pelotech/open-terrain/disk-sync-operator/internal/desired"
)

// Snapshot is all that one reconcile read.
type Snapshot struct {
	DataSync *v1alpha1.DataSync
	// Named are the images that have the name of an entry's image, whoever they belong to.
	Named map[string]*v1alpha1.VMDiskImage
	// Owned are the images that the DataSync controls.
	Owned []*v1alpha1.VMDiskImage
	// Refusals are what the API server said when it refused to create or change an image, by the image's name.
	Refusals map[string]string
}

// Change is an image as it is and as it shall be.
type Change struct{ From, To *v1alpha1.VMDiskImage }

// Decision is what to do, and what to say of it.
type Decision struct {
	// Create, Change and Delete images, each in this order.
	Create []*v1alpha1.VMDiskImage
	Change []Change
	Delete []*v1alpha1.VMDiskImage
	// Entries are where those of the spec stand, in its order.
	Entries []Entry
	// Blocked are the images of former entries that are in use.
	Blocked []*v1alpha1.VMDiskImage
}

// Entry is where an entry stands.
type Entry struct {
	Name, Image, Message string
	Phase                v1alpha1.Phase
	// Started says that the image has begun an attempt, or has an artifact.
	Started bool
}

// Next is the decision for what was read. A DataSync that is being deleted needs none: its images go with it.
func Next(s Snapshot, p policy.Policy) Decision {
	var d Decision
	asked := map[string]bool{}
	for _, vm := range s.DataSync.Spec.VMs {
		name := v1alpha1.DataSyncImageName(s.DataSync.Name, vm.Name)
		asked[name] = true
		entry := d.entry(s, vm, s.Named[name], p)
		entry.Name, entry.Image = vm.Name, name
		d.Entries = append(d.Entries, entry)
	}
	for _, image := range s.Owned {
		switch {
		case asked[image.Name]:
		case image.Status.References != nil && image.Status.References.Count > 0:
			d.Blocked = append(d.Blocked, image)
		case image.DeletionTimestamp == nil:
			d.Delete = append(d.Delete, image)
		}
	}
	return d
}

// entry decides about one: the first that applies.
func (d *Decision) entry(s Snapshot, vm v1alpha1.DataSyncVM, image *v1alpha1.VMDiskImage, p policy.Policy) Entry {
	if image != nil && !metav1.IsControlledBy(image, s.DataSync) {
		return notOurs(s.DataSync, image)
	}
	if image != nil && image.DeletionTimestamp != nil {
		return waits("The image is being deleted; it will be made again when it is gone" + usedBy(image))
	}
	want := desired.Image(s.DataSync, vm, image, p)
	if missing := missing(want); missing != "" {
		return failed(missing)
	}
	switch {
	case image == nil:
		d.Create = append(d.Create, want)
	case differ(image, want):
		d.Change = append(d.Change, Change{From: image, To: want})
	}
	if refusal := s.Refusals[want.Name]; refusal != "" {
		return failed("The API server refuses the image: " + refusal)
	}
	return follow(want)
}

// missing names what neither the entry nor the policy has, and where to put it.
func missing(want *v1alpha1.VMDiskImage) string {
	switch {
	case want.Spec.DiskSize.IsZero():
		return "diskSize is missing: give it in the entry, or set defaultDiskSize in the policy"
	case want.Spec.SourceType == v1alpha1.SourceS3 && want.Spec.SecretRef == "":
		return "secretRef is missing, which sourceType s3 needs: give it in the entry, or set defaultSecretRef in the policy"
	}
	return ""
}

// differ compares what the DataSync decides: the spec, and the annotations that it writes.
func differ(is, want *v1alpha1.VMDiskImage) bool {
	return !equality.Semantic.DeepEqual(is.Spec, want.Spec) || !maps.Equal(is.Annotations, want.Annotations)
}
