package wsfault

import (
	"context"
	"fmt"
	"sort"
	"strings"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/fault/lab"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/pelotech/open-terrain/e2e/invariant"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// image of all stories, in a namespace of the scene's own that is also the targetNamespace of those that have one.
const image = "golden"

// scene is where a story is told.
type scene struct {
	*lab.World
	// name of the namespace, and what the names of workspaces begin with.
	name string
	// after is the revision of the beginning; since the one after which the story looks for what comes next.
	after, since int64
	// seen are UIDs that steps have noted for later ones.
	seen map[string]string
}

// open makes the namespace, and an object that is none of the operator's business.
func open(ctx context.Context, w *lab.World, name string) (*scene, error) {
	before, err := w.Recorder.Sync(ctx)
	if err != nil {
		return nil, err
	}
	s := &scene{World: w, name: name, after: before, since: before, seen: map[string]string{}}
	if err := s.Namespace(ctx, name); err != nil {
		return nil, err
	}
	return s, s.Client.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name, Name: first, Labels: map[string]string{otv1alpha1.LabelWorkspaceEntry: first},
			Annotations: map[string]string{invariant.AnnotationBystander: "true"},
		},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}},
	})
}

// tell goes through the steps.
func (s *scene) tell(ctx context.Context, steps []step) error {
	for i, step := range steps {
		if err := step.do(ctx, s); err != nil {
			return fmt.Errorf("step %d, %s: %w", i+1, step.name, err)
		}
	}
	return nil
}

// workspace is the name of one of the scene's.
func (s *scene) workspace(name string) string { return s.name + "-" + name }

// events of the scene: of its workspaces, in their namespaces and in its own, and the slots.
func (s *scene) events() []history.Event {
	all := s.Recorder.All()
	start := sort.Search(len(all), func(i int) bool { return all[i].Revision > s.after })
	var seen []history.Event
	for _, e := range all[start:] {
		if s.concerns(e) {
			seen = append(seen, e)
		}
	}
	return seen
}

func (s *scene) concerns(e history.Event) bool {
	own := e.Namespace == s.name || strings.HasPrefix(e.Namespace, "ws-"+s.name+"-")
	switch e.Resource {
	case "namespaces":
		return e.Name == s.name || strings.HasPrefix(e.Name, "ws-"+s.name+"-")
	case "workspaces":
		return strings.HasPrefix(e.Name, s.name+"-")
	case "leases":
		return strings.HasPrefix(e.Name, otv1alpha1.WorkspaceSlotPrefix)
	}
	return own
}

// await an event of the scene.
func (s *scene) await(ctx context.Context, match func(history.Event) bool) error {
	e, err := s.Recorder.Wait(ctx, s.since, func(e history.Event) bool { return s.concerns(e) && match(e) })
	if err == nil {
		s.since = e.Revision
	}
	return err
}

// excerpt is the end of the history, for those who look for a cause.
func (s *scene) excerpt() string {
	const most = 80
	var lines []string
	for _, e := range s.events() {
		line := invariant.Line(e)
		if ws, ok := history.As[*otv1alpha1.Workspace](e); ok {
			line += fmt.Sprintf(": phase=%s %q finalizers=%v", ws.Status.Phase, ws.Status.Message, ws.Finalizers)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}

// deleteAll workspaces of the scene, and its image.
func (s *scene) deleteAll(ctx context.Context) error {
	all := &otv1alpha1.WorkspaceList{}
	if err := s.Client.List(ctx, all); err != nil {
		return err
	}
	for i := range all.Items {
		if strings.HasPrefix(all.Items[i].Name, s.name+"-") {
			if err := s.Client.Delete(ctx, &all.Items[i]); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	return untilLet(ctx, func() error {
		return client.IgnoreNotFound(s.Client.Delete(ctx, lab.Image(s.name, image, "")))
	})
}

// untilLet tries something until the API server lets it pass.
func untilLet(ctx context.Context, do func() error) error {
	for {
		err := do()
		if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || ctx.Err() != nil {
			return err
		}
		pause(ctx)
	}
}
