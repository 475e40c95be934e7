package plan

import (
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// prune says when an image that has succeeded may go because nothing uses it, and that it goes when that time has come.
// An image that somebody else controls would be made again at once: that is for its owner to decide.
func prune(s Snapshot, set Settings, now time.Time, d Decision) Decision {
	if d.Report.Stage != Succeeded || d.Report.Revision != v1alpha1.RevisionOf(s.Image) {
		return d // it is being made, or is about to be made anew
	}
	d.Report.ExpiresAt = expiry(s.Image, set, d.Report)
	switch at := d.Report.ExpiresAt; {
	case at.IsZero():
	case now.Before(at):
		d.WakeAt = earliest(d.WakeAt, at)
	case !at.Equal(unchanged(s, Succeeded).ExpiresAt):
		d.WakeAt = now // it is told beforehand, however late
	case beingCloned(s, d): // the end of the clone is an event
	case set.DryRun || s.Image.Annotations[v1alpha1.AnnotationDryRun] == "true":
		d.Report.WouldPrune = true
	default:
		d.Prune = true
	}
	return d
}

// beingCloned says that a DataVolume still needs what would go with the image.
func beingCloned(s Snapshot, d Decision) bool {
	return d.Report.Held != "" || s.Clone != "" || s.SnapshotClone != ""
}

// expiry is when the image may go if nothing uses it until then; zero when it is kept.
func expiry(image *v1alpha1.VMDiskImage, set Settings, report Report) time.Time {
	ttl := set.Policy.UnusedImageTTL
	if own := image.Spec.UnusedTTL; own != nil {
		ttl = own.Duration
	}
	since := unusedSince(image, report)
	if ttl <= 0 || since.IsZero() || InUse(image) || metav1.GetControllerOfNoCopy(image) != nil {
		return time.Time{}
	}
	return wholeSecond(since.Add(ttl))
}

// unusedSince is the later of the image's completion and its last use, as status has it: without the parts of a second.
func unusedSince(image *v1alpha1.VMDiskImage, report Report) time.Time {
	var since time.Time
	switch artifact := image.Status.Artifact; {
	case report.Artifact != nil:
		since = report.Artifact.CompletedAt.Time
	case image.Status.CompletedAt != nil:
		since = image.Status.CompletedAt.Time
	case artifact != nil:
		since = artifact.CompletedAt.Time
	}
	if references := image.Status.References; references != nil && references.LastReferencedAt != nil && !since.IsZero() {
		since = latest(since, references.LastReferencedAt.Time)
	}
	return since.Truncate(time.Second)
}
