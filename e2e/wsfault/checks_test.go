package wsfault

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/faultproxy"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/pelotech/open-terrain/e2e/invariant"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// latest is the object of an event, or what it was before it was deleted.
func latest(e history.Event) client.Object {
	if e.Deleted {
		return e.Prev
	}
	return e.Object
}

// spaceOf is the UID of the workspace that an object belongs to, by its label.
func spaceOf(o client.Object) string {
	if o == nil {
		return ""
	}
	return o.GetLabels()[otv1alpha1.LabelWorkspaceUID]
}

// isolated says whether an object runs, or makes something run.
func isolated(o client.Object) bool {
	switch o.(type) {
	case *otv1alpha1.VirtualMachine, *appsv1.Deployment, *corev1.Pod:
		return true
	}
	return false
}

// isPolicy of a workspace: the one that isolates.
func isPolicy(e history.Event) bool {
	_, is := latest(e).(*networkingv1.NetworkPolicy)
	return is && e.Name != otv1alpha1.WorkspaceDisksPolicy
}

// policyFirst: nothing is made that the policy isolates while the policy is not there. What controllers make of a Deployment
// after somebody has deleted the policy is not the operator's doing.
func policyFirst(events []history.Event) (broken []string) {
	there := map[string]bool{}
	for _, e := range events {
		o := latest(e)
		switch {
		case isPolicy(e):
			there[spaceOf(o)] = !e.Deleted
		case e.Created() && isolated(o) && spaceOf(o) != "" && !there[spaceOf(o)]:
			if _, pod := o.(*corev1.Pod); !pod {
				broken = append(broken, "made without its policy: "+invariant.Line(e))
			}
		}
	}
	return broken
}

// policyLast: the policy of a workspace that is being deleted goes after all that it isolates.
func policyLast(events []history.Event) (broken []string) {
	running, going := map[history.Key]string{}, map[string]bool{}
	for _, e := range events {
		o := latest(e)
		if ws, is := o.(*otv1alpha1.Workspace); is {
			going[string(ws.UID)] = ws.DeletionTimestamp != nil
		}
		if isolated(o) {
			delete(running, e.Key)
			if !e.Deleted {
				running[e.Key] = spaceOf(o)
			}
		}
		if !isPolicy(e) || !e.Deleted || !going[spaceOf(o)] {
			continue
		}
		for key, uid := range running {
			if uid == spaceOf(o) {
				broken = append(broken, fmt.Sprintf("the policy goes while %s %s is there: %s", key.Resource, key.Name, invariant.Line(e)))
			}
		}
	}
	return broken
}

// oneAtATime: the policy has room for one, so that of the workspaces that were admitted and have not been provisioned there is
// never more than one, but for those that are being deleted, and each has its slot when it says that it is admitted.
func oneAtATime(events []history.Event) (broken []string) {
	admitted, holder := map[types.UID]bool{}, ""
	for _, e := range events {
		switch o := latest(e).(type) {
		case *coordinationv1.Lease:
			holder = ptr.Deref(o.Spec.HolderIdentity, "")
			if e.Deleted {
				holder = ""
			}
		case *otv1alpha1.Workspace:
			now := !e.Deleted && o.DeletionTimestamp == nil && o.Status.AdmittedAt != nil && o.Status.ProvisionedAt == nil
			if now && !admitted[o.UID] && !strings.HasSuffix(holder, string(o.UID)) {
				broken = append(broken, fmt.Sprintf("admitted, and the slot is held by %q: %s", holder, invariant.Line(e)))
			}
			delete(admitted, o.UID)
			if now {
				admitted[o.UID] = true
			}
			if len(admitted) > 1 {
				broken = append(broken, "more than one is admitted: "+invariant.Line(e))
			}
		}
	}
	return broken
}

// bystanders are not touched.
func bystanders(events []history.Event) (broken []string) {
	for _, e := range events {
		if e.Prev != nil && e.Prev.GetAnnotations()[invariant.AnnotationBystander] != "" {
			broken = append(broken, "it is nobody's business: "+invariant.Line(e))
		}
	}
	return broken
}

