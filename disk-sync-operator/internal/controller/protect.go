package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	ac "github.com/pelotech/open-terrain/apis/ot/v1alpha1/applyconfiguration/ot/v1alpha1"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// protectionOwner is the field manager of the finalizer. It is not that of the status, which applies leave out here.
const protectionOwner = FieldOwner + "-protection"

// +kubebuilder:rbac:groups=pelotech.ot,resources=vmdiskimages,verbs=patch

// protect has the finalizer follow the references, and gives the image as it is then; nil when it went with its finalizer.
// Both writes name the version that was looked at: whoever claims the image in between makes them conflicts.
func (r *Images) protect(ctx context.Context, image *v1alpha1.VMDiskImage) (*v1alpha1.VMDiskImage, error) {
	switch plan.ProtectionOf(image) {
	case plan.AddProtection:
		log.FromContext(ctx).Info("the image is in use: adding the finalizer")
		return r.addProtection(ctx, image)
	case plan.RemoveProtection:
		log.FromContext(ctx).Info("nothing uses the image any more: removing the finalizer")
		return r.removeProtection(ctx, image)
	default:
		return image, nil
	}
}

func (r *Images) addProtection(ctx context.Context, image *v1alpha1.VMDiskImage) (*v1alpha1.VMDiskImage, error) {
	apply := ac.VMDiskImage(image.Name, image.Namespace).WithUID(image.UID).WithResourceVersion(image.ResourceVersion).
		WithFinalizers(v1alpha1.FinalizerProtection)
	if err := r.client.Apply(ctx, apply, client.FieldOwner(protectionOwner), client.ForceOwnership); err != nil {
		return nil, fmt.Errorf("add the finalizer: %w", err)
	}
	next := image.DeepCopy()
	next.Finalizers, next.ResourceVersion = append(next.Finalizers, v1alpha1.FinalizerProtection), ptr.Deref(apply.ResourceVersion, "")
	return next, nil
}

// removeProtection is no apply: one that leaves the finalizer out would leave it there when somebody else has it among
// his fields, too, as after a restored backup, and the image could never go.
func (r *Images) removeProtection(ctx context.Context, image *v1alpha1.VMDiskImage) (*v1alpha1.VMDiskImage, error) {
	rest := slices.DeleteFunc(slices.Clone(image.Finalizers), func(f string) bool { return f == v1alpha1.FinalizerProtection })
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": image.UID, "resourceVersion": image.ResourceVersion, "finalizers": rest,
	}})
	if err != nil {
		return nil, fmt.Errorf("encode the finalizers: %w", err)
	}
	next := image.DeepCopy()
	err = r.client.Patch(ctx, next, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(protectionOwner))
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("remove the finalizer: %w", err)
	case next.DeletionTimestamp != nil && len(next.Finalizers) == 0:
		return nil, nil // that was the last one
	}
	return next, nil
}
