package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
)

// Conditions of a VMDiskImage. Synced and SnapshotReady are about the revision that the spec asks for; Ready
// is about the artifact, so that an image that is being updated stays Ready with its old artifact.
const (
	// ConditionReady is True when status.artifact can be cloned. Positive polarity.
	ConditionReady = "Ready"
	// ConditionSynced is True when the volume holds the whole disk and is bound. Positive polarity.
	ConditionSynced = "Synced"
	// ConditionSnapshotReady is True when the snapshot is readyToUse and bound both ways. Positive polarity.
	ConditionSnapshotReady = "SnapshotReady"
	// ConditionStalled is True when nothing more will be tried until the spec changes or a sync is requested.
	// Negative polarity; its reason is a FailureReason.
	ConditionStalled = "Stalled"
	// ConditionReconciling is True while an image that is Ready is being updated or repaired, and absent otherwise: kstatus
	// then waits for the end of the update. Negative polarity.
	ConditionReconciling = "Reconciling"
)

// Reasons of the conditions, besides the FailureReasons.
const (
	// ReasonQueued waits for a slot.
	ReasonQueued = "Queued"
	// ReasonBackingOff waits for status.nextAttemptTime after a failed attempt.
	ReasonBackingOff = "BackingOff"
	// ReasonSyncing holds a slot; the volume is being filled.
	ReasonSyncing = "Syncing"
	// ReasonSynced has filled the volume.
	ReasonSynced = "Synced"
	// ReasonNotSynced has no volume to take a snapshot of, yet.
	ReasonNotSynced = "NotSynced"
	// ReasonSnapshotting waits for the snapshot.
	ReasonSnapshotting = "Snapshotting"
	// ReasonSnapshotReady has a snapshot that is ready to use.
	ReasonSnapshotReady = "SnapshotReady"
	// ReasonProgressing is the reason of Stalled=False.
	ReasonProgressing = "Progressing"
	// ReasonArtifactLost had an artifact, which was lost: see status.lastLoss. It is being made again.
	ReasonArtifactLost = "ArtifactLost"
	// ReasonUpdating has an artifact, and another one is being made to replace it.
	ReasonUpdating = "Updating"
)

// FailureReason is why an attempt failed: a closed list.
// +kubebuilder:validation:Enum=SourceNotFound;AccessDenied;TLSFailed;Unreachable;DiskTooSmall;InvalidFormat;ChecksumMismatch;Stalled;TimedOut;QuotaExceeded;Unschedulable;SecretMissing;SourceNotAllowed;Unknown
type FailureReason string

// The reasons of failed attempts.
const (
	// FailureSourceNotFound: the server or bucket has no such object.
	FailureSourceNotFound FailureReason = "SourceNotFound"
	// FailureAccessDenied: the credentials are wrong, missing or not sufficient.
	FailureAccessDenied FailureReason = "AccessDenied"
	// FailureTLSFailed: the server's certificate is not trusted or not valid.
	FailureTLSFailed FailureReason = "TLSFailed"
	// FailureUnreachable: no connection, a connection that broke, or an error of the server.
	FailureUnreachable FailureReason = "Unreachable"
	// FailureDiskTooSmall: the image's virtual size exceeds diskSize. Final.
	FailureDiskTooSmall FailureReason = "DiskTooSmall"
	// FailureInvalidFormat: not a disk image that CDI can read. Final.
	FailureInvalidFormat FailureReason = "InvalidFormat"
	// FailureChecksumMismatch: the download is not what checksum says. Final.
	FailureChecksumMismatch FailureReason = "ChecksumMismatch"
	// FailureStalled: no sign of progress for the policy's stallTimeout.
	FailureStalled FailureReason = "Stalled"
	// FailureTimedOut: not done within the policy's attemptTimeout.
	FailureTimedOut FailureReason = "TimedOut"
	// FailureQuotaExceeded: the namespace's ResourceQuota admits no volume or pod.
	FailureQuotaExceeded FailureReason = "QuotaExceeded"
	// FailureUnschedulable: no node takes the importer pod.
	FailureUnschedulable FailureReason = "Unschedulable"
	// FailureSecretMissing: secretRef or certConfigMap names something that is not there.
	FailureSecretMissing FailureReason = "SecretMissing"
	// FailureSourceNotAllowed: the policy's allowedSources do not admit the URL. No attempt is made; when the policy admits
	// it, the image enters the queue by itself.
	FailureSourceNotAllowed FailureReason = "SourceNotAllowed"
	// FailureUnknown: anything else; the message tells.
	FailureUnknown FailureReason = "Unknown"
)

// Final says that repeating the attempt would cost a download and cannot help.
func (r FailureReason) Final() bool {
	switch r {
	case FailureDiskTooSmall, FailureInvalidFormat, FailureChecksumMismatch, FailureSourceNotAllowed:
		return true
	}
	return false
}

// IsReady says that the image has an artifact to clone from.
func (i *VMDiskImage) IsReady() bool {
	return i.Status.Artifact != nil && meta.IsStatusConditionTrue(i.Status.Conditions, ConditionReady)
}
