package main

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var diskSync = set{
	operator: "disk-sync-operator", options: diskSyncOptions,
	kinds: []client.Object{
		&otv1alpha1.VMDiskImage{}, &cdiv1.DataVolume{}, &snapshotv1.VolumeSnapshot{}, &corev1.PersistentVolumeClaim{},
		&snapshotv1.VolumeSnapshotContent{}, &corev1.Pod{}, &coordinationv1.Lease{}, &corev1.ConfigMap{},
	},
	indexes: []index{{&corev1.PersistentVolumeClaim{}, "metadata.uid", func(o client.Object) []string { return []string{string(o.GetUID())} }}},
}

// diskSyncOptions are the disk-sync-operator's CacheOptions, with its default namespace.
func diskSyncOptions() (cache.Options, error) {
	scheme := apiruntime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{clientgoscheme.AddToScheme, otv1alpha1.AddToScheme, cdiv1.AddToScheme, snapshotv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return cache.Options{}, err
		}
	}
	ours, err := labels.NewRequirement(otv1alpha1.LabelImage, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, err
	}
	children := cache.ByObject{Label: labels.NewSelector().Add(*ours)}
	own := func(byObject cache.ByObject) cache.ByObject {
		byObject.Namespaces = map[string]cache.Config{"sync-operator": {}}
		return byObject
	}
	return cache.Options{
		Scheme:           scheme,
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&cdiv1.DataVolume{}:                 {},
			&snapshotv1.VolumeSnapshot{}:        children,
			&corev1.PersistentVolumeClaim{}:     children,
			&snapshotv1.VolumeSnapshotContent{}: {Transform: stripContent},
			&corev1.Pod{}:                       {Label: labels.SelectorFromSet(labels.Set{"cdi.kubevirt.io": "importer"}), Transform: stripPod},
			&coordinationv1.Lease{}:             own(cache.ByObject{Label: labels.SelectorFromSet(labels.Set{otv1alpha1.LabelSlot: otv1alpha1.DiskSyncQueue})}),
			&corev1.ConfigMap{}:                 own(cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", otv1alpha1.PolicyConfigMapName)}),
		},
	}, nil
}

func stripContent(obj any) (any, error) {
	content, ok := obj.(*snapshotv1.VolumeSnapshotContent)
	if !ok {
		return obj, nil
	}
	kept := &snapshotv1.VolumeSnapshotContent{TypeMeta: content.TypeMeta}
	kept.Name, kept.UID, kept.ResourceVersion = content.Name, content.UID, content.ResourceVersion
	kept.Spec.VolumeSnapshotRef = content.Spec.VolumeSnapshotRef
	return kept, nil
}

func stripPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	pod.ManagedFields = nil
	pod.Spec = corev1.PodSpec{}
	return pod, nil
}
