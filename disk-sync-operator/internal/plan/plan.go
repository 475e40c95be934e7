// Package plan decides what becomes of one VMDiskImage. It is pure: what was read and the time come in, a
// Decision comes out.
//
//	          slot              volume filled and bound            snapshot ready
//	Queued ---------> Syncing ---------------------------> Snapshotting ------------> Succeeded
//	  ^                  | failed                                | volume lost
//	  |   time is up     v                                       v
//	  +------------- BackingOff <--------------------------------+
//	                     | no attempt left, or no use in one
//	                     v
//	                   Failed
//
// An image whose source the policy does not admit is Failed, too: instead of being Queued, and from there and from
// BackingOff. It is Queued when the policy admits the source by then.
//
// What has Succeeded goes back to Snapshotting when its snapshot is lost, and to Queued when its volume is lost or its spec
// changes; the artifact stays Ready as long as it can be cloned.
//
// The law of one attempt: the slot is held before Syncing is written, Syncing is written before the DataVolume is
// created, a failure is written before the slot is marked as ending and that before the DataVolume is deleted, and the slot
// is given up only when the DataVolume has Succeeded or is gone. So status is a record ahead of the deed: a Decision is
// carried out in the order status, slot, children, and whoever comes after a crash finds what was going to happen.
package plan

