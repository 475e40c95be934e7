package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// ownerUID indexes DataVolumes and VolumeSnapshots by the UID of the image that controls them.
	ownerUID = "metadata.controller.uid"
	// cloneSource indexes DataVolumes that are being cloned by what they are cloned from.
	cloneSource = "spec.source"
)

// index is an index of a kind of CDI or of the snapshotter.
type index struct {
	kind  client.Object
	field string
	value client.IndexerFunc
	added bool
}

// indexes are sources that hold a controller back until they are there: their kinds may be installed later.
type indexes struct {
	mu      sync.Mutex
	indexer client.FieldIndexer
	list    []*index
}

func newIndexes(indexer client.FieldIndexer) *indexes {
	return &indexes{indexer: indexer, list: []*index{
		{kind: &cdiv1.DataVolume{}, field: ownerUID, value: controllerUID},
		{kind: &snapshotv1.VolumeSnapshot{}, field: ownerUID, value: controllerUID},
		{kind: &cdiv1.DataVolume{}, field: cloneSource, value: cloneOrigin},
	}}
}

// Start implements source.Source.
func (x *indexes) Start(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	return nil
}

// WaitForSync implements source.SyncingSource.
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
			return fmt.Errorf("index %T by %s: %w", i.kind, i.field, err)
		}
		i.added = true
	}
	return nil
}

func cloneOrigin(obj client.Object) []string {
	if dv, is := obj.(*cdiv1.DataVolume); is && cloning(dv) {
		return []string{sourceOf(dv)}
	}
	return nil
}

func controllerUID(obj client.Object) []string {
	if owner := metav1.GetControllerOf(obj); owner != nil && owner.Kind == "VMDiskImage" {
		return []string{string(owner.UID)}
	}
	return nil
}
