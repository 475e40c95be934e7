package lab

import (
	"context"
	"slices"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// soon is a time to live that is over within a story. Status has whole seconds.
const soon = time.Second

func shortLived(i *otv1alpha1.VMDiskImage) { i.Spec.UnusedTTL = &metav1.Duration{Duration: soon} }

// Using are the stories of images that virtual machines use, and of those that nobody uses.
func Using() []Story {
	made := []Step{Create(image, nowhere+"disk"), AwaitSucceeded(image)}
	after := func(steps ...Step) []Step { return append(slices.Clip(made), steps...) }
	return []Story{
		{
			Name: "use", Ends: succeeded(1),
			Steps: after(Use(image, 2), AwaitProtected(image, true), Use(image, 0), AwaitProtected(image, false)),
		},
		{
			Name: "delete-in-use", Ends: gone(),
			Steps: after(
				Use(image, 1), AwaitProtected(image, true), Refused(Delete(image)),
				Use(image, 0), AwaitProtected(image, false), Delete(image), AwaitGone("vmdiskimages", image),
			),
		},
		{
			Name: "prune", Ends: gone(),
			Steps: []Step{Create(image, nowhere+"disk", shortLived), AwaitGone("vmdiskimages", image)},
		},
		{
			Name: "prune-by-policy", Ends: gone(),
			Steps: after(Policy(map[string]string{"unusedImageTTL": soon.String()}), AwaitGone("vmdiskimages", image)),
		},
		{
			Name: "prune-dry-run", Ends: succeeded(1),
			Steps: []Step{
				Create(image, nowhere+"disk", shortLived, func(i *otv1alpha1.VMDiskImage) {
					metav1.SetMetaDataAnnotation(&i.ObjectMeta, otv1alpha1.AnnotationDryRun, "true")
				}),
				AwaitSucceeded(image), Pass(3 * soon),
			},
		},
		{
			Name: "use-races-prune", Ends: gone(),
			Steps: []Step{Create(image, nowhere+"disk", shortLived), AwaitSucceeded(image), Pass(soon), useIfThere(image), AwaitAbsent(image)},
		},
	}
}

// Held are the stories of images that are deleted while they are in use, where no policy refuses that: the finalizer holds.
func Held() []Story {
	return []Story{
		{
			Name: "held-succeeded", Ends: gone(),
			Steps: []Step{
				Create(image, nowhere+"disk"), AwaitSucceeded(image), Use(image, 1), AwaitProtected(image, true),
				Delete(image), Pass(settled), Use(image, 0), AwaitGone("vmdiskimages", image),
			},
		},
		{
			Name: "held-syncing", Ends: gone(),
			Steps: []Step{
				Create(image, nowhere+stays), awaitVolume(), Use(image, 1), AwaitProtected(image, true),
				Delete(image), awaitGoneVolume(), Use(image, 0), AwaitGone("vmdiskimages", image),
			},
		},
	}
}

// Pass lets time go by.
func Pass(d time.Duration) Step {
	return Step{Name: "let " + d.String() + " pass", Do: func(ctx context.Context, _ *Scene) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
			return nil
		}
	}}
}

// useIfThere uses an image and lets go of it, unless it was pruned a moment before.
func useIfThere(name string) Step {
	return Step{Name: "use " + name + " if it is there", Do: func(ctx context.Context, s *Scene) error {
		err := s.use(ctx, name, 1)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return s.tell(ctx, []Step{Pass(2 * soon), Use(name, 0)})
	}}
}

// AwaitAbsent waits until an image is not there, whenever it went.
func AwaitAbsent(name string) Step {
	return Step{Name: "await the absence of " + name, Do: func(ctx context.Context, s *Scene) error {
		for {
			_, err := s.Image(ctx, name)
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := Pass(20*time.Millisecond).Do(ctx, s); err != nil {
				return err
			}
		}
	}}
}