import (
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// Snapshot is all that one reconcile read. Children are those of Revision(Image); nil where there is none.
type Snapshot struct {
	Image *v1alpha1.VMDiskImage
	// Slot is the name of the Lease that the image holds, or empty.
	Slot string
	// Hold tells this time of holding it from others.
	Hold string
	// Ending says that an attempt under this hold has ended, so that none can begin.
	Ending bool
	// Tail is a ticket that puts the image behind all that are queued now.
	Tail int64
	// Ahead is how many images are waiting now.
	Ahead int
	// SeenUID is the DataVolume that this process has seen or made for the running attempt, if any.
	SeenUID types.UID

	DataVolume     *cdiv1.DataVolume
	Claim          *corev1.PersistentVolumeClaim
	Importer       *corev1.Pod
	VolumeSnapshot *snapshotv1.VolumeSnapshot
	Content        *snapshotv1.VolumeSnapshotContent
	// Clone is a DataVolume that is being cloned from the claim, SnapshotClone one from the VolumeSnapshot, as
	// namespace/name, or empty.
	Clone, SnapshotClone string

	// Others are the image's children of other revisions: the artifact's while it is being updated, and former ones.
	Others []Child

	// Refusal is what the API server said when it refused to create the DataVolume or the VolumeSnapshot, or empty.
	Refusal string
}

// Child is a DataVolume or a VolumeSnapshot of another revision, which the image controls.
type Child struct {
	// Object is a *DataVolume or a *VolumeSnapshot.
	Object metav1.Object
	// Clone is a DataVolume that is being cloned from it, as namespace/name, or empty.
	Clone string
}

// Settings are what the decisions depend on besides the Snapshot.
type Settings struct {
	Policy policy.Policy
	// ProgressInterval is the least time between two status writes that only report progress.
	ProgressInterval time.Duration
	// DryRun has pruning only report what it would delete.
	DryRun bool
}

// Action is a change of a child.
type Action string

// The changes of children that there are.
const (
	CreateDataVolume Action = "CreateDataVolume"
	DeleteDataVolume Action = "DeleteDataVolume"
	CreateSnapshot   Action = "CreateSnapshot"
	DeleteSnapshot   Action = "DeleteSnapshot"
	LabelDataVolume  Action = "LabelDataVolume"
	LabelSnapshot    Action = "LabelSnapshot"
)

// Decision is what to do, in this order.
type Decision struct {
	// Report is what status shall say.
	Report Report
	// Actions change children once status is written.
	Actions []Action
	// Obsolete are children of other revisions to delete.
	Obsolete []metav1.Object
	// Ended says that the attempt under the slot that the image holds is over: nothing may begin under it any more.
	Ended bool
	// ReleaseSlot gives up the slot that the image holds.
	ReleaseSlot bool
	// Prune deletes the image itself, last of all.
	Prune bool
	// WakeAt is when to look again without an event; zero for never.
	WakeAt time.Time
}

// Report is what status shall say; the status package turns it into words.
type Report struct {
	Stage    Stage
	Revision string
	// Ticket is set when the image enters the queue, and Ahead then says how many are before it.
	Ticket int64
	Ahead  int
	// Attempt is the number of the attempt that runs, failed or succeeded, from 1; 0 before the first.
	Attempt    int32
	AttemptUID types.UID
	// Starts is set when the attempt begins with this report.
	Starts bool
	// Failure is set when the attempt failed with this report, RetryAt when another one follows.
	Failure *v1alpha1.Failure
	RetryAt time.Time
	// Progress is set when there is something new to show.
	Progress string
	// Waits says what the attempt is waiting for, in the words of CDI, the kubelet or the snapshotter.
	Waits string
	// Quiet leaves status' words as they are: something is tried again, and its outcome is not known yet.
	Quiet bool
	// Artifact is set when the image has become ready, or its artifact has become another one.
	Artifact *v1alpha1.Artifact
	// Loss is set when something was lost of an image that was ready.
	Loss *v1alpha1.Loss
	// Resync is set when the loss takes a new sync: under a revision of its own.
	Resync bool
	// Unready is set when the artifact cannot be cloned any more.
	Unready bool
	// Held is a DataVolume that is being cloned from former children, which therefore stay.
	Held string
	// ExpiresAt is when an image that has succeeded is pruned, if nothing uses it until then; zero for never.
	ExpiresAt time.Time
	// WouldPrune is set when it would be pruned now, but for the dry run.
	WouldPrune bool
	// Deletion says what the deletion of the image waits for.
	Deletion string
}

// Revision is the revision whose children decide what comes next: the one that status is about, until the
// attempt for it has ended.
func Revision(image *v1alpha1.VMDiskImage) string {
	if image.Status.Revision != "" {
		return image.Status.Revision
	}
	return v1alpha1.RevisionOf(image)
}

// Next is the decision for what was read.
func Next(s Snapshot, set Settings, now time.Time) Decision {
	if s.Image.DeletionTimestamp != nil {
		return deleting(s, StageOf(&s.Image.Status))
	}
	return prune(s, set, now, relabel(s, serving(s, tidy(s, judged(s, set, next(s, set, now), now)), now)))
}

func next(s Snapshot, set Settings, now time.Time) Decision {
	stage := StageOf(&s.Image.Status)
	switch {
	case stage == New:
		return enter(s, now)
	case s.Image.Status.Revision != v1alpha1.RevisionOf(s.Image):
		return supersede(s, stage, now)
	}
	switch stage {
	case Queued:
		return queued(s, now)
	case Syncing:
		return syncing(s, set, now)
	case BackingOff:
		return backingOff(s, set, now)
	case Snapshotting:
		return snapshotting(s, set, now)
	case Failed:
		return cleanUp(s, Decision{Report: unchanged(s, stage), Ended: s.Slot != ""})
	default:
		return settled(s, now)
	}
}

// unchanged reports what status says already.
func unchanged(s Snapshot, stage Stage) Report {
	st := s.Image.Status
	report := Report{Stage: stage, Revision: st.Revision, Attempt: st.Attempts, AttemptUID: st.AttemptUID}
	if st.ExpiresAt != nil {
		report.ExpiresAt = st.ExpiresAt.Time
	}
	return report
}

// owned says that the image controls the object: by UID, never by name or label.
func owned(s Snapshot, child metav1.Object) bool { return metav1.IsControlledBy(child, s.Image) }

// orphan says that the object belongs to a former image of the same name, so that the garbage collector is
// about to delete it.
func orphan(s Snapshot, child metav1.Object) bool {
	owner := metav1.GetControllerOf(child)
	return owner != nil && owner.Kind == "VMDiskImage" && owner.Name == s.Image.Name && owner.UID != s.Image.UID
}

// earliest of those that are set.
func earliest(times ...time.Time) time.Time {
	var first time.Time
	for _, t := range times {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}
