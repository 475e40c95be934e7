package ledger

import (
	"maps"
	"slices"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	"k8s.io/apimachinery/pkg/types"
)

// Space is a Workspace as the history has it.
type Space struct {
	Name string
	UID  types.UID
	// Namespace of its children.
	Namespace string
	// Created is the revision of its creation: lower is earlier.
	Created int64
	Status  otv1alpha1.WorkspaceStatus
}

// Ready says that its phase is Ready.
func (s *Space) Ready() bool { return s.Status.Phase == otv1alpha1.WorkspaceReady }

func (l *Ledger) space(e history.Event, o *otv1alpha1.Workspace) {
	if e.Deleted {
		delete(l.spaces, o.UID)
		return
	}
	known := l.spaces[o.UID]
	if known == nil {
		known = &Space{Name: o.Name, UID: o.UID, Namespace: o.ChildNamespace(), Created: e.Revision}
		l.spaces[o.UID] = known
	}
	known.Status = o.Status
}

// Spaces are the workspaces in the order of their creation.
func (l *Ledger) Spaces() []*Space {
	return slices.SortedFunc(maps.Values(l.spaces), func(a, b *Space) int { return int(a.Created - b.Created) })
}

// Space is the workspace of that name, or nil.
func (l *Ledger) Space(name string) *Space {
	for _, space := range l.spaces {
		if space.Name == name {
			return space
		}
	}
	return nil
}
