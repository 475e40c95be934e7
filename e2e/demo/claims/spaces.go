package claims

import (
	"strings"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/demo/ledger"
	"github.com/pelotech/open-terrain/e2e/history"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OfWorkspace checks the claims about a workspace that came and went.
func OfWorkspace(r Run, name string) []Verdict {
	return []Verdict{Provisioned(r, name), Isolated(r, name), Gone(r, name)}
}

// provisioning is what is seen of a workspace on its way to Ready.
type provisioning struct {
	v           Verdict
	name        string
	furthest    int    // place in the queue of an image of it
	said        string // the last message that tells of that
	seen, ready bool
	began, done time.Time
	deployments map[types.NamespacedName]*appsv1.Deployment
}

// Provisioned: a workspace was Ready when all its members were, and not before; its images had waited for their turn, and it
// said so.
func Provisioned(r Run, name string) Verdict {
	p := &provisioning{
		v: Verdict{Claim: "a workspace is Ready when all its members are, and says what it waits for"}, name: name,
		deployments: map[types.NamespacedName]*appsv1.Deployment{},
	}
	replay(r, p.look)
	p.v.detail("%s was Ready %.1f s after it was made; an image of it was #%d of the queue", name, p.done.Sub(p.began).Seconds(), p.furthest)
	p.v.detail("it had said: %s", p.said)
	if !p.ready || p.furthest == 0 || p.said == "" {
		p.v.fault("%s did not become Ready, or did not say that its images were queued", name)
	}
	return p.v
}

func (p *provisioning) look(e history.Event, l *ledger.Ledger) {
	if deployment, ok := e.Object.(*appsv1.Deployment); ok {
		p.deployments[e.NamespacedName()] = deployment
	}
	space := l.Space(p.name)
	if space == nil {
		return
	}
	p.furthest = max(p.furthest, queued(l, space))
	if workspace, ok := history.As[*otv1alpha1.Workspace](e); ok && workspace.UID == space.UID {
		p.status(e, l, space, workspace)
	}
}

func (p *provisioning) status(e history.Event, l *ledger.Ledger, space *ledger.Space, workspace *otv1alpha1.Workspace) {
	if !p.seen {
		p.seen, p.began = true, e.Seen
	}
	if strings.Contains(workspace.Status.Message, "Queued") {
		p.said = workspace.Status.Message
	}
	if !space.Ready() || workspace.DeletionTimestamp != nil {
		return
	}
	if !p.ready {
		p.ready, p.done = true, e.Seen
	}
	for _, missing := range notReady(l, space, workspace, p.deployments) {
		p.v.fault("revision %d: %s was Ready, and %s was not", e.Revision, p.name, missing)
	}
}

// queued is the place in the queue of the last of a workspace's images; 0 for none.
func queued(l *ledger.Ledger, space *ledger.Space) int {
	furthest := 0
	for _, machine := range l.Machines() {
		if machine.Key.Namespace == space.Namespace {
			furthest = max(furthest, ahead(l, machine.Key))
		}
	}
	return furthest
}

// notReady are the members of a workspace that are not, by their names.
func notReady(l *ledger.Ledger, space *ledger.Space, workspace *otv1alpha1.Workspace, deployments map[types.NamespacedName]*appsv1.Deployment) []string {
	var missing []string
	for _, entry := range workspace.Spec.VirtualMachines {
		machine := l.Machine(types.NamespacedName{Namespace: space.Namespace, Name: otv1alpha1.WorkspaceChild(workspace, entry.Name)})
		if machine == nil || !machine.Ready() {
			missing = append(missing, entry.Name)
		}
	}
	for i := range workspace.Spec.Containers {
		entry := &workspace.Spec.Containers[i]
		deployment := deployments[types.NamespacedName{Namespace: space.Namespace, Name: otv1alpha1.WorkspaceChild(workspace, entry.Name)}]
		if deployment == nil || deployment.Status.AvailableReplicas < entry.WantedReplicas() {
			missing = append(missing, entry.Name)
		}
	}
	return missing
}

// isolation is what is seen of a workspace's policy, and of what it isolates.
type isolation struct {
	v         Verdict
	namespace string
	policy    bool
	made      int
	there     map[history.Key]bool
}

// Isolated: the policy of a workspace was there before anything that it isolates, and went after the last of that.
func Isolated(r Run, name string) Verdict {
	i := &isolation{v: Verdict{Claim: "the policy of a workspace is there before all that it isolates, and goes last"}, there: map[history.Key]bool{}}
	replay(r, func(e history.Event, l *ledger.Ledger) {
		if space := l.Space(name); space != nil {
			i.namespace = space.Namespace
		}
		if i.namespace != "" && e.Namespace == i.namespace {
			i.look(e)
		}
	})
	i.v.detail("%d virtual machines, Deployments and pods were made, each behind it", i.made)
	if i.made == 0 || i.policy {
		i.v.fault("%s made nothing to isolate, or has left its policy", name)
	}
	return i.v
}

func (i *isolation) look(e history.Event) {
	if _, is := either(e).(*networkingv1.NetworkPolicy); is && e.Name == otv1alpha1.WorkspacePolicy {
		i.policy = !e.Deleted
		for key := range i.there {
			if e.Deleted {
				i.v.fault("revision %d: the policy went before %s %s", e.Revision, key.Resource, key.Name)
			}
		}
	}
	if !isolatable(either(e)) {
		return
	}
	delete(i.there, e.Key)
	if !e.Deleted {
		i.there[e.Key] = true
	}
	if e.Created() {
		i.made++
		if !i.policy {
			i.v.fault("revision %d: %s %s was made without the policy", e.Revision, e.Kind, e.Name)
		}
	}
}

// either is the object of an event, or the one that it removed.
func either(e history.Event) client.Object {
	if e.Deleted {
		return e.Prev
	}
	return e.Object
}

func isolatable(o client.Object) bool {
	switch o.(type) {
	case *otv1alpha1.VirtualMachine, *appsv1.Deployment, *corev1.Pod:
		return true
	}
	return false
}

// remains is what is left of a workspace.
type remains struct {
	space *ledger.Space
	made  int
	left  map[history.Key]bool
	used  map[types.NamespacedName]bool // images
}

// Gone: a workspace that was deleted has left nothing, and the images that it used are there.
func Gone(r Run, name string) Verdict {
	v := Verdict{Claim: "a workspace that is deleted leaves nothing, and its images are kept"}
	all := &remains{left: map[history.Key]bool{}, used: map[types.NamespacedName]bool{}}
	end := replay(r, func(e history.Event, l *ledger.Ledger) {
		if known := l.Space(name); known != nil {
			all.space = known
		}
		if all.space != nil {
			all.look(e)
		}
	})
	if all.space == nil || end.Space(name) != nil || all.made == 0 || len(all.used) == 0 {
		v.fault("%s did not come and go, or used no image", name)
		return v
	}
	for key := range all.left {
		v.fault("%s %s/%s is still there", key.Resource, key.Namespace, key.Name)
	}
	for key := range all.used {
		if !unused(end.Image(key)) {
			v.fault("the image %s is gone, or still counts a virtual machine", key)
		}
	}
	v.detail("%d objects had been made in %s; all are gone, with it; %d images are kept, and used by nobody", all.made, all.space.Namespace, len(all.used))
	return v
}

// unused says that an image is there, and that nobody uses it.
func unused(image *ledger.Image) bool {
	return image != nil && image.Status.Phase == otv1alpha1.PhaseSucceeded && references(image).Count == 0
}

func (r *remains) look(e history.Event) {
	if !of(r.space, e) {
		return
	}
	if machine, ok := history.As[*otv1alpha1.VirtualMachine](e); ok && controls(r.space, machine) {
		r.used[machine.ImageKey()] = true
	}
	delete(r.left, e.Key)
	if !e.Deleted {
		r.left[e.Key] = true
	}
	if e.Created() {
		r.made++
	}
}

func controls(space *ledger.Space, o metav1.Object) bool {
	owner := metav1.GetControllerOf(o)
	return owner != nil && owner.UID == space.UID
}

// of says whether an event is about a workspace: about it itself, its namespace, what is in that, and what bears its label.
func of(space *ledger.Space, e history.Event) bool {
	o := either(e)
	switch o.(type) {
	case *corev1.Namespace:
		return e.Name == space.Namespace
	case *otv1alpha1.Workspace:
		return e.Name == space.Name
	}
	return e.Namespace == space.Namespace || o != nil && o.GetLabels()[otv1alpha1.LabelWorkspaceUID] == string(space.UID)
}
