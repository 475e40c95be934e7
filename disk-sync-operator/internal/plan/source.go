package plan

import (
	"slices"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Misjudged says that the image's status does not agree with what the policy says of its source now, so that somebody
// has to look at it: it would queue or start and may not, or it has failed for that and may. What downloads is not
// stopped, and what is downloaded stays.
func Misjudged(image *v1alpha1.VMDiskImage, p policy.Policy) bool {
	if image.DeletionTimestamp != nil {
		return false
	}
	switch StageOf(&image.Status) {
	case New, Queued, BackingOff:
		return sourceRefusal(image, p) != ""
	case Failed:
		return notAllowed(image) && sourceRefusal(image, p) == ""
	}
	return false
}

func sourceRefusal(image *v1alpha1.VMDiskImage, p policy.Policy) string {
	return p.RefusesSource(string(image.Spec.SourceType), image.Spec.URL)
}

// notAllowed says that the image has failed because the policy refused its source.
func notAllowed(image *v1alpha1.VMDiskImage) bool {
	last := image.Status.LastFailure
	return last != nil && last.Reason == v1alpha1.FailureSourceNotAllowed && StageOf(&image.Status) == Failed
}

// judged asks the policy about the source of an image that is to queue, wait or start; and of one that has failed for its
// source, whether it may queue by now.
func judged(s Snapshot, set Settings, d Decision, now time.Time) Decision {
	switch {
	case d.Report.Revision != v1alpha1.RevisionOf(s.Image), d.Report.Failure != nil:
		return d
	case notAllowed(s.Image) && d.Report.Stage == Failed:
		return readmit(s, set, d)
	case !queues(s, d):
		return d
	}
	if why := sourceRefusal(s.Image, set.Policy); why != "" {
		return refuseSource(s, d, why, now)
	}
	return d
}

// queues says that the decision lets the image in or keeps it in the queue, for a download. A revision that it enters and
// that there is something of already may need none: the next look will tell.
func queues(s Snapshot, d Decision) bool {
	entering := d.Report.Revision != s.Image.Status.Revision
	known := s.Image.Status.Artifact
	if entering && (!d.WakeAt.IsZero() || known != nil && known.Revision == d.Report.Revision) {
		return false
	}
	return d.Report.Starts || d.Report.Stage == Queued || d.Report.Stage == BackingOff
}

// refuseSource is the end of an image that has downloaded nothing, or nothing more. Of the decision that it replaces it
// keeps what is given up.
func refuseSource(s Snapshot, d Decision, why string, now time.Time) Decision {
	report := unchanged(s, Failed)
	if report.Revision != d.Report.Revision {
		report = Report{Stage: Failed, Revision: d.Report.Revision}
	}
	report.Failure = &v1alpha1.Failure{Time: metav1.NewTime(now), Reason: v1alpha1.FailureSourceNotAllowed, Message: clip(why)}
	creates := func(a Action) bool { return a == CreateDataVolume || a == CreateSnapshot }
	return Decision{
		Report: report, Ended: d.Ended, ReleaseSlot: d.ReleaseSlot || d.Report.Starts && s.Slot != "",
		Actions: slices.DeleteFunc(slices.Clone(d.Actions), creates),
	}
}

// readmit lets the image go to the tail of the queue once the policy admits its source, and nothing is left of a former
// attempt.
func readmit(s Snapshot, set Settings, d Decision) Decision {
	report := unchanged(s, Queued)
	if s.Slot != "" || remains(s) || int(report.Attempt) >= set.Policy.MaxAttempts() || sourceRefusal(s.Image, set.Policy) != "" {
		return d
	}
	report.Ticket, report.Ahead = s.Tail, s.Ahead
	return Decision{Report: report}
}
