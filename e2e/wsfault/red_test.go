package wsfault

import (
	"strings"
	"testing"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/faultproxy"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/pelotech/open-terrain/e2e/invariant"
	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// written is a history that is written by hand.
type written struct{ events []history.Event }

func (w *written) put(resource string, o client.Object) *written {
	return w.add(history.Event{Key: keyOf(resource, o), Object: o})
}

func (w *written) change(resource string, o client.Object) *written {
	return w.add(history.Event{Key: keyOf(resource, o), Object: o, Prev: o})
}

func (w *written) remove(resource string, o client.Object) *written {
	return w.add(history.Event{Key: keyOf(resource, o), Prev: o, Deleted: true})
}

func (w *written) add(e history.Event) *written {
	w.events = append(w.events, e)
	return w
}

func keyOf(resource string, o client.Object) history.Key {
	return history.Key{Resource: resource, Namespace: o.GetNamespace(), Name: o.GetName()}
}

func inSpace(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ws-a", Name: name, UID: types.UID(name), Labels: map[string]string{otv1alpha1.LabelWorkspaceUID: "a"}}
}

func spaceAt(name string, admitted, going bool) *otv1alpha1.Workspace {
	ws := &otv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	if admitted {
		ws.Status.AdmittedAt = new(metav1.Now())
	}
	if going {
		ws.DeletionTimestamp = new(metav1.Now())
	}
	return ws
}

func slotOf(uid string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "workspace-slot-0"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: new("/x/" + uid)}}
}

func TestChecksAreRedOnABadHistory(t *testing.T) {
	policy := &networkingv1.NetworkPolicy{ObjectMeta: inSpace("workspace")}
	machine := &otv1alpha1.VirtualMachine{ObjectMeta: inSpace("database")}
	machine.OwnerReferences = []metav1.OwnerReference{{Kind: "Workspace", UID: "a", Controller: new(true)}}
	pod := &corev1.Pod{ObjectMeta: inSpace("web-1")}
	bystander := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "b", Annotations: map[string]string{invariant.AnnotationBystander: "true"}}}
	deletes := func(uid types.UID) func([]history.Event) []string {
		return func(events []history.Event) []string {
			return handsOff(events, []faultproxy.Request{{Verb: "delete", Resource: "virtualmachines", UID: uid}})
		}
	}
	for name, c := range map[string]struct {
		check  func([]history.Event) []string
		events *written
		want   string // empty: it holds
	}{
		"the policy first":          {policyFirst, new(written).put("networkpolicies", policy).put("virtualmachines", machine), ""},
		"a machine before":          {policyFirst, new(written).put("virtualmachines", machine).put("networkpolicies", policy), "made without its policy"},
		"the policy last":           {policyLast, new(written).put("workspaces", spaceAt("a", true, true)).put("pods", pod).remove("pods", pod).remove("networkpolicies", policy), ""},
		"a pod that is still there": {policyLast, new(written).put("workspaces", spaceAt("a", true, true)).put("pods", pod).remove("networkpolicies", policy), "the policy goes while pods web-1"},
		"one at a time":             {oneAtATime, new(written).put("leases", slotOf("a")).put("workspaces", spaceAt("a", true, false)), ""},
		"admitted without a slot":   {oneAtATime, new(written).put("leases", slotOf("b")).put("workspaces", spaceAt("a", true, false)), "admitted, and the slot is held by"},
		"two that are admitted": {oneAtATime, new(written).put("leases", slotOf("a")).put("workspaces", spaceAt("a", true, false)).
			change("leases", slotOf("b")).put("workspaces", spaceAt("b", true, false)), "more than one is admitted"},
		"a bystander that changes": {bystanders, new(written).change("services", bystander), "nobody's business"},
		"a delete of its own":      {deletes("database"), new(written).put("virtualmachines", machine), ""},
		"a delete without a UID":   {deletes(""), new(written).put("virtualmachines", machine), "which is no workspace's"},
		"a delete of others":       {deletes("web-1"), new(written).put("pods", pod), "which is no workspace's"},
		"nothing left":             {orphans, new(written).put("pods", pod).remove("pods", pod), ""},
		"a pod that is left":       {orphans, new(written).put("pods", pod), "pods ws-a/web-1 is left"},
		"a slot that is held":      {orphans, new(written).put("leases", slotOf("a")), "workspace-slot-0 is held"},
	} {
		t.Run(name, func(t *testing.T) {
			broken := c.check(c.events.events)
			if c.want == "" {
				assert.Empty(t, broken)
				return
			}
			assert.Contains(t, strings.Join(broken, "\n"), c.want)
		})
	}
}