// handsOff: the operator deletes nothing but what a workspace controls, and insists on its UID.
func handsOff(events []history.Event, writes []faultproxy.Request) (broken []string) {
	ours := map[types.UID]bool{}
	for _, e := range events {
		for _, o := range []client.Object{e.Object, e.Prev} {
			if o == nil {
				continue
			}
			if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == "Workspace" {
				ours[o.GetUID()] = true
			}
		}
	}
	for _, w := range writes {
		if strings.HasPrefix(w.Verb, "delete") && w.Resource != "leases" && !ours[w.UID] {
			broken = append(broken, fmt.Sprintf("it asks to delete %s %s/%s with the UID %q, which is no workspace's", w.Resource, w.Namespace, w.Name, w.UID))
		}
	}
	return broken
}

// orphans are what is left when all workspaces have been deleted.
func orphans(events []history.Event) (left []string) {
	s := stateOf(events)
	for _, key := range slices.SortedFunc(maps.Keys(s), func(a, b history.Key) int { return strings.Compare(a.Resource+a.Name, b.Resource+b.Name) }) {
		o := s[key]
		switch {
		case key.Resource == "workspaces", spaceOf(o) != "", strings.HasPrefix(key.Namespace, "ws-"), key.Resource == "namespaces" && strings.HasPrefix(key.Name, "ws-"):
			left = append(left, fmt.Sprintf("%s %s/%s is left", key.Resource, key.Namespace, key.Name))
		case key.Resource == "leases":
			lease, is := o.(*coordinationv1.Lease)
			if is && ptr.Deref(lease.Spec.HolderIdentity, "") != "" {
				left = append(left, key.Name+" is held by "+*lease.Spec.HolderIdentity)
			}
		}
	}
	return left
}

// state is what exists at the end of events.
type state map[history.Key]client.Object

func stateOf(events []history.Event) state {
	s := state{}
	for _, e := range events {
		delete(s, e.Key)
		if !e.Deleted {
			s[e.Key] = e.Object
		}
	}
	return s
}

// differs says which workspace is not as it should be in the end, or nothing. A phase that is empty means that it is gone.
func (s state) differs(ends map[string]otv1alpha1.WorkspacePhase, scene string) string {
	for name, phase := range ends {
		key := history.Key{Group: otv1alpha1.SchemeGroupVersion.Group, Resource: "workspaces", Name: scene + "-" + name}
		ws, is := s[key].(*otv1alpha1.Workspace)
		switch {
		case phase == "" && is:
			return name + " is not gone"
		case phase == "":
		case !is:
			return name + " is not there"
		case ws.Status.Phase != phase, ws.Status.ObservedGeneration != ws.Generation:
			return fmt.Sprintf("%s is %s, not %s: %s", name, ws.Status.Phase, phase, ws.Status.Message)
		}
	}
	return ""
}

// hash of a workspace's name and an entry's, in names and labels.
var hash = regexp.MustCompile(`\b[0-9a-f]{8}\b`)

// masked are the workspaces' statuses and the specs of their children, without what must differ from one telling to the next.
func (s state) masked(scene string) map[string]string {
	masked := map[string]string{}
	for key, o := range s {
		var what any
		switch o := o.(type) {
		case *otv1alpha1.Workspace:
			what = []any{o.Status.Phase, o.Status.VirtualMachines, o.Status.Containers, o.Status.Isolated, o.Status.Message, o.Finalizers}
		case *otv1alpha1.VirtualMachine:
			what = o.Spec
		case *appsv1.Deployment:
			what = o.Spec
		case *networkingv1.NetworkPolicy:
			what = o.Spec
		case *corev1.Service:
			what = o.Spec.Ports
		default:
			continue
		}
		text, err := json.Marshal(what)
		if err != nil {
			text = []byte(err.Error())
		}
		mask := strings.NewReplacer(scene, "SCENE", spaceOf(o), "UID")
		if spaceOf(o) == "" {
			mask = strings.NewReplacer(scene, "SCENE")
		}
		masked[hash.ReplaceAllString(mask.Replace(key.Resource+" "+key.Name), "HASH")] = hash.ReplaceAllString(mask.Replace(string(text)), "HASH")
	}
	return masked
}

func differences(is, was map[string]string) (lines []string) {
	for key := range was {
		if _, there := is[key]; !there {
			lines = append(lines, "missing in the end: "+key)
		}
	}
	for key, text := range is {
		if former, there := was[key]; !there {
			lines = append(lines, "too much in the end: "+key)
		} else if former != text {
			lines = append(lines, fmt.Sprintf("different in the end: %s\n  is  %s\n  was %s", key, text, former))
		}
	}
	return lines
}
