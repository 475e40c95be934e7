package wsfault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/fault/lab"
	"github.com/pelotech/open-terrain/e2e/history"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	nowhere = "http://images.test/disk"
	first   = "first"
	second  = "second"
	vm      = "database"
	web     = "web"

	ready = otv1alpha1.WorkspaceReady
	gone  = otv1alpha1.WorkspacePhase("")
)

// story is what a user does, and how it ends, whatever goes wrong meanwhile.
type story struct {
	name  string
	steps []step
	// ends of the workspaces by their name.
	ends map[string]otv1alpha1.WorkspacePhase
}

// step of a story. It returns when it is done, and an error when it cannot be.
type step struct {
	name string
	do   func(context.Context, *scene) error
}

type mod = func(*otv1alpha1.Workspace)

func stories() map[string]story {
	one := func(phase otv1alpha1.WorkspacePhase) map[string]otv1alpha1.WorkspacePhase {
		return map[string]otv1alpha1.WorkspacePhase{first: phase}
	}
	all := map[string]story{
		"create":       {ends: one(ready), steps: []step{synced(), create(first)}},
		"create-first": {ends: one(ready), steps: []step{create(first), awaitWaiting(first), createImage()}},
		"target":       {ends: one(ready), steps: []step{synced(), create(first, inTarget)}},
		"update": {ends: one(ready), steps: []step{
			synced(), create(first), await(first, ready), change(first, another), await(first, ready), change(first, renamed), await(first, ready),
		}},
		"queue": {ends: map[string]otv1alpha1.WorkspacePhase{first: ready, second: ready}, steps: []step{
			create(first), awaitWaiting(first), create(second), awaitQueued(second), createImage(),
		}},
		"queue-deleted": {ends: map[string]otv1alpha1.WorkspacePhase{first: gone, second: ready}, steps: []step{
			create(first), awaitWaiting(first), create(second), awaitQueued(second), remove(first), awaitGone(first), createImage(),
		}},
		"image-lost": {ends: one(ready), steps: []step{
			synced(), syncs("0"), loseImage(), awaitImage(func(i *otv1alpha1.VMDiskImage) bool { return i.Status.Phase != otv1alpha1.PhaseSucceeded }),
			create(first), awaitWaiting(first), syncs("2"),
		}},
		"policy-lost": {ends: one(ready), steps: []step{synced(), create(first), await(first, ready), lose(&networkingv1.NetworkPolicy{}, otv1alpha1.WorkspacePolicy)}},
		"vm-lost":     {ends: one(ready), steps: []step{synced(), create(first), await(first, ready), lose(&otv1alpha1.VirtualMachine{}, vm)}},
		"pods-lost":   {ends: one(ready), steps: []step{synced(), create(first), await(first, ready), lose(&appsv1.Deployment{}, web)}},
		"namespace-lost": {ends: one(ready), steps: []step{
			synced(), create(first), await(first, ready), lose(&corev1.Namespace{}, ""),
		}},
		"delete-waiting": {ends: one(gone), steps: []step{create(first), awaitWaiting(first), remove(first), awaitGone(first)}},
		"delete-at-once": {ends: one(gone), steps: []step{synced(), create(first), remove(first), awaitGone(first)}},
		"delete-ready":   {ends: one(gone), steps: []step{synced(), create(first), await(first, ready), remove(first), awaitGone(first)}},
		"delete-target":  {ends: one(gone), steps: []step{synced(), create(first, inTarget), await(first, ready), remove(first), awaitGone(first)}},
		"recreate": {ends: one(ready), steps: []step{
			synced(), create(first), await(first, ready), remove(first), awaitGone(first), create(first),
		}},
	}
	for name, match := range writes() {
		all["delete-at-"+name] = story{ends: one(gone), steps: []step{
			synced(), create(first), {"await " + name, func(ctx context.Context, s *scene) error { return s.await(ctx, match) }}, remove(first), awaitGone(first),
		}}
	}
	return all
}

