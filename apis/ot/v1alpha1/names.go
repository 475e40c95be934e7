package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Annotations and labels that are part of the contract.
const (
	// AnnotationSyncRequestedAt forces a fresh sync when its value changes: of a Succeeded image, too, and it
	// revives a Failed one. Any value will do; a time stamp is the custom.
	AnnotationSyncRequestedAt = "pelotech.ot/sync-requested-at"
	// AnnotationDryRun with the value "true" on an image, or on the policy's ConfigMap for all of them, has pruning only
	// report what it would delete.
	AnnotationDryRun = "pelotech.ot/dry-run"
	// AnnotationAttempt on a DataVolume is the number of the attempt that it belongs to, from 1.
	AnnotationAttempt = "pelotech.ot/attempt"
	// AnnotationSlot on a DataVolume is the name of the slot's Lease that it was created under.
	AnnotationSlot = "pelotech.ot/slot"
	// AnnotationHolder on a DataVolume is the slot's holder, as SlotHolder writes it.
	AnnotationHolder = "pelotech.ot/slot-holder"
	// AnnotationEnding on a slot's Lease says that the attempt under it has ended: until the slot is passed on, no DataVolume
	// begins under it.
	AnnotationEnding = "pelotech.ot/ending"
	// LabelImage on children is the UID of the VMDiskImage, for people who look for them. Nothing is
	// adopted or deleted because of it.
	LabelImage = "pelotech.ot/vmdiskimage-uid"
	// LabelSlot marks the Leases that are slots of a queue; its value is the queue's name.
	LabelSlot = "pelotech.ot/queue"
)

// FinalizerProtection holds back the deletion of an image while virtual machines use it. The disk-sync-operator sets it
// when status.references.count rises above 0: whoever claims an image waits until it is there before using the image.
const FinalizerProtection = "pelotech.ot/in-use-protection"

// Names of the objects that the disk-sync-operator owns in its own namespace.
const (
	// PolicyConfigMapName is the ConfigMap with the policy.
	PolicyConfigMapName = "sync-operator-policy"
	// DiskSyncQueue is the name of the queue of disk images.
	DiskSyncQueue = "disk-sync"
	// DiskSyncSlotPrefix and a number make the name of a slot's Lease.
	DiskSyncSlotPrefix = "disk-sync-slot-"
	// ImportPriorityClass gives importer pods one run per attempt (restartPolicy Never).
	ImportPriorityClass = "open-terrain-import-once"
)

const (
	revisionLength = 8
	maxNameLength  = 253
)

// RevisionOf is the short hash of all that decides what the disk holds and where, and of how often it was lost: a change
// of any of it needs a new sync. It is 8 hexadecimal digits.
func RevisionOf(image *VMDiskImage) string {
	s := image.Spec
	key := struct {
		URL, Source, Size, Secret, Cert, Checksum, Class, SnapshotClass, Mode, Requested string
		Access                                                                           []string
		Losses                                                                           int32 `json:",omitempty"`
	}{
		URL: s.URL, Source: string(s.SourceType), Size: strconv.FormatInt(s.DiskSize.Value(), 10), Secret: s.SecretRef,
		Cert: s.CertConfigMap, Checksum: s.Checksum, Class: s.StorageClass, SnapshotClass: s.SnapshotClass,
		Mode: string(s.VolumeMode), Requested: image.Annotations[AnnotationSyncRequestedAt], Losses: image.Status.Losses,
	}
	for _, m := range s.AccessModes {
		key.Access = append(key.Access, string(m))
	}
	raw, _ := json.Marshal(key) // strings only: cannot fail
	return shortHash(string(raw))
}

// ChildName is the name of an image's DataVolume, claim and VolumeSnapshot of a revision: the image's name and
// the revision, or, where that would exceed 253 characters, a cut name and a hash of both.
func ChildName(imageName, revision string) string {
	if len(imageName)+1+len(revision) <= maxNameLength {
		return imageName + "-" + revision
	}
	cut := strings.TrimRight(imageName[:maxNameLength-2*(revisionLength+1)], ".-") // no part may end in these
	return cut + "-" + shortHash(imageName) + "-" + revision
}

// SlotName is the name of the Lease of slot i, from 0.
func SlotName(i int) string { return DiskSyncSlotPrefix + strconv.Itoa(i) }

// SlotHolder is the holderIdentity of an image in a slot's Lease: namespace/name/uid.
func SlotHolder(key types.NamespacedName, uid types.UID) string {
	return key.Namespace + "/" + key.Name + "/" + string(uid)
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:revisionLength]
}
