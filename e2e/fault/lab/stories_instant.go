package lab

import (
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
)

// one image that ends Succeeded after so many attempts.
func succeeded(attempts int32) map[string]End {
	return map[string]End{image: {Phase: otv1alpha1.PhaseSucceeded, Attempts: attempts}}
}

func gone() map[string]End { return map[string]End{image: {}} }

// Lives are the stories of creating, failing, changing and deleting images, with imports that are played at once.
func Lives() []Story {
	full := map[string]string{"concurrency": "0"}
	return []Story{
		{Name: "create", Steps: []Step{Create(image, nowhere+"disk")}, Ends: succeeded(1)},
		{Name: "fail-once", Steps: []Step{Create(image, nowhere+firstFails)}, Ends: succeeded(2)},
		{
			Name: "fail", Steps: []Step{Create(image, nowhere+"status/404")},
			Ends: map[string]End{image: {Phase: otv1alpha1.PhaseFailed, Attempts: 2, Reason: otv1alpha1.FailureSourceNotFound}},
		},
		{
			Name: "revive", Ends: succeeded(2),
			Steps: []Step{
				Create(image, nowhere+"status/404"), AwaitPhase(image, otv1alpha1.PhaseFailed),
				Change(image, URL(nowhere+firstFails)),
			},
		},
		{
			Name: "request-on-failed", Ends: map[string]End{image: {Phase: otv1alpha1.PhaseFailed, Attempts: 2}},
			Steps: []Step{
				Create(image, nowhere+"status/404"), AwaitPhase(image, otv1alpha1.PhaseFailed),
				Request(image, "again"), AwaitPhase(image, otv1alpha1.PhaseSyncing), AwaitPhase(image, otv1alpha1.PhaseFailed),
			},
		},
		{
			Name: "not-allowed", Policy: map[string]string{"allowedSources": "http://elsewhere.test/"}, Ends: succeeded(1),
			Steps: []Step{
				Create(image, nowhere+"disk"), AwaitPhase(image, otv1alpha1.PhaseFailed),
				Policy(nil), AwaitSucceeded(image),
			},
		},
		{
			Name: "change-queued", Policy: full, Ends: succeeded(1),
			Steps: []Step{
				Create(image, nowhere+"old"), AwaitPhase(image, otv1alpha1.PhaseQueued),
				Change(image, URL(nowhere+"new")), Policy(nil),
			},
		},
		{
			Name: "change-syncing", Ends: succeeded(1),
			Steps: []Step{
				Create(image, nowhere+stays), awaitVolume(),
				Change(image, URL(nowhere+"new")),
			},
		},
		{
			Name: "change-snapshotting", Ends: succeeded(1),
			Steps: []Step{
				Create(image, nowhere+"old", withoutSnapshot),
				awaitSnapshot(),
				Change(image, func(i *otv1alpha1.VMDiskImage) { i.Spec.SnapshotClass = "" }),
			},
		},
	}
}

// Deletions are the stories of images that are deleted in each of their states.
func Deletions() []Story {
	full := map[string]string{"concurrency": "0"}
	slow := map[string]string{"retryBackoffDuration": "1h"}
	until := func(name string, policy map[string]string, url string, until ...Step) Story {
		steps := append([]Step{Create(image, url)}, until...)
		return Story{Name: "delete-" + name, Policy: policy, Ends: gone(), Steps: append(steps, Delete(image), AwaitGone("vmdiskimages", image))}
	}
	return []Story{
		until("new", full, nowhere+"disk"),
		until("queued", full, nowhere+"disk", AwaitPhase(image, otv1alpha1.PhaseQueued)),
		until("syncing", nil, nowhere+stays, awaitVolume()),
		until("backing-off", slow, nowhere+"status/404", Await(image, "backing off", func(i *otv1alpha1.VMDiskImage) bool { return i.Status.NextAttemptTime != nil })),
		until("succeeded", nil, nowhere+"disk", AwaitSucceeded(image)),
		{
			Name: "delete-snapshotting", Ends: gone(),
			Steps: []Step{Create(image, nowhere+"disk", withoutSnapshot), awaitSnapshot(), Delete(image), AwaitGone("vmdiskimages", image)},
		},
		until("failed", nil, nowhere+"status/404", AwaitPhase(image, otv1alpha1.PhaseFailed)),
	}
}

// withoutSnapshot never gets a snapshot that is ready.
func withoutSnapshot(i *otv1alpha1.VMDiskImage) { i.Spec.SnapshotClass = "missing" }
