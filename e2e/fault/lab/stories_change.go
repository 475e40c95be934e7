package lab

import (
	"slices"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
)

const image = "image"

func noVolume(i *otv1alpha1.VMDiskImage) {
	i.Spec.VolumePolicy = otv1alpha1.VolumeDeleteAfterSnapshot
}

// healed says that something was lost, and that it has been made again.
func healed(i *otv1alpha1.VMDiskImage) bool {
	return i.Status.LastLoss != nil && i.Status.Phase == otv1alpha1.PhaseSucceeded
}

// Updates are the stories of images that have succeeded and are changed.
func Updates() []Story {
	made := []Step{Create(image, nowhere+"old"), AwaitSucceeded(image)}
	after := func(steps ...Step) []Step { return append(slices.Clip(made), steps...) }
	return []Story{
		{Name: "update", Steps: after(Change(image, URL(nowhere+"new")), AwaitSucceeded(image)), Ends: succeeded(1)},
		{
			Name: "update-fails", Steps: after(Change(image, URL(nowhere+"status/404")), AwaitPhase(image, otv1alpha1.PhaseFailed)),
			Ends: map[string]End{image: {Phase: otv1alpha1.PhaseFailed, Attempts: 2}},
		},
		{
			Name: "update-and-back", Ends: succeeded(0),
			Steps: after(
				Change(image, URL(nowhere+stays)), awaitVolume(),
				Change(image, URL(nowhere+"old")), AwaitSucceeded(image),
			),
		},
		{
			Name: "update-in-use", Ends: succeeded(1),
			Steps: after(
				Use(image, 1), AwaitProtected(image, true),
				Change(image, URL(nowhere+"new")), AwaitSucceeded(image),
			),
		},
		{Name: "request", Steps: after(Request(image, "again"), AwaitSucceeded(image)), Ends: succeeded(1)},
		{
			Name: "drop-volume", Ends: map[string]End{image: {Phase: otv1alpha1.PhaseSucceeded, Attempts: 1, NoVolume: true}},
			Steps: after(Change(image, noVolume), awaitGoneVolume()),
		},
	}
}

// Healing are the stories of images that lose a part after they have succeeded.
func Healing() []Story {
	lose := func(name string, kind otv1alpha1.LossKind, losses int32) Story {
		return Story{
			Name: "heal-" + name, Ends: map[string]End{image: {Phase: otv1alpha1.PhaseSucceeded, Attempts: 1, Losses: losses}},
			Steps: []Step{Create(image, nowhere+"disk"), AwaitSucceeded(image), Lose(image, kind), Await(image, "healed", healed)},
		}
	}
	return []Story{
		lose("snapshot", otv1alpha1.LostSnapshot, 0),
		{
			// The snapshotter makes the content anew by itself. Where it is quicker than the operator, that is no loss.
			Name: "heal-content", Ends: succeeded(1), AnyWay: true,
			Steps: []Step{Create(image, nowhere+"disk"), AwaitSucceeded(image), Lose(image, otv1alpha1.LostContent), awaitContent(image)},
		},
		lose("volume", otv1alpha1.LostDataVolume, 1),
		lose("claim", otv1alpha1.LostClaim, 1),
		{
			Name: "keep-no-volume", Steps: []Step{Create(image, nowhere+"disk", noVolume), awaitGoneVolume()},
			Ends: map[string]End{image: {Phase: otv1alpha1.PhaseSucceeded, Attempts: 1, NoVolume: true}},
		},
		{
			Name: "heal-without-volume", Ends: map[string]End{image: {Phase: otv1alpha1.PhaseSucceeded, Attempts: 1, Losses: 1, NoVolume: true}},
			Steps: []Step{
				Create(image, nowhere+"disk", noVolume), awaitGoneVolume(),
				Lose(image, otv1alpha1.LostSnapshot), Await(image, "healed", healed), awaitGoneVolume(),
			},
		},
	}
}
