package controller

import (
	"context"
	"fmt"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// imageDataSync indexes images by the UID of the DataSync that controls them.
	imageDataSync = "datasync.uid"
	// dataSyncImage indexes DataSyncs by the names of the images that their entries ask for.
	dataSyncImage = "datasync.image"
)

func indexDataSyncs(ctx context.Context, mgr manager.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.VMDiskImage{}, imageDataSync, func(obj client.Object) []string {
		if owner := dataSyncOf(obj); owner != nil {
			return []string{string(owner.UID)}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("index the images: %w", err)
	}
	err = mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.DataSync{}, dataSyncImage, func(obj client.Object) []string {
		dataSync, ok := obj.(*v1alpha1.DataSync)
		if !ok {
			return nil
		}
		names := make([]string, 0, len(dataSync.Spec.VMs))
		for _, vm := range dataSync.Spec.VMs {
			names = append(names, v1alpha1.DataSyncImageName(dataSync.Name, vm.Name))
		}
		return names
	})
	if err != nil {
		return fmt.Errorf("index the DataSyncs: %w", err)
	}
	return nil
}

// dataSyncOf is the reference to the DataSync that controls the object, if one does.
func dataSyncOf(obj metav1.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(obj)
	if owner == nil || owner.Kind != "DataSync" || owner.APIVersion != v1alpha1.SchemeGroupVersion.String() {
		return nil
	}
	return owner
}

// dataSyncSources are the events that a DataSync is looked at for: a change of what is wanted, a change of one of its
// images or of one that has the name of one, and a change of the policy, from which the defaults come.
func dataSyncSources(mgr manager.Manager) []source.Source {
	c := mgr.GetCache()
	wanted := predicate.TypedFuncs[*v1alpha1.DataSync]{
		UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.DataSync]) bool {
			return e.ObjectOld.Generation != e.ObjectNew.Generation ||
				e.ObjectOld.Annotations[v1alpha1.AnnotationSyncRequestedAt] != e.ObjectNew.Annotations[v1alpha1.AnnotationSyncRequestedAt]
		},
	}
	return []source.Source{
		source.Kind(c, &v1alpha1.DataSync{}, &handler.TypedEnqueueRequestForObject[*v1alpha1.DataSync]{}, wanted),
		source.Kind(c, &v1alpha1.VMDiskImage{}, handler.TypedEnqueueRequestsFromMapFunc(ofImage(c)), told),
		source.Kind(c, &corev1.ConfigMap{}, handler.TypedEnqueueRequestsFromMapFunc(allDataSyncs(c))),
	}
}

// told leaves out the changes of an image that a DataSync has no use for: its progress, above all.
var told = predicate.TypedFuncs[*v1alpha1.VMDiskImage]{
	UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.VMDiskImage]) bool {
		return viewOf(e.ObjectOld) != viewOf(e.ObjectNew)
	},
}

// view is what a DataSync sees of an image.
type view struct {
	owner                                types.UID
	generation                           int64
	phase                                v1alpha1.Phase
	message, revision, wanted, defaulted string
	copied, users                        string
	started, going                       bool
}

func viewOf(image *v1alpha1.VMDiskImage) view {
	v := view{
		generation: image.Generation, phase: image.Status.Phase, message: image.Status.Message, revision: image.Status.Revision,
		wanted: v1alpha1.RevisionOf(image), defaulted: image.Annotations[v1alpha1.AnnotationDefaulted],
		copied:  image.Annotations[v1alpha1.AnnotationRequestCopied],
		started: image.Status.Attempts > 0 || image.Status.Artifact != nil, going: image.DeletionTimestamp != nil,
	}
	if owner := metav1.GetControllerOf(image); owner != nil {
		v.owner = owner.UID
	}
	if refs := image.Status.References; refs != nil {
		v.users = fmt.Sprint(refs.Count, refs.Sample)
	}
	return v
}

// ofImage goes from an image to the DataSync that controls it, by name, and to those that would have its name for an image
// of theirs: they may be waiting for it to go. Whose it is, is for the plan to say.
func ofImage(reader client.Reader) func(context.Context, *v1alpha1.VMDiskImage) []reconcile.Request {
	return func(ctx context.Context, image *v1alpha1.VMDiskImage) []reconcile.Request {
		var requests []reconcile.Request
		if owner := dataSyncOf(image); owner != nil {
			requests = append(requests, requestOf(image.Namespace, owner.Name))
		}
		interested := &v1alpha1.DataSyncList{}
		if err := reader.List(ctx, interested, client.InNamespace(image.Namespace), client.MatchingFields{dataSyncImage: image.Name}); err != nil {
			return requests
		}
		for i := range interested.Items {
			requests = append(requests, requestOf(image.Namespace, interested.Items[i].Name))
		}
		return requests
	}
}

// allDataSyncs are looked at again when the policy changes, which is rare: an entry may have been waiting for a default.
func allDataSyncs(reader client.Reader) func(context.Context, *corev1.ConfigMap) []reconcile.Request {
	return func(ctx context.Context, _ *corev1.ConfigMap) []reconcile.Request {
		all := &v1alpha1.DataSyncList{}
		if err := reader.List(ctx, all); err != nil {
			return nil
		}
		requests := make([]reconcile.Request, 0, len(all.Items))
		for i := range all.Items {
			requests = append(requests, requestOf(all.Items[i].Namespace, all.Items[i].Name))
		}
		return requests
	}
}

func requestOf(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}
