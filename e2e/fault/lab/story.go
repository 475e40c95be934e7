package lab

import (
	"context"
	"fmt"
	"strings"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Story is what a user does, and how it ends, whatever goes wrong meanwhile.
type Story struct {
	Name string
	// Policy besides that of all stories.
	Policy map[string]string
	// Steps in their order.
	Steps []Step
	// Ends of the images by their name.
	Ends map[string]End
	// Downloads is how many whole downloads of a path at the server are allowed; %s in it is the story's namespace.
	Downloads map[string]int
	// AnyWay compares the end with that of the reference, and not the way to it: somebody else may be quicker.
	AnyWay bool
}

// End of an image. The zero value means that it is gone.
type End struct {
	Phase    otv1alpha1.Phase
	Attempts int32
	// Losses are those that took a new sync.
	Losses int32
	// Reason of the last failure; empty is not looked at.
	Reason otv1alpha1.FailureReason
	// NoVolume says that the artifact is the snapshot alone.
	NoVolume bool
}

// Step of a story. It returns when it is done, and an error when it cannot be.
type Step struct {
	Name string
	Do   func(context.Context, *Scene) error
}

// Scene is where a story is told.
type Scene struct {
	*World
	// Namespace of the story's images.
	Namespace string
	// Afterwards, when set, is done once the story has been judged: for tests of what is judged later.
	Afterwards func() error
	// since is the revision after which the story looks for what comes next.
	since int64
	// lost is the UID of the content that a step has deleted.
	lost types.UID
	// bystanders have been placed already.
	bystanders bool
}

// tell goes through the steps.
func (s *Scene) tell(ctx context.Context, steps []Step) error {
	for i, step := range steps {
		if err := step.Do(ctx, s); err != nil {
			return fmt.Errorf("step %d, %s: %w", i+1, step.Name, err)
		}
	}
	return nil
}

// Image reads one of the story's images.
func (s *Scene) Image(ctx context.Context, name string) (*otv1alpha1.VMDiskImage, error) {
	image := &otv1alpha1.VMDiskImage{}
	return image, s.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, image)
}

// verify looks at how the story ended.
func (s *Scene) verify(ctx context.Context, story Story) error {
	for name, end := range story.Ends {
		image, err := s.Image(ctx, name)
		if end == (End{}) {
			if client.IgnoreNotFound(err) != nil || err == nil {
				return fmt.Errorf("%s is not gone: %w", name, err)
			}
			continue
		}
		if err != nil {
			return err
		}
		if wrong := end.differs(image); wrong != "" {
			return fmt.Errorf("%s ends wrong: %s: %s", name, wrong, image.Status.Message)
		}
	}
	for path, most := range story.Downloads {
		path = strings.ReplaceAll(path, "%s", s.Namespace)
		if stats := s.Sim.Images.Of(path); stats.Complete > most {
			return fmt.Errorf("%d downloads of %s, and at most %d are allowed", stats.Complete, path, most)
		}
	}
	return nil
}

func (e End) differs(image *otv1alpha1.VMDiskImage) string {
	st := image.Status
	switch {
	case st.Phase != e.Phase:
		return fmt.Sprintf("it is %s, not %s", st.Phase, e.Phase)
	case st.Attempts != e.Attempts:
		return fmt.Sprintf("%d attempts, not %d", st.Attempts, e.Attempts)
	case st.Losses != e.Losses:
		return fmt.Sprintf("%d losses, not %d", st.Losses, e.Losses)
	case e.Reason != "" && (st.LastFailure == nil || st.LastFailure.Reason != e.Reason):
		return fmt.Sprintf("the last failure is %v, not %s", st.LastFailure, e.Reason)
	case e.Phase == otv1alpha1.PhaseSucceeded:
		return e.artifact(&st)
	}
	return ""
}

func (e End) artifact(st *otv1alpha1.VMDiskImageStatus) string {
	switch {
	case st.Artifact == nil || st.Artifact.Revision != st.Revision:
		return "its artifact is not of its revision"
	case (st.Artifact.DataVolume == "") != e.NoVolume:
		return fmt.Sprintf("its artifact's DataVolume is %q", st.Artifact.DataVolume)
	}
	return ""
}
