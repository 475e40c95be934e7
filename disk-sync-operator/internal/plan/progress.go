package plan

import (
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// NotAvailable is CDI's progress while it has nothing to show.
const NotAvailable = "N/A"

// moved says that CDI shows another progress than status does.
func moved(s Snapshot) bool {
	shown := string(s.DataVolume.Status.Progress)
	return shown != "" && shown != NotAvailable && shown != s.Image.Status.Progress
}

// progressDue is when progress may be written again.
func progressDue(s Snapshot, set Settings) time.Time {
	if s.Image.Status.ProgressAt == nil {
		return started(s).Add(set.ProgressInterval)
	}
	return s.Image.Status.ProgressAt.Add(set.ProgressInterval)
}

// deadlines are when the attempt has lasted too long, and when it will have shown no progress for too long (zero where
// nothing can be told from progress). While an s3 or registry import runs, CDI shows no percentage of the download,
// however well it goes: only attemptTimeout ends it.
func deadlines(s Snapshot, set Settings, now time.Time) (end, stall time.Time) {
	end = started(s).Add(set.Policy.AttemptTimeout)
	if silent(s) {
		return end, time.Time{}
	}
	return end, lastSign(s, now).Add(set.Policy.StallTimeout)
}

// lastSign is when the attempt last showed progress: another percentage, a change of the DataVolume's Running
// condition, the DataVolume's creation. All of them are on record (status.progressAt follows the percentage), so that
// a restart forgets none.
func lastSign(s Snapshot, now time.Time) time.Time {
	sign := started(s)
	if s.Image.Status.ProgressAt != nil {
		sign = latest(sign, s.Image.Status.ProgressAt.Time)
	}
	if s.DataVolume == nil {
		return sign
	}
	if moved(s) {
		return now
	}
	sign = latest(sign, s.DataVolume.CreationTimestamp.Time)
	if c := condition(s.DataVolume, cdiv1.DataVolumeRunning); c != nil {
		sign = latest(sign, c.LastTransitionTime.Time)
	}
	return sign
}

// silent says that the import runs and that CDI cannot tell how far it is.
func silent(s Snapshot) bool {
	source := s.Image.Spec.SourceType
	if s.DataVolume == nil || (source != v1alpha1.SourceS3 && source != v1alpha1.SourceRegistry) {
		return false
	}
	c := condition(s.DataVolume, cdiv1.DataVolumeRunning)
	return c != nil && c.Status == "True"
}

func started(s Snapshot) time.Time {
	if s.Image.Status.StartedAt == nil {
		return time.Time{}
	}
	return s.Image.Status.StartedAt.Time
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func condition(dv *cdiv1.DataVolume, kind cdiv1.DataVolumeConditionType) *cdiv1.DataVolumeCondition {
	for i := range dv.Status.Conditions {
		if dv.Status.Conditions[i].Type == kind {
			return &dv.Status.Conditions[i]
		}
	}
	return nil
}