// writes at each of which a workspace is deleted.
func writes() map[string]func(history.Event) bool {
	return map[string]func(history.Event) bool{
		"admission": func(e history.Event) bool {
			ws, is := history.As[*otv1alpha1.Workspace](e)
			return is && ws.Status.AdmittedAt != nil
		},
		"namespace": func(e history.Event) bool {
			_, is := history.As[*corev1.Namespace](e)
			return is && spaceOf(e.Object) != ""
		},
		"policy":     func(e history.Event) bool { _, is := history.As[*networkingv1.NetworkPolicy](e); return is },
		"vm":         func(e history.Event) bool { _, is := history.As[*otv1alpha1.VirtualMachine](e); return is },
		"deployment": func(e history.Event) bool { _, is := history.As[*appsv1.Deployment](e); return is },
	}
}

// act makes a step that changes something: what comes next is looked for from before it on.
func act(name string, do func(context.Context, *scene) error) step {
	return step{name, func(ctx context.Context, s *scene) (err error) {
		if s.since, err = s.Recorder.Sync(ctx); err != nil {
			return err
		}
		return do(ctx, s)
	}}
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(25 * time.Millisecond):
	}
}

func createImage() step {
	return act("create the image", func(ctx context.Context, s *scene) error {
		i := lab.Image(s.name, image, nowhere)
		i.Spec.AllowedNamespaces = &otv1alpha1.AllowedNamespaces{From: otv1alpha1.NamespacesFromAll}
		return s.Client.Create(ctx, i)
	})
}

func awaitImage(is func(*otv1alpha1.VMDiskImage) bool) step {
	return step{"await the image", func(ctx context.Context, s *scene) error {
		return s.await(ctx, func(e history.Event) bool {
			i, ok := history.As[*otv1alpha1.VMDiskImage](e)
			return ok && is(i)
		})
	}}
}

// synced makes the image, and waits until it is there.
func synced() step {
	return step{"sync the image", func(ctx context.Context, s *scene) error {
		return s.tell(ctx, []step{createImage(), awaitImage(func(i *otv1alpha1.VMDiskImage) bool { return i.Status.Phase == otv1alpha1.PhaseSucceeded })})
	}}
}

// loseImage deletes all that the image has, as a careless user does.
func loseImage() step {
	return act("lose the image", func(ctx context.Context, s *scene) error {
		i := lab.Image(s.name, image, "")
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(i), i); err != nil {
			return err
		}
		at := metav1.ObjectMeta{Namespace: s.name, Name: i.Status.Artifact.Snapshot}
		volume := metav1.ObjectMeta{Namespace: s.name, Name: i.Status.Artifact.DataVolume}
		return errors.Join(s.Client.Delete(ctx, &snapshotv1.VolumeSnapshot{ObjectMeta: at}), s.Client.Delete(ctx, &cdiv1.DataVolume{ObjectMeta: volume}))
	})
}

// syncs is the policy of the stories, and this concurrency of images.
func syncs(concurrency string) step {
	return act("concurrency "+concurrency, func(ctx context.Context, s *scene) error {
		data := basePolicy()
		data["concurrency"] = concurrency
		return s.SetPolicy(ctx, data)
	})
}

// create a workspace of a virtual machine and a container.
func create(name string, mods ...mod) step {
	return act("create "+name, func(ctx context.Context, s *scene) error {
		ws := &otv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: s.workspace(name), Annotations: map[string]string{"scene": s.name}}}
		entry := otv1alpha1.WorkspaceVirtualMachine{Name: vm}
		entry.Spec.VMDiskImageRef = &otv1alpha1.VMDiskImageReference{Namespace: s.name, Name: image}
		entry.Spec.Resources = otv1alpha1.VirtualMachineResources{CPU: new(resource.MustParse("100m")), Memory: new(resource.MustParse("64Mi"))}
		ws.Spec.VirtualMachines = []otv1alpha1.WorkspaceVirtualMachine{entry}
		ws.Spec.Containers = []otv1alpha1.WorkspaceContainer{container(web)}
		for _, mod := range mods {
			mod(ws)
		}
		return s.Client.Create(ctx, ws)
	})
}

