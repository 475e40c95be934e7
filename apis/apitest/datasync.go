package apitest

import (
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// DataSyncMod changes a DataSync that is being built.
type DataSyncMod func(*v1alpha1.DataSync)

// DataSync is a new DataSync as the API server would hold it: generation 1, UID "uid-" and its name, without entries.
func DataSync(name string, mods ...DataSyncMod) *v1alpha1.DataSync {
	dataSync := &v1alpha1.DataSync{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "DataSync"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: Namespace, UID: types.UID("uid-" + name), Generation: 1, ResourceVersion: "100",
		},
		Spec: v1alpha1.DataSyncSpec{WorkspaceID: "035"},
	}
	for _, mod := range mods {
		mod(dataSync)
	}
	return dataSync
}

// VM adds an entry of that name: http, 1Gi.
func VM(name string, mods ...func(*v1alpha1.DataSyncVM)) DataSyncMod {
	return func(d *v1alpha1.DataSync) {
		size := resource.MustParse("1Gi")
		vm := v1alpha1.DataSyncVM{
			Name: name, URL: "https://images.example.com/" + name + ".qcow2", SourceType: v1alpha1.SourceHTTP, DiskSize: &size,
		}
		for _, mod := range mods {
			mod(&vm)
		}
		d.Spec.VMs = append(d.Spec.VMs, vm)
	}
}

// Requested sets the annotation that asks for a fresh sync of all images.
func Requested(value string) DataSyncMod {
	return func(d *v1alpha1.DataSync) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, v1alpha1.AnnotationSyncRequestedAt, value)
	}
}

// ControlledBy makes the DataSync the controller of the image.
func ControlledBy(dataSync *v1alpha1.DataSync) ImageMod {
	return func(i *v1alpha1.VMDiskImage) {
		i.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(dataSync, v1alpha1.SchemeGroupVersion.WithKind("DataSync"))}
	}
}

// UsedBy sets how many virtual machines use the image.
func UsedBy(count int32, sample ...string) ImageMod {
	return func(i *v1alpha1.VMDiskImage) {
		i.Status.References = &v1alpha1.References{Count: count, Sample: sample}
	}
}
