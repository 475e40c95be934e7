package controller

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// ownerUID indexes children by the UID of the Workspace that controls them.
	ownerUID = "workspace.owner.uid"
	// workspaceUID indexes pods and ReplicaSets by the UID in our label, and Workspaces by their own.
	workspaceUID = "workspace.uid"
	// childNamespace indexes Workspaces by the namespace of their children.
	childNamespace = "workspace.namespace"
	// allowedFrom indexes Workspaces by those that may reach them.
	allowedFrom = "spec.network.allowFrom"
)

// index is an index of a kind that may be installed later.
type index struct {
	kind  client.Object
	field string
	value client.IndexerFunc
	added bool
}

// indexes are sources that hold a controller back until they are there.
type indexes struct {
	mu      sync.Mutex
	indexer client.FieldIndexer
	list    []*index
}

func newIndexes(indexer client.FieldIndexer) *indexes {
	return &indexes{indexer: indexer, list: []*index{
		{kind: &appsv1.Deployment{}, field: ownerUID, value: byOwner},
		{kind: &corev1.Service{}, field: ownerUID, value: byOwner},
		{kind: &networkingv1.NetworkPolicy{}, field: ownerUID, value: byOwner},
		{kind: &appsv1.ReplicaSet{}, field: workspaceUID, value: byLabel},
		{kind: &corev1.Pod{}, field: workspaceUID, value: byLabel},
		{kind: &v1alpha1.Workspace{}, field: workspaceUID, value: func(obj client.Object) []string { return []string{string(obj.GetUID())} }},
		{kind: &v1alpha1.Workspace{}, field: childNamespace, value: byNamespace},
		{kind: &v1alpha1.Workspace{}, field: allowedFrom, value: byFriend},
		{kind: &v1alpha1.VirtualMachine{}, field: ownerUID, value: byOwner},
	}}
}

// Start implements source.Source.
func (x *indexes) Start(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	return nil
}

// WaitForSync implements source.SyncingSource. An event that comes before its index is there wakes nobody, and need not: every
// object is looked at once when the controller starts.
func (x *indexes) WaitForSync(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := x.add(ctx)
		if meta.IsNoMatchError(err) {
			return false, nil // not served yet
		}
		return err == nil, err
	})
}

func (x *indexes) add(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, i := range x.list {
		if i.added {
			continue
		}
		if err := x.indexer.IndexField(ctx, i.kind, i.field, i.value); err != nil {
			return wrap("index by "+i.field, err)
		}
		i.added = true
	}
	return nil
}

func byOwner(obj client.Object) []string {
	if owner := ownerOf(obj); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

func byLabel(obj client.Object) []string {
	return []string{obj.GetLabels()[v1alpha1.LabelWorkspaceUID]}
}

func byNamespace(obj client.Object) []string {
	if ws, is := obj.(*v1alpha1.Workspace); is {
		return []string{ws.ChildNamespace()}
	}
	return nil
}

func byFriend(obj client.Object) []string {
	if ws, is := obj.(*v1alpha1.Workspace); is {
		return friendsOf(ws)
	}
	return nil
}

// ownerOf is the reference to the Workspace that controls the object, if one does.
func ownerOf(obj metav1.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(obj)
	if owner == nil || owner.Kind != "Workspace" || !strings.HasPrefix(owner.APIVersion, v1alpha1.GroupName+"/") {
		return nil
	}
	return owner
}

// controls says that the object of that UID controls the other one.
func controls(uid types.UID, obj metav1.Object) bool {
	owner := metav1.GetControllerOfNoCopy(obj)
	return owner != nil && owner.UID == uid
}