func container(name string) otv1alpha1.WorkspaceContainer {
	return otv1alpha1.WorkspaceContainer{
		Name: name, Image: "registry.test/" + name + ":1", Ports: []otv1alpha1.WorkspacePort{{ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
	}
}

func inTarget(ws *otv1alpha1.Workspace) { ws.Spec.TargetNamespace = ws.Annotations["scene"] }

// another container comes, and the first is changed.
func another(ws *otv1alpha1.Workspace) {
	ws.Spec.Containers[0].Env = []otv1alpha1.WorkspaceEnvVar{{Name: "GREETING", Value: "hello"}}
	ws.Spec.Containers = append(ws.Spec.Containers, container("cache"))
}

// renamed is the virtual machine, and the other container goes.
func renamed(ws *otv1alpha1.Workspace) {
	ws.Spec.VirtualMachines[0].Name = "analytics"
	ws.Spec.Containers = slices.DeleteFunc(ws.Spec.Containers, func(c otv1alpha1.WorkspaceContainer) bool { return c.Name == "cache" })
}

func change(name string, mods ...mod) step {
	return act("change "+name, func(ctx context.Context, s *scene) error {
		ws := &otv1alpha1.Workspace{}
		if err := s.Client.Get(ctx, client.ObjectKey{Name: s.workspace(name)}, ws); err != nil {
			return err
		}
		before := ws.DeepCopy()
		for _, mod := range mods {
			mod(ws)
		}
		return s.Client.Patch(ctx, ws, client.MergeFrom(before))
	})
}

func remove(name string) step {
	return act("delete "+name, func(ctx context.Context, s *scene) error {
		return s.Client.Delete(ctx, &otv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: s.workspace(name)}})
	})
}

// awaitStatus waits for a workspace that is or comes to be as described, with the spec that it has.
func awaitStatus(name, what string, is func(*otv1alpha1.Workspace) bool) step {
	return step{"await " + name + " " + what, func(ctx context.Context, s *scene) error {
		return s.await(ctx, func(e history.Event) bool {
			ws, ok := history.As[*otv1alpha1.Workspace](e)
			return ok && ws.Name == s.workspace(name) && ws.Status.ObservedGeneration == ws.Generation && is(ws)
		})
	}}
}

func await(name string, phase otv1alpha1.WorkspacePhase) step {
	return awaitStatus(name, string(phase), func(ws *otv1alpha1.Workspace) bool { return ws.Status.Phase == phase })
}

// awaitWaiting is for its image, with all that it can have by then.
func awaitWaiting(name string) step {
	return awaitStatus(name, "waiting", func(ws *otv1alpha1.Workspace) bool {
		return ws.Status.AdmittedAt != nil && ws.Status.Containers == "1/1"
	})
}

func awaitQueued(name string) step {
	return awaitStatus(name, "queued", func(ws *otv1alpha1.Workspace) bool { return ws.Status.Queue != nil })
}

func awaitGone(name string) step {
	return step{"await the end of " + name, func(ctx context.Context, s *scene) error {
		return s.await(ctx, func(e history.Event) bool {
			return e.Deleted && e.Resource == "workspaces" && e.Name == s.workspace(name)
		})
	}}
}

// lose a child that is there, and wait until it is there again.
func lose(kind client.Object, name string) step {
	return act("lose a child", func(ctx context.Context, s *scene) error {
		o, is := kind.DeepCopyObject().(client.Object)
		if !is {
			return fmt.Errorf("%T is no object", kind)
		}
		namespace := otv1alpha1.WorkspaceNamespace(s.workspace(first))
		o.SetNamespace(namespace)
		o.SetName(name)
		if name == "" {
			o.SetNamespace("")
			o.SetName(namespace)
		}
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		former := o.GetUID()
		if err := s.Client.Delete(ctx, o); err != nil {
			return err
		}
		for ctx.Err() == nil {
			if s.Client.Get(ctx, client.ObjectKeyFromObject(o), o) == nil && o.GetUID() != former {
				return nil
			}
			pause(ctx)
		}
		return ctx.Err()
	})
}
