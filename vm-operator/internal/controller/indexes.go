package controller

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// vmImage indexes VirtualMachines by the image that they use, as namespace/name.
	vmImage = "spec.vmDiskImageRef"
	// diskVM indexes DataVolumes by the VirtualMachine that they were made for, as namespace/name.
	diskVM = "virtualmachine"
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
		{kind: &v1alpha1.VirtualMachine{}, field: vmImage, value: imageOfVM},
		{kind: &cdiv1.DataVolume{}, field: diskVM, value: vmOfDisk},
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

func imageOfVM(obj client.Object) []string {
	if vm, is := obj.(*v1alpha1.VirtualMachine); is {
		return []string{vm.ImageKey().String()}
	}
	return nil
}

func vmOfDisk(obj client.Object) []string {
	if key, ok := vmOf(obj); ok {
		return []string{key.String()}
	}
	return nil
}

// vmOf is the VirtualMachine that the object was made for: the one that controls it, or, where it was left behind or is
// another's child, the one of our label. Whether it is the same VirtualMachine is for the plan to say.
func vmOf(obj metav1.Object) (types.NamespacedName, bool) {
	name := obj.GetLabels()[v1alpha1.LabelVirtualMachine]
	if owner := vmOwner(obj); owner != nil {
		name = owner.Name
	}
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}, name != ""
}

// vmOwner is the reference to the VirtualMachine that controls the object, if one of ours does.
func vmOwner(obj metav1.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(obj)
	if owner == nil || owner.Kind != "VirtualMachine" || !strings.HasPrefix(owner.APIVersion, v1alpha1.GroupName+"/") {
		return nil
	}
	return owner
}
