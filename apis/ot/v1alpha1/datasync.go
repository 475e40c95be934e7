package v1alpha1

import (
	"regexp"
	"strings"
)

// DataSyncPhase is the one-word summary of a DataSync.
// +kubebuilder:validation:Enum=Queued;Syncing;Succeeded;Failed
type DataSyncPhase string

// The phases of a DataSync.
const (
	// DataSyncQueued: no entry has begun.
	DataSyncQueued DataSyncPhase = "Queued"
	// DataSyncSyncing: some entries have begun, none has failed, and not all have succeeded.
	DataSyncSyncing DataSyncPhase = "Syncing"
	// DataSyncSucceeded: all entries have succeeded.
	DataSyncSucceeded DataSyncPhase = "Succeeded"
	// DataSyncFailed: an entry has failed for good. It is left when that entry recovers.
	DataSyncFailed DataSyncPhase = "Failed"
)

// ConditionDeletionBlocked of a DataSync is True while an image whose entry was taken off the list is in use. Negative
// polarity. Its Ready and Stalled are those of every kind: all entries have succeeded, an entry has failed.
const ConditionDeletionBlocked = "DeletionBlocked"

// Reasons of the conditions of a DataSync, besides ReasonQueued, ReasonSyncing and ReasonProgressing.
const (
	// ReasonEntriesReady has a snapshot of every entry.
	ReasonEntriesReady = "EntriesReady"
	// ReasonEntriesFailed has entries that failed: status.entries says which, and why.
	ReasonEntriesFailed = "EntriesFailed"
	// ReasonInUse keeps images of former entries, because virtual machines use them.
	ReasonInUse = "InUse"
	// ReasonNothingBlocked has no image of a former entry that is in use.
	ReasonNothingBlocked = "NothingBlocked"
)

// Annotations of the images of a DataSync: its operator's memory of how they came about.
const (
	// AnnotationDefaulted lists the fields of the spec, separated by commas, whose values came from the policy when the
	// image was made. They stay as they are, whatever the policy becomes, until the entry itself gives them.
	AnnotationDefaulted = "pelotech.ot/defaulted"
	// AnnotationRequestCopied is the value of AnnotationSyncRequestedAt that was last copied from the DataSync, so that a
	// request made on the image itself is not taken back.
	AnnotationRequestCopied = "pelotech.ot/sync-request-copied"
)

// hashed is what the last part of a name looks like when it is a hash.
var hashed = regexp.MustCompile(`^[0-9a-f]{8}$`)

// DataSyncImageName is the name of an entry's VMDiskImage: the names of the DataSync and of the entry, with a dash between
// them. Where another pair could make the same name (a-b with c, and a with b-c), and where it would be too long, a hash
// of both follows. An entry without a dash that is no hash itself makes a name that only one pair can make.
func DataSyncImageName(dataSync, entry string) string {
	name := dataSync + "-" + entry
	if !strings.Contains(entry, "-") && !hashed.MatchString(entry) && len(name) <= maxNameLength {
		return name
	}
	if room := maxNameLength - 1 - revisionLength; len(name) > room {
		name = strings.TrimRight(name[:room], ".-") // no part may end in these
	}
	return name + "-" + shortHash(dataSync+"/"+entry)
}
