package lab

import (
	"context"
	"strings"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
)

// download makes a step that creates an image of a file that is really served, with its checksum.
func download(name string, mods ...func(*otv1alpha1.VMDiskImage)) Step {
	return Step{Name: "serve and create " + name, Do: func(ctx context.Context, s *Scene) error {
		path, checksum := s.Serve(s.Namespace + "-" + name)
		checked := func(image *otv1alpha1.VMDiskImage) { image.Spec.Checksum = checksum }
		return Create(name, path, append([]func(*otv1alpha1.VMDiskImage){checked}, mods...)...).Do(ctx, s)
	}}
}

func once(name string) map[string]int { return map[string]int{"/ok/%s-" + name: 1} }

// Imports are stories with pods and downloads.
func Imports() []Story {
	wrong := func(image *otv1alpha1.VMDiskImage) { image.Spec.Checksum = "sha256:" + strings.Repeat("0", 64) }
	return []Story{
		{
			Name: "success", Steps: []Step{download("good")}, Downloads: once("good"),
			Ends: map[string]End{"good": {Phase: otv1alpha1.PhaseSucceeded, Attempts: 1}},
		},
		{
			Name: "retry", Steps: []Step{download(firstFails)}, Downloads: once(firstFails),
			Ends: map[string]End{firstFails: {Phase: otv1alpha1.PhaseSucceeded, Attempts: 2}},
		},
		{
			Name: "not-found", Steps: []Step{Create("gone", "/status/404/%s")},
			Ends: map[string]End{"gone": {Phase: otv1alpha1.PhaseFailed, Attempts: 2, Reason: otv1alpha1.FailureSourceNotFound}},
		},
		{
			Name: "wrong-checksum", Steps: []Step{download("wrong", wrong)}, Downloads: once("wrong"),
			Ends: map[string]End{"wrong": {Phase: otv1alpha1.PhaseFailed, Attempts: 1, Reason: otv1alpha1.FailureChecksumMismatch}},
		},
	}
}
