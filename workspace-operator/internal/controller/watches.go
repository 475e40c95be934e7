package controller

import (
	"context"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// workspaceSources are the events that a Workspace is looked at for: a change of what is wanted, of its friends, of its
// namespace, of its children and of what is below them. Its own status writes are none.
func workspaceSources(mgr manager.Manager) []source.Source {
	c := mgr.GetCache()
	return []source.Source{
		source.Kind(c, &v1alpha1.Workspace{}, &handler.TypedEnqueueRequestForObject[*v1alpha1.Workspace]{}, wanted),
		source.Kind(c, &v1alpha1.Workspace{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(ctx context.Context, ws *v1alpha1.Workspace) []reconcile.Request {
				return indexed(ctx, c, allowedFrom, ws.Name)
			}), comesOrGoes),
		source.Kind(c, &corev1.Namespace{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(ctx context.Context, namespace *corev1.Namespace) []reconcile.Request {
				return indexed(ctx, c, childNamespace, namespace.Name)
			}), changed[corev1.Namespace]()),
		source.Kind(c, &v1alpha1.VirtualMachine{}, handler.TypedEnqueueRequestsFromMapFunc(madeFor[*v1alpha1.VirtualMachine](c)),
			notOurMaking(hasPhase), changed[v1alpha1.VirtualMachine]()),
		source.Kind(c, &appsv1.Deployment{}, handler.TypedEnqueueRequestsFromMapFunc(madeFor[*appsv1.Deployment](c)),
			notOurMaking(isObserved), changed[appsv1.Deployment]()),
		source.Kind(c, &corev1.Service{}, handler.TypedEnqueueRequestsFromMapFunc(madeFor[*corev1.Service](c)),
			notOurMaking(never[*corev1.Service]), changed[corev1.Service]()),
		source.Kind(c, &networkingv1.NetworkPolicy{}, handler.TypedEnqueueRequestsFromMapFunc(madeFor[*networkingv1.NetworkPolicy](c)),
			notOurMaking(never[*networkingv1.NetworkPolicy]), changed[networkingv1.NetworkPolicy]()),
		source.Kind(c, &appsv1.ReplicaSet{}, handler.TypedEnqueueRequestsFromMapFunc(labelledFor[*appsv1.ReplicaSet](c)), failing),
		source.Kind(c, &corev1.Pod{}, handler.TypedEnqueueRequestsFromMapFunc(labelledFor[*corev1.Pod](c)), changedPod),
	}
}

// admissionSources tell the queue who waits and who holds what. They enqueue nothing: what they see may ask for a round.
func admissionSources(mgr manager.Manager, a *Admission) []source.Source {
	c := mgr.GetCache()
	return []source.Source{
		source.TypedKind[*v1alpha1.Workspace, reconcile.Request](c, &v1alpha1.Workspace{}, taking(a.workspaceSeen, a.workspaceGone)),
		source.TypedKind[*coordinationv1.Lease, reconcile.Request](c, &coordinationv1.Lease{}, taking(a.leaseSeen, a.leaseGone)),
	}
}

// policySources are the events of the policy's ConfigMap. The cache has no other one.
func policySources(mgr manager.Manager) []source.Source {
	return []source.Source{
		source.Kind(mgr.GetCache(), &corev1.ConfigMap{}, &handler.TypedEnqueueRequestForObject[*corev1.ConfigMap]{}),
	}
}

// taking hands each object on as it is watched.
func taking[T client.Object](seen, gone func(T)) handler.TypedFuncs[T, reconcile.Request] {
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc:  func(_ context.Context, e event.TypedCreateEvent[T], _ requests) { seen(e.Object) },
		UpdateFunc:  func(_ context.Context, e event.TypedUpdateEvent[T], _ requests) { seen(e.ObjectNew) },
		DeleteFunc:  func(_ context.Context, e event.TypedDeleteEvent[T], _ requests) { gone(e.Object) },
		GenericFunc: func(context.Context, event.TypedGenericEvent[T], requests) {},
	}
}

// madeFor goes from a child to the Workspace that controls it, or, where none does, to that of its label.
func madeFor[T client.Object](reader client.Reader) func(context.Context, T) []reconcile.Request {
	return func(ctx context.Context, child T) []reconcile.Request {
		if owner := ownerOf(child); owner != nil {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: owner.Name}}}
		}
		return labelledFor[T](reader)(ctx, child)
	}
}

// labelledFor goes from what bears the UID of a Workspace in its label to that Workspace.
func labelledFor[T client.Object](reader client.Reader) func(context.Context, T) []reconcile.Request {
	return func(ctx context.Context, obj T) []reconcile.Request {
		return indexed(ctx, reader, workspaceUID, obj.GetLabels()[v1alpha1.LabelWorkspaceUID])
	}
}

// indexed are the Workspaces that have the value in an index.
func indexed(ctx context.Context, reader client.Reader, index, value string) []reconcile.Request {
	all := &v1alpha1.WorkspaceList{}
	if err := reader.List(ctx, all, client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy); err != nil {
		return nil // before the index is there: see indexes
	}
	var found []reconcile.Request
	for i := range all.Items {
		found = append(found, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
	}
	return found
}
