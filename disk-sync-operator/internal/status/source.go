package status

import (
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
)

// sourceRefused says that the image has come to its end because the policy refuses its source. That is no attempt.
func sourceRefused(st *v1alpha1.VMDiskImageStatus) bool {
	return st.LastFailure != nil && st.LastFailure.Reason == v1alpha1.FailureSourceNotAllowed
}

// readmitted forgets the refusal of an image that goes into the queue: its source is admitted by now.
func readmitted(st *v1alpha1.VMDiskImageStatus, report plan.Report) {
	if report.Stage == plan.Queued && report.Ticket != 0 && sourceRefused(st) {
		st.LastFailure, st.CompletedAt = nil, nil
	}
}

// sourceRefusedMessage says that there was no download, and what to change.
func sourceRefusedMessage(st *v1alpha1.VMDiskImageStatus) string {
	text := "Nothing was downloaded"
	if st.Attempts > 0 {
		text = "Nothing more is downloaded"
	}
	return with(text+": "+string(st.LastFailure.Reason), st.LastFailure.Message)
}
