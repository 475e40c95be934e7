package controller

import (
	"context"
	"maps"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/plan"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups=pelotech.ot,resources=workspaces;virtualmachines,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces;services;pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments;replicasets,verbs=get;list;watch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch

// look is one way to read: from the caches, or from the API server itself.
type look struct {
	// one reads an object by its name: of the cached client it waits until the cache shows what this process wrote to it.
	one client.Reader
	// many lists, and waits for nothing: what has a name that is known is read by it.
	many client.Reader
	// owned and labelled choose what the Workspace controls, and what bears its UID in the label. The API server knows labels
	// only: what has lost its label is found by its name.
	owned, labelled func(types.UID) client.ListOption
}

func (r *Workspaces) cached() look {
	return look{
		one: r.client, many: r.cache,
		owned:    func(uid types.UID) client.ListOption { return client.MatchingFields{ownerUID: string(uid)} },
		labelled: func(uid types.UID) client.ListOption { return client.MatchingFields{workspaceUID: string(uid)} },
	}
}

func (r *Workspaces) fromAPI() look {
	byLabel := func(uid types.UID) client.ListOption {
		return client.MatchingLabels{v1alpha1.LabelWorkspaceUID: string(uid)}
	}
	return look{one: r.live, many: r.live, owned: byLabel, labelled: byLabel}
}

// observe does every read of a reconcile. Without a Workspace the snapshot is empty.
func (r *Workspaces) observe(ctx context.Context, from look, name string) (plan.Snapshot, error) {
	ws := &v1alpha1.Workspace{}
	if found, err := read(ctx, from.one, types.NamespacedName{Name: name}, ws); err != nil || !found {
		return plan.Snapshot{}, err
	}
	s := plan.Snapshot{Workspace: ws, Slot: r.admission.standing(ws), Untaken: r.untakenOf(ws)}
	s.ToldAt, _ = r.told.of(ws)
	for _, look := range []func(context.Context, look, *plan.Snapshot) error{
		observeFriends, r.rememberShall, observeNamespace, r.observeChildren, observePods, observeRemnants,
	} {
		if err := look(ctx, from, &s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// observeFriends reads the Workspaces that may reach this one. One whose namespace is somebody else's is none: he could give his pods
// its label.
func observeFriends(ctx context.Context, from look, s *plan.Snapshot) error {
	for _, name := range friendsOf(s.Workspace) {
		friend := &v1alpha1.Workspace{}
		found, err := read(ctx, from.one, types.NamespacedName{Name: name}, friend)
		if err != nil {
			return err
		}
		if found && isPlaced(friend) {
			set(&s.Friends, name, friend)
		}
	}
	return nil
}

func friendsOf(ws *v1alpha1.Workspace) []string {
	if ws.Spec.Network == nil {
		return nil
	}
	var names []string
	for _, friend := range ws.Spec.Network.AllowFrom {
		names = append(names, friend.Workspace)
	}
	return names
}

func observeNamespace(ctx context.Context, from look, s *plan.Snapshot) error {
	namespace := &corev1.Namespace{}
	found, err := read(ctx, from.one, types.NamespacedName{Name: s.Workspace.ChildNamespace()}, namespace)
	if found {
		s.Namespace = namespace
	}
	return err
}

// observeChildren reads what the Workspace controls, by its UID, and what has a name that it needs.
func (r *Workspaces) observeChildren(ctx context.Context, from look, s *plan.Snapshot) (err error) {
	names := map[plan.Kind][]string{}
	for _, child := range plan.Names(*s, r.settings) {
		names[child.Kind] = append(names[child.Kind], child.Name)
	}
	if s.VirtualMachines, err = children(ctx, from, s.Workspace, names[plan.VirtualMachine], virtualMachines); err != nil {
		return err
	}
	if s.Deployments, err = children(ctx, from, s.Workspace, names[plan.Deployment], deployments); err != nil {
		return err
	}
	if s.Services, err = children(ctx, from, s.Workspace, names[plan.Service], services); err != nil {
		return err
	}
	s.Policies, err = children(ctx, from, s.Workspace, names[plan.NetworkPolicy], policies)
	return err
}

// listing is a list of a kind, and how to get at its items.
type listing[T any] func() (list client.ObjectList, items func() []T)

func virtualMachines() (client.ObjectList, func() []v1alpha1.VirtualMachine) {
	list := &v1alpha1.VirtualMachineList{}
	return list, func() []v1alpha1.VirtualMachine { return list.Items }
}

func deployments() (client.ObjectList, func() []appsv1.Deployment) {
	list := &appsv1.DeploymentList{}
	return list, func() []appsv1.Deployment { return list.Items }
}

func services() (client.ObjectList, func() []corev1.Service) {
	list := &corev1.ServiceList{}
	return list, func() []corev1.Service { return list.Items }
}

func policies() (client.ObjectList, func() []networkingv1.NetworkPolicy) {
	list := &networkingv1.NetworkPolicyList{}
	return list, func() []networkingv1.NetworkPolicy { return list.Items }
}

// object is a pointer to a type of the API.
type object[T any] interface {
	*T
	client.Object
}

// children of a kind, by name: those that are listed, and those that have one of the names.
func children[T any, P object[T]](ctx context.Context, from look, ws *v1alpha1.Workspace, names []string, kind listing[T]) (map[string]P, error) {
	all := map[string]P{}
	list, items := kind()
	namespace := ws.ChildNamespace()
	if err := from.many.List(ctx, list, client.InNamespace(namespace), from.owned(ws.UID)); err != nil {
		return nil, wrap("list the children of "+ws.Name, err)
	}
	listed := items()
	for i := range listed {
		all[P(&listed[i]).GetName()] = &listed[i]
	}
	for _, name := range names {
		one := P(new(T))
		found, err := read(ctx, from.one, types.NamespacedName{Namespace: namespace, Name: name}, one)
		if err != nil {
			return nil, err
		}
		if found {
			all[name] = one
		} else {
			delete(all, name)
		}
	}
	return all, nil
}

// observePods reads the ReplicaSets and pods of the Deployments whose state they explain.
func observePods(ctx context.Context, from look, s *plan.Snapshot) error {
	for name, deployment := range maps.All(s.Deployments) {
		if !plan.NeedsPods(*s, deployment) {
			continue
		}
		sets, pods := &appsv1.ReplicaSetList{}, &corev1.PodList{}
		for _, list := range []client.ObjectList{sets, pods} {
			if err := from.many.List(ctx, list, client.InNamespace(deployment.Namespace), from.labelled(s.Workspace.UID)); err != nil {
				return wrap("list the pods of "+name, err)
			}
		}
		for i := range sets.Items {
			if set := &sets.Items[i]; controls(deployment.UID, set) {
				addTo(&s.ReplicaSets, name, set)
				for j := range pods.Items {
					if controls(set.UID, &pods.Items[j]) {
						addTo(&s.Pods, name, &pods.Items[j])
					}
				}
			}
		}
	}
	return nil
}

// observeRemnants reads what still runs of a Workspace that is being deleted.
func observeRemnants(ctx context.Context, from look, s *plan.Snapshot) error {
	if s.Workspace.DeletionTimestamp == nil {
		return nil
	}
	pods := &corev1.PodList{}
	if err := from.many.List(ctx, pods, client.InNamespace(s.Workspace.ChildNamespace()), from.labelled(s.Workspace.UID)); err != nil {
		return wrap("list the pods of "+s.Workspace.Name, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		s.Remnants = append(s.Remnants, plan.Remnant{
			Kind: "Pod", Name: pod.Name, Finalizers: pod.Finalizers, Node: pod.Spec.NodeName, DeletedAt: pod.DeletionTimestamp,
		})
	}
	return nil
}

func set[K comparable, T any](to *map[K]T, key K, value T) {
	if *to == nil {
		*to = map[K]T{}
	}
	(*to)[key] = value
}

func addTo[T any](to *map[string][]T, name string, value T) {
	set(to, name, append((*to)[name], value))
}
