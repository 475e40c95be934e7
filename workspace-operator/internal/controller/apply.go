package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/desired"
	"github.com/pelotech/open-terrain/workspace-operator/internal/plan"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// atOnce is how many children of a workspace are written at a time.
const atOnce = 16

// carryOut changes the children, stage by stage, those of one stage at the same time. A child that is refused does not keep the
// others back; trouble that passes does, and all is tried again. The snapshot takes in what was refused.
func (r *Workspaces) carryOut(ctx context.Context, s *plan.Snapshot, actions []plan.Action) error {
	if len(actions) == 0 {
		return nil
	}
	wanted := plan.Wanted(*s, r.settings)
	for len(actions) > 0 {
		n := 1
		for n < len(actions) && n < atOnce && actions[n].Stage() == actions[0].Stage() {
			n++
		}
		if err := r.carryOutAll(ctx, s, actions[:n], wanted); err != nil {
			return err
		}
		actions = actions[n:]
	}
	return nil
}

func (r *Workspaces) carryOutAll(ctx context.Context, s *plan.Snapshot, actions []plan.Action, wanted map[plan.Child]*unstructured.Unstructured) error {
	errs := make([]error, len(actions))
	var wg sync.WaitGroup
	for i, action := range actions {
		if plan.Possible(*s, action) {
			wg.Go(func() { errs[i] = r.change(ctx, s, action, wanted[action.Child]) })
		}
	}
	wg.Wait()
	var failed []error
	for i, err := range errs {
		if refusal := refusalOf(err); refusal != nil {
			log.FromContext(ctx).Info("a child is refused", "action", actions[i], "reason", refusal.Reason, "message", refusal.Message)
			set(&s.Refusals, actions[i].Child, *refusal)
		} else if err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (r *Workspaces) change(ctx context.Context, s *plan.Snapshot, action plan.Action, want *unstructured.Unstructured) error {
	log.FromContext(ctx).V(1).Info("changing a child", "verb", action.Verb, "kind", action.Kind, "name", action.Name)
	switch action.Verb {
	case plan.Protect:
		return r.protect(ctx, s)
	case plan.Release:
		return r.release(ctx, s)
	case plan.Delete:
		return r.delete(ctx, s, action.Child)
	case plan.Apply:
		err := r.apply(ctx, s, action.Child, want)
		if err == nil {
			r.metrics.repaired(s.Workspace, action.Kind)
		}
		return err
	}
	return fmt.Errorf("unknown verb %q", action.Verb)
}

// +kubebuilder:rbac:groups=pelotech.ot,resources=workspaces,verbs=patch
// +kubebuilder:rbac:groups=pelotech.ot,resources=workspaces/finalizers,verbs=update

// protect sets our finalizer. Status follows, and is bound to the version that this makes.
func (r *Workspaces) protect(ctx context.Context, s *plan.Snapshot) error {
	ws := s.Workspace.DeepCopy()
	err := r.patchFinalizers(ctx, ws, append(slices.Clone(ws.Finalizers), v1alpha1.FinalizerWorkspace))
	if err == nil {
		s.Workspace = ws
	}
	return wrap("protect the workspace", err)
}

// release takes our finalizer off: the end.
func (r *Workspaces) release(ctx context.Context, s *plan.Snapshot) error {
	ws := s.Workspace.DeepCopy()
	rest := slices.DeleteFunc(slices.Clone(ws.Finalizers), func(f string) bool { return f == v1alpha1.FinalizerWorkspace })
	return wrap("let the workspace go", client.IgnoreNotFound(r.patchFinalizers(ctx, ws, rest)))
}

// patchFinalizers changes the very version that was looked at.
func (r *Workspaces) patchFinalizers(ctx context.Context, ws *v1alpha1.Workspace, finalizers []string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": ws.UID, "resourceVersion": ws.ResourceVersion, "finalizers": finalizers,
	}})
	if err != nil {
		return wrap("encode the patch", err)
	}
	return r.client.Patch(ctx, ws, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldOwner))
}

// +kubebuilder:rbac:groups=pelotech.ot,resources=virtualmachines,verbs=delete
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=delete
// +kubebuilder:rbac:groups="",resources=services;namespaces,verbs=delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=delete

// delete takes away the very object that was looked at. What makes others goes in the foreground: it is there until they are
// gone.
func (r *Workspaces) delete(ctx context.Context, s *plan.Snapshot, child plan.Child) error {
	live := liveOf(s, child)
	if live == nil {
		return nil
	}
	policy := metav1.DeletePropagationBackground
	if child.Kind == plan.VirtualMachine || child.Kind == plan.Deployment {
		policy = metav1.DeletePropagationForeground
	}
	log.FromContext(ctx).Info("deleting a child", "kind", child.Kind, "name", child.Name)
	target := newOf(child.Kind)
	target.SetNamespace(live.GetNamespace())
	target.SetName(live.GetName())
	err := r.client.Delete(ctx, target, client.PropagationPolicy(policy), client.Preconditions{UID: new(live.GetUID())})
	return wrap("delete the "+string(child.Kind)+" "+child.Name, client.IgnoreNotFound(err))
}

// +kubebuilder:rbac:groups=pelotech.ot,resources=virtualmachines,verbs=create;patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=create;patch
// +kubebuilder:rbac:groups="",resources=services;namespaces,verbs=create;patch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=create;patch

// The vm-operator's author check asks whether the author of a VirtualMachine may use, or make, its image, and the author is
// this operator. Whether the author of the Workspace may is asked by the author check of this operator's chart.
// +kubebuilder:rbac:groups=pelotech.ot,resources=vmdiskimages,verbs=use;create

