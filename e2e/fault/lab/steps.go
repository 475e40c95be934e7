package lab

import (
	"context"
	"fmt"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// act makes a step that changes something: what comes next is looked for from before it on.
func act(name string, do func(context.Context, *Scene) error) Step {
	return Step{Name: name, Do: func(ctx context.Context, s *Scene) (err error) {
		if s.since, err = s.Recorder.Sync(ctx); err != nil {
			return err
		}
		return do(ctx, s)
	}}
}

// Create an image that is downloaded from a URL, which may have %s for the story's namespace.
func Create(name, url string, mods ...func(*otv1alpha1.VMDiskImage)) Step {
	return act("create "+name, func(ctx context.Context, s *Scene) error {
		image := Image(s.Namespace, name, s.url(url))
		for _, mod := range mods {
			mod(image)
		}
		if err := s.Client.Create(ctx, image); err != nil {
			return err
		}
		return s.placeBystanders(ctx, image)
	})
}

// Change an image's spec or metadata.
func Change(name string, change func(*otv1alpha1.VMDiskImage)) Step {
	return act("change "+name, func(ctx context.Context, s *Scene) error {
		image, err := s.Image(ctx, name)
		if err != nil {
			return err
		}
		before := image.DeepCopy()
		change(image)
		return s.Client.Patch(ctx, image, client.MergeFrom(before))
	})
}

// URL changes where the image comes from.
func URL(url string) func(*otv1alpha1.VMDiskImage) {
	return func(image *otv1alpha1.VMDiskImage) { image.Spec.URL = url }
}

// Request a sync by the annotation.
func Request(name, value string) Step {
	return Change(name, func(image *otv1alpha1.VMDiskImage) {
		metav1.SetMetaDataAnnotation(&image.ObjectMeta, otv1alpha1.AnnotationSyncRequestedAt, value)
	})
}

// Delete an image.
func Delete(name string) Step {
	return act("delete "+name, func(ctx context.Context, s *Scene) error {
		return s.Client.Delete(ctx, Image(s.Namespace, name, ""))
	})
}

// Policy changes the policy: to that of the story, and these keys.
func Policy(data map[string]string) Step {
	return act(fmt.Sprintf("policy %v", data), func(ctx context.Context, s *Scene) error {
		return s.SetPolicy(ctx, merged(BasePolicy(), data))
	})
}

// Await an image that is, or comes to be, as described.
func Await(name, what string, is func(*otv1alpha1.VMDiskImage) bool) Step {
	return Step{Name: "await " + name + " " + what, Do: func(ctx context.Context, s *Scene) error {
		return s.await(ctx, func(e history.Event) bool {
			image, ok := history.As[*otv1alpha1.VMDiskImage](e)
			return ok && image.Name == name && is(image)
		})
	}}
}

func (s *Scene) await(ctx context.Context, match func(history.Event) bool) error {
	e, err := s.Recorder.Wait(ctx, s.since, func(e history.Event) bool { return e.Namespace == s.Namespace && match(e) })
	if err == nil {
		s.since = e.Revision
	}
	return err
}

// AwaitPhase of an image.
func AwaitPhase(name string, phase otv1alpha1.Phase) Step {
	return Await(name, string(phase), func(image *otv1alpha1.VMDiskImage) bool { return image.Status.Phase == phase })
}

// AwaitSucceeded with what the spec asks for.
func AwaitSucceeded(name string) Step {
	return Await(name, "Succeeded", func(image *otv1alpha1.VMDiskImage) bool {
		return image.Status.Phase == otv1alpha1.PhaseSucceeded && image.Status.Revision == otv1alpha1.RevisionOf(image)
	})
}

// AwaitGone waits until an object is no more.
func AwaitGone(resource, name string) Step {
	return Step{Name: "await the end of " + resource + " " + name, Do: func(ctx context.Context, s *Scene) error {
		return s.await(ctx, func(e history.Event) bool { return e.Deleted && e.Resource == resource && e.Name == name })
	}}
}

// Lose deletes a part of an image's artifact, as a careless user does.
func Lose(name string, kind otv1alpha1.LossKind) Step {
	return act(fmt.Sprintf("lose the %s of %s", kind, name), func(ctx context.Context, s *Scene) error {
		image, err := s.Image(ctx, name)
		if err != nil {
			return err
		}
		part, err := s.part(ctx, image, kind)
		if err != nil {
			return err
		}
		if kind == otv1alpha1.LostClaim {
			// An import that is over before the operator is back is no loss: nobody can tell.
			dv := &cdiv1.DataVolume{}
			if err := s.Client.Get(ctx, client.ObjectKeyFromObject(part), dv); err != nil {
				return err
			}
			s.again.Store(dv.UID, true)
		}
		if kind == otv1alpha1.LostContent {
			if err := s.Client.Get(ctx, client.ObjectKeyFromObject(part), part); err != nil {
				return err
			}
			s.lost = part.GetUID()
		}
		return s.Client.Delete(ctx, part)
	})
}

// Refused is a step that the API server must not let pass.
func Refused(step Step) Step {
	return Step{Name: step.Name + ", which is refused", Do: func(ctx context.Context, s *Scene) error {
		err := step.Do(ctx, s)
		if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
			return nil
		}
		return fmt.Errorf("it was not refused: %w", err)
	}}
}

// awaitVolume waits until there is a DataVolume of an image that downloads.
func awaitVolume() Step {
	return Step{Name: "await the download", Do: func(ctx context.Context, s *Scene) error {
		return s.await(ctx, func(e history.Event) bool {
			dv, ok := history.As[*cdiv1.DataVolume](e)
			return ok && metav1.GetControllerOf(dv) != nil && dv.Status.Phase == cdiv1.ImportInProgress
		})
	}}
}

// awaitContent waits until the image's snapshot has another content than the one that was lost. Who makes it is not always told
// by an event of the snapshot: the snapshotter may be back before anybody has missed it.
func awaitContent(name string) Step {
	return Step{Name: "await another content", Do: func(ctx context.Context, s *Scene) error {
		return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			image, err := s.Image(ctx, name)
			if err != nil || image.Status.Artifact == nil { // its snapshot is lost, and is being taken again
				return false, err
			}
			content, err := s.part(ctx, image, otv1alpha1.LostContent)
			if err == nil && content.GetName() != "" {
				err = s.Client.Get(ctx, client.ObjectKeyFromObject(content), content)
			}
			there := err == nil && content.GetUID() != "" && content.GetUID() != s.lost && content.GetDeletionTimestamp() == nil
			return there, client.IgnoreNotFound(err)
		})
	}}
}

// awaitSnapshot waits until there is a VolumeSnapshot of an image: status says Snapshotting before.
func awaitSnapshot() Step {
	return Step{Name: "await the snapshot", Do: func(ctx context.Context, s *Scene) error {
		return s.await(ctx, func(e history.Event) bool {
			return e.Resource == "volumesnapshots" && e.Created() && metav1.GetControllerOf(e.Object) != nil
		})
	}}
}

// awaitGoneVolume waits until the DataVolume of an image is deleted.
func awaitGoneVolume() Step {
	return Step{Name: "await the end of the DataVolume", Do: func(ctx context.Context, s *Scene) error {
		return s.await(ctx, func(e history.Event) bool {
			return e.Resource == "datavolumes" && e.Deleted && metav1.GetControllerOf(e.Prev) != nil
		})
	}}
}
