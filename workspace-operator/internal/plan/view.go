package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/desired"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// view is what was read, beside what shall be.
type view struct {
	Snapshot
	set   Settings
	now   time.Time
	want  map[Child]*unstructured.Unstructured
	order []Child // of want: that in which they are made
}

func viewOf(s Snapshot, set Settings) view {
	v := view{Snapshot: s, set: set, want: map[Child]*unstructured.Unstructured{}}
	objects := s.Shall
	if objects == nil {
		objects = desired.Children(s.Workspace, s.Friends, set.Desired)
	}
	for _, object := range objects {
		child := Child{Kind(object.GetKind()), object.GetName()}
		v.want[child], v.order = object, append(v.order, child)
	}
	for i := range s.Workspace.Spec.VirtualMachines {
		v.keepImage(&s.Workspace.Spec.VirtualMachines[i])
	}
	return v
}

// keepImage has a machine keep the image that it was made with, where the entry does not want another: the operator's image
// namespace may be another one than it was, and a machine's image cannot be changed.
func (v view) keepImage(entry *v1alpha1.WorkspaceVirtualMachine) {
	child := v.child(VirtualMachine, entry.Name)
	vm, want := v.VirtualMachines[child.Name], v.want[child]
	if vm == nil || want == nil || otherImage(vm, entry, v.set) || entry.Image(v.set.Desired.ImageNamespace).Namespace == vm.ImageKey().Namespace {
		return
	}
	key, kept := vm.ImageKey(), want.DeepCopy()
	if spec, ok := kept.Object["spec"].(map[string]any); ok {
		spec["vmDiskImageRef"] = map[string]any{"namespace": key.Namespace, "name": key.Name}
	}
	v.want[child] = kept
}

// Wanted are the children as they shall be: what Apply applies.
func Wanted(s Snapshot, set Settings) map[Child]*unstructured.Unstructured {
	return viewOf(s, set).want
}

// Names are the children that the Workspace shall have, in the order in which they are made.
func Names(s Snapshot, set Settings) []Child { return viewOf(s, set).order }

// child of an entry.
func (v view) child(kind Kind, entry string) Child {
	return Child{kind, v1alpha1.WorkspaceChild(v.Workspace, entry)}
}

// all of a kind that are wanted.
func (v view) all(kind Kind) []Child {
	return slices.DeleteFunc(slices.Clone(v.order), func(c Child) bool { return c.Kind != kind })
}

// live is the object of that name, whoever's it is; nil when there is none.
func (v view) live(c Child) metav1.Object {
	switch c.Kind {
	case Namespace:
		return orNil(v.Namespace)
	case NetworkPolicy:
		return orNil(v.Policies[c.Name])
	case Service:
		return orNil(v.Services[c.Name])
	case VirtualMachine:
		return orNil(v.VirtualMachines[c.Name])
	case Deployment:
		return orNil(v.Deployments[c.Name])
	}
	return nil
}

// orNil is nil for a nil pointer.
func orNil[T any, P interface {
	*T
	metav1.Object
}](object P) metav1.Object {
	if object == nil {
		return nil
	}
	return object
}

// The same words before and after the write: another word would be another write of status.
const (
	beingMade    = "%s is being made"
	beingChanged = "%s is being changed"
)

// keep is the step that keeps a child as it shall be. What it has to say when it is so is asked for then. It is usable when it
// is as it shall be once the action is done.
func (v view) keep(c Child, says func() Verdict) step {
	live, it := v.live(c), subject(c)
	refusal, refusedIt := v.Refusals[c]
	apply := []Action{{Apply, c}}
	switch {
	case refusedIt:
		return step{Verdict: bad(weightOf(refusal.Reason), refusal.Reason, "The %s %s is refused: %s", c.Kind, c.Name, refusal.Message)}
	case live == nil:
		return step{Verdict: bad(Waits, pending(c.Kind), beingMade, it), actions: apply, usable: true}
	case !owned(v.Snapshot, live):
		return step{Verdict: bad(Final, v1alpha1.WorkspaceNameTaken, "The %s %s does not belong to this workspace: delete or rename it", c.Kind, c.Name)}
	case live.GetDeletionTimestamp() != nil:
		return step{Verdict: bad(Waits, pending(c.Kind), "%s was deleted, and is made again when it is gone", it)}
	case v.fixed(c, live):
		return step{Verdict: bad(Waits, pending(c.Kind), "%s is deleted, and made anew: it cannot be changed", it), actions: []Action{{Delete, c}}}
	case len(v.opened(c, live)) > 0:
		return step{
			Verdict: bad(Final, v1alpha1.WorkspaceRejected, "%s isolates nothing: whenever it is applied, somebody changes %s", it, strings.Join(v.opened(c, live), ", ")),
			actions: apply,
		}
	case v.drifted(c, live):
		return step{Verdict: bad(Waits, pending(c.Kind), beingChanged, it), actions: apply, usable: true}
	}
	return step{Verdict: says(), usable: true}
}

// subject is the child in a sentence about the entry, or about the workspace.
func subject(c Child) string {
	switch c.Kind {
	case VirtualMachine, Deployment:
		return "It"
	case Service:
		return "Its Service"
	}
	return "The " + string(c.Kind) + " " + c.Name
}

// pending is the reason of what is being made.
func pending(kind Kind) v1alpha1.WorkspaceReason {
	switch kind {
	case VirtualMachine:
		return v1alpha1.WorkspaceVirtualMachinePending
	case NetworkPolicy:
		return v1alpha1.WorkspacePoliciesPending
	case Namespace:
		return v1alpha1.WorkspaceNamespaceCreating
	}
	return v1alpha1.WorkspaceContainerStarting
}

// drifted says that the object is not as it shall be, but for fields that were applied in vain.
func (v view) drifted(c Child, live metav1.Object) bool {
	return slices.ContainsFunc(desired.Differences(v.want[c], live.(runtime.Object)), func(path string) bool {
		return !slices.Contains(v.Untaken[c], path)
	})
}

// opened are the fields of a policy that somebody changes whenever it is applied. Other children are taken as they come; but a
// policy that means something else is none.
func (v view) opened(c Child, live metav1.Object) []string {
	if c.Kind != NetworkPolicy || len(v.Untaken[c]) == 0 {
		return nil
	}
	return slices.DeleteFunc(desired.Differences(v.want[c], live.(runtime.Object)), func(path string) bool {
		return !strings.HasPrefix(path, "spec") || !slices.Contains(v.Untaken[c], path)
	})
}

// fixed says that the child cannot be changed into what it shall be: the Service of an entry that was a virtual machine and is a
// container now, for one.
func (v view) fixed(c Child, live metav1.Object) bool {
	return len(desired.Fixed(v.want[c], live.(runtime.Object))) > 0
}

// owned says that the Workspace controls the object: by UID, never by name or label.
func owned(s Snapshot, child metav1.Object) bool { return metav1.IsControlledBy(child, s.Workspace) }