// apply makes a child, or makes it right. One that is not there is created: that is refused where somebody else has made one of
// that name, and an apply would change it. What is ours already is applied by force.
func (r *Workspaces) apply(ctx context.Context, s *plan.Snapshot, child plan.Child, want *unstructured.Unstructured) error {
	if want == nil {
		return fmt.Errorf("nothing is known of the %s %s", child.Kind, child.Name)
	}
	applied, err := r.createOrApply(ctx, s, child, want)
	if err != nil {
		return wrap(fmt.Sprintf("apply the %s %s", child.Kind, child.Name), err)
	}
	r.noteUntaken(ctx, s.Workspace, child, want, applied)
	return nil
}

func (r *Workspaces) createOrApply(ctx context.Context, s *plan.Snapshot, child plan.Child, want *unstructured.Unstructured) (client.Object, error) {
	if live := liveOf(s, child); live != nil {
		return r.reapply(ctx, live, child.Kind, want, live.GetUID())
	}
	created := newOf(child.Kind)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(want.Object, created); err != nil {
		return nil, err
	}
	err := r.client.Create(ctx, created, client.FieldOwner(FieldOwner))
	if !apierrors.IsAlreadyExists(err) {
		return created, err
	}
	uid, err := r.ownUID(ctx, s.Workspace, child) // ours has lost its label, or its event is on the way
	if err != nil {
		return nil, err
	}
	return r.reapply(ctx, nil, child.Kind, want, uid)
}

// ownUID asks the API server for the object of the child's name, and gives its UID when it is ours.
func (r *Workspaces) ownUID(ctx context.Context, ws *v1alpha1.Workspace, child plan.Child) (types.UID, error) {
	existing := newOf(child.Kind)
	key := types.NamespacedName{Name: child.Name}
	if child.Kind != plan.Namespace {
		key.Namespace = ws.ChildNamespace()
	}
	if err := r.live.Get(ctx, key, existing); err != nil {
		return "", wrap("look at the "+string(child.Kind)+" "+child.Name, err)
	}
	if !metav1.IsControlledBy(existing, ws) {
		return "", taken(child)
	}
	return existing.GetUID(), nil
}

// taken is the refusal of a name that somebody else has.
func taken(child plan.Child) error {
	if child.Kind == plan.Namespace {
		return &refused{v1alpha1.WorkspaceNamespaceTaken,
			fmt.Sprintf("The Namespace %s exists and does not belong to this workspace: delete it, or rename the workspace", child.Name)}
	}
	return &refused{v1alpha1.WorkspaceNameTaken,
		fmt.Sprintf("The %s %s exists and does not belong to this workspace: delete or rename it", child.Kind, child.Name)}
}

// patch is the server-side apply, for that very object: as a patch of a typed object, so that the cache of that type is waited
// for.
func (r *Workspaces) patch(ctx context.Context, kind plan.Kind, want *unstructured.Unstructured, uid types.UID) (client.Object, error) {
	body := want.DeepCopy()
	body.SetUID(uid)
	raw, err := body.MarshalJSON()
	if err != nil {
		return nil, err
	}
	target := newOf(kind)
	target.SetNamespace(want.GetNamespace())
	target.SetName(want.GetName())
	return target, r.client.Patch(ctx, target, client.RawPatch(types.ApplyPatchType, raw), client.FieldOwner(FieldOwner), client.ForceOwnership)
}

// untakenFields are those that the API server, or a webhook, did not take as they were applied.
type untakenFields struct {
	generation int64
	paths      map[plan.Child][]string
}

// noteUntaken remembers the fields that applying again would not change: the operator would do it for ever.
func (r *Workspaces) noteUntaken(ctx context.Context, ws *v1alpha1.Workspace, child plan.Child, want *unstructured.Unstructured, applied client.Object) {
	paths := desired.Differences(want, applied)
	r.mu.Lock()
	defer r.mu.Unlock()
	known, _ := r.untaken.of(ws)
	if len(paths) == 0 && len(known.paths[child]) == 0 {
		return
	}
	log.FromContext(ctx).Info("the API server does not take all fields as they are applied; they are left as they are", "child", child, "fields", paths)
	next := untakenFields{ws.Generation, map[plan.Child][]string{child: paths}}
	for other, fields := range known.paths {
		if other != child && known.generation == ws.Generation {
			next.paths[other] = fields
		}
	}
	r.untaken.note(ws, next)
}

func (r *Workspaces) untakenOf(ws *v1alpha1.Workspace) map[plan.Child][]string {
	if known, ok := r.untaken.of(ws); ok && known.generation == ws.Generation {
		return known.paths
	}
	return nil
}

// newOf is an empty object of the kind.
func newOf(kind plan.Kind) client.Object {
	switch kind {
	case plan.Namespace:
		return &corev1.Namespace{}
	case plan.NetworkPolicy:
		return &networkingv1.NetworkPolicy{}
	case plan.Service:
		return &corev1.Service{}
	case plan.Deployment:
		return &appsv1.Deployment{}
	}
	return &v1alpha1.VirtualMachine{}
}

// liveOf is the child as it was read; nil when there is none.
func liveOf(s *plan.Snapshot, child plan.Child) client.Object {
	switch child.Kind {
	case plan.Namespace:
		return orNil(s.Namespace)
	case plan.NetworkPolicy:
		return orNil(s.Policies[child.Name])
	case plan.Service:
		return orNil(s.Services[child.Name])
	case plan.Deployment:
		return orNil(s.Deployments[child.Name])
	}
	return orNil(s.VirtualMachines[child.Name])
}

// orNil is nil for a nil pointer.
func orNil[T any, P object[T]](one P) client.Object {
	if one == nil {
		return nil
	}
	return one
}
