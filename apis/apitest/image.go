// Package apitest builds objects of the API for tests, and reads conditions off them.
//
// A builder's defaults are valid; mods say only what matters to the test:
//
//	apitest.Image("a", apitest.From(v1alpha1.SourceBlank, ""), apitest.Attempts(2))
package apitest

import (
	"slices"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Namespace that objects are built in, unless a mod says otherwise.
const Namespace = "lab"

// ImageMod changes an image that is being built.
type ImageMod func(*v1alpha1.VMDiskImage)

// Image is a new VMDiskImage as the API server would hold it: http, 1Gi, generation 1, UID "uid-" and its name.
func Image(name string, mods ...ImageMod) *v1alpha1.VMDiskImage {
	image := &v1alpha1.VMDiskImage{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "VMDiskImage"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: Namespace, UID: types.UID("uid-" + name), Generation: 1, ResourceVersion: "100",
		},
		Spec: v1alpha1.VMDiskImageSpec{
			URL:          "https://images.example.com/" + name + ".qcow2",
			SourceType:   v1alpha1.SourceHTTP,
			DiskSize:     resource.MustParse("1Gi"),
			VolumePolicy: v1alpha1.VolumeRetain,
		},
	}
	for _, mod := range mods {
		mod(image)
	}
	return image
}

// In puts the object into the namespace.
func In(namespace string) ImageMod {
	return func(i *v1alpha1.VMDiskImage) { i.Namespace = namespace }
}

// ResourceVersion sets the resourceVersion.
func ResourceVersion(rv string) ImageMod {
	return func(i *v1alpha1.VMDiskImage) { i.ResourceVersion = rv }
}

// From sets sourceType and url. A source that needs a secret gets one.
func From(source v1alpha1.SourceType, url string) ImageMod {
	return func(i *v1alpha1.VMDiskImage) {
		i.Spec.SourceType, i.Spec.URL = source, url
		if source == v1alpha1.SourceS3 && i.Spec.SecretRef == "" {
			i.Spec.SecretRef = "bucket-keys"
		}
	}
}

// AllowedIn grants the image to namespaces: all, or, with a selector, those whose labels match it.
func AllowedIn(from v1alpha1.NamespacesFrom, selector *metav1.LabelSelector) ImageMod {
	return func(i *v1alpha1.VMDiskImage) {
		i.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: from, Selector: selector}
	}
}

// Spec changes the spec by hand.
func Spec(change func(*v1alpha1.VMDiskImageSpec)) ImageMod {
	return func(i *v1alpha1.VMDiskImage) { change(&i.Spec) }
}

// SyncRequested sets the annotation that asks for a fresh sync.
func SyncRequested(value string) ImageMod {
	return func(i *v1alpha1.VMDiskImage) {
		metav1.SetMetaDataAnnotation(&i.ObjectMeta, v1alpha1.AnnotationSyncRequestedAt, value)
	}
}

// Deleted sets a deletionTimestamp.
func Deleted(at metav1.Time) ImageMod {
	return func(i *v1alpha1.VMDiskImage) { i.DeletionTimestamp = &at }
}

// Attempts sets the number of attempts begun.
func Attempts(n int32) ImageMod {
	return func(i *v1alpha1.VMDiskImage) { i.Status.Attempts = n }
}

// Condition sets a condition, and the phase that follows from all of them.
func Condition(kind string, status metav1.ConditionStatus, reason string, since metav1.Time) ImageMod {
	return func(i *v1alpha1.VMDiskImage) {
		c := metav1.Condition{
			Type: kind, Status: status, Reason: reason, LastTransitionTime: since, ObservedGeneration: i.Generation,
		}
		i.Status.Conditions = slices.DeleteFunc(i.Status.Conditions, func(o metav1.Condition) bool { return o.Type == kind })
		i.Status.Conditions = append(i.Status.Conditions, c)
		i.Status.Phase = v1alpha1.PhaseOf(i.Status.Conditions)
	}
}

// Status changes the status by hand.
func Status(change func(*v1alpha1.VMDiskImageStatus)) ImageMod {
	return func(i *v1alpha1.VMDiskImage) { change(&i.Status) }
}

// Entered makes the status one of the revision that the image has now: call it last.
func Entered() ImageMod {
	return func(i *v1alpha1.VMDiskImage) {
		i.Status.Revision, i.Status.ObservedGeneration = v1alpha1.RevisionOf(i), i.Generation
	}
}
