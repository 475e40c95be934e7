package wsscenario

import (
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	networkingv1 "k8s.io/api/networking/v1"
)

// friends: whom a workspace lets in is a workspace, with its UID, and nobody while there is none.
func friends(t *testing.T, w *world) {
	friend := workspace()
	ws := w.create(t, workspace(func(ws *v1alpha1.Workspace) {
		ws.Spec.Network = &v1alpha1.WorkspaceNetwork{AllowFrom: []v1alpha1.WorkspaceFriend{{Workspace: friend.Name}}}
	}))
	w.becomesReady(t, ws)
	policy := &networkingv1.NetworkPolicy{}
	policy.Namespace, policy.Name = ws.ChildNamespace(), v1alpha1.WorkspacePolicyName(ws)
	nobody := func() bool { return len(policy.Spec.Ingress) == 1 }
	w.eventually(t, policy, "lets nobody in", nobody)

	first := friend.DeepCopy()
	w.becomesReady(t, w.create(t, first))
	w.eventually(t, policy, "lets its friend in", func() bool { return len(policy.Spec.Ingress) == 2 })
	from := policy.Spec.Ingress[1].From[0]
	assert.Equal(t, first.ChildNamespace(), from.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"])
	assert.Equal(t, string(first.UID), from.PodSelector.MatchLabels[v1alpha1.LabelWorkspaceUID])
	w.remove(t, first)
	w.eventually(t, policy, "lets nobody in again", nobody)
	w.remove(t, ws)
}
