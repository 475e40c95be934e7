package controller

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CacheOptions keep in memory what the operator works with, and no more: children by our label (CDI copies a
// DataVolume's labels to its claim), of other DataVolumes what they are cloned from, importer pods by CDI's label, and of
// its own namespace the policy and the slots. A label only decides what is seen: what is ours is decided by the owner's
// UID.
func CacheOptions(namespace string) (cache.Options, error) {
	ours, err := labels.NewRequirement(v1alpha1.LabelImage, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, err
	}
	children := cache.ByObject{Label: labels.NewSelector().Add(*ours)}
	own := func(byObject cache.ByObject) cache.ByObject {
		byObject.Namespaces = map[string]cache.Config{namespace: {}}
		return byObject
	}
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&cdiv1.DataVolume{}:                 {Transform: stripForeign},
			&snapshotv1.VolumeSnapshot{}:        children,
			&corev1.PersistentVolumeClaim{}:     children,
			&snapshotv1.VolumeSnapshotContent{}: {Transform: stripContent},
			&corev1.Pod{}:                       {Label: labels.SelectorFromSet(labels.Set{"cdi.kubevirt.io": "importer"}), Transform: stripPod},
			&coordinationv1.Lease{}:             own(cache.ByObject{Label: labels.SelectorFromSet(labels.Set{v1alpha1.LabelSlot: v1alpha1.DiskSyncQueue})}),
			&corev1.ConfigMap{}:                 own(cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", v1alpha1.PolicyConfigMapName)}),
		},
	}, nil
}

// stripForeign keeps of a DataVolume without our label whose it is, and whether it is being cloned from something.
func stripForeign(obj any) (any, error) {
	dv, ok := obj.(*cdiv1.DataVolume)
	if !ok {
		return obj, nil
	}
	dv.ManagedFields = nil
	if _, ours := dv.Labels[v1alpha1.LabelImage]; ours {
		return dv, nil
	}
	kept := &cdiv1.DataVolume{TypeMeta: dv.TypeMeta}
	kept.Namespace, kept.Name, kept.UID, kept.ResourceVersion = dv.Namespace, dv.Name, dv.UID, dv.ResourceVersion
	kept.DeletionTimestamp, kept.OwnerReferences = dv.DeletionTimestamp, dv.OwnerReferences
	if source := dv.Spec.Source; source != nil && (source.Snapshot != nil || source.PVC != nil) {
		kept.Spec.Source = &cdiv1.DataVolumeSource{Snapshot: source.Snapshot, PVC: source.PVC}
	}
	kept.Status.Phase = dv.Status.Phase
	return kept, nil
}

// stripContent keeps of a snapshot's content, ours or not, which snapshot it is bound to.
func stripContent(obj any) (any, error) {
	content, ok := obj.(*snapshotv1.VolumeSnapshotContent)
	if !ok {
		return obj, nil
	}
	kept := &snapshotv1.VolumeSnapshotContent{TypeMeta: content.TypeMeta}
	kept.Name, kept.UID, kept.ResourceVersion, kept.DeletionTimestamp = content.Name, content.UID, content.ResourceVersion, content.DeletionTimestamp
	kept.Spec.VolumeSnapshotRef = content.Spec.VolumeSnapshotRef
	return kept, nil
}

// stripPod keeps of an importer pod whose it is, whether it is one of ours, and how its containers fare.
func stripPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	pod.ManagedFields = nil
	pod.Spec = corev1.PodSpec{PriorityClassName: pod.Spec.PriorityClassName}
	return pod, nil
}
