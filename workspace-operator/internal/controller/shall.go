package controller

import (
	"context"
	"maps"
	"slices"

	"github.com/pelotech/open-terrain/workspace-operator/internal/desired"
	"github.com/pelotech/open-terrain/workspace-operator/internal/plan"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// shall is what the children of a Workspace shall be. To build that costs more than the rest of a look at a workspace that is
// settled, and it changes only with the spec and with the friends.
type shall struct {
	generation int64
	friends    []types.UID // in the order of their names
	children   []*unstructured.Unstructured
}

func (r *Workspaces) rememberShall(_ context.Context, _ look, s *plan.Snapshot) error {
	var friends []types.UID
	for _, name := range slices.Sorted(maps.Keys(s.Friends)) {
		friends = append(friends, s.Friends[name].UID)
	}
	known, ok := r.shall.of(s.Workspace)
	if !ok || known.generation != s.Workspace.Generation || !slices.Equal(known.friends, friends) {
		known = shall{s.Workspace.Generation, friends, desired.Children(s.Workspace, s.Friends, r.settings.Desired)}
		r.shall.note(s.Workspace, known)
	}
	s.Shall = known.children
	return nil
}
