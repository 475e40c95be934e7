package lab

import (
	"context"
	"fmt"
	"slices"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	ac "github.com/pelotech/open-terrain/apis/ot/v1alpha1/applyconfiguration/ot/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// vmOperator is the field manager that claims images.
const vmOperator = "vm-operator"

// use says that so many virtual machines use an image, as vm-operator does: bound to the very state that it looked at.
func (s *Scene) use(ctx context.Context, name string, count int32) error {
	for {
		image, err := s.Image(ctx, name)
		if err != nil {
			return err
		}
		err = s.claim(ctx, image, count)
		if !apierrors.IsConflict(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// claim writes the count on the image as it was read; another write in between is a conflict.
func (s *Scene) claim(ctx context.Context, image *otv1alpha1.VMDiskImage, count int32) error {
	refs := ac.References().WithCount(count).WithLastReferencedAt(metav1.Now())
	for i := range count {
		refs = refs.WithSample(fmt.Sprintf("%s/vm-%d", s.Namespace, i))
	}
	apply := ac.VMDiskImage(image.Name, image.Namespace).WithUID(image.UID).WithResourceVersion(image.ResourceVersion).
		WithStatus(ac.VMDiskImageStatus().WithReferences(refs))
	return s.Client.Status().Apply(ctx, apply, client.FieldOwner(vmOperator), client.ForceOwnership)
}

// Use an image by so many virtual machines, none to let go of it.
func Use(name string, count int32) Step {
	return act(fmt.Sprintf("%d virtual machines use %s", count, name), func(ctx context.Context, s *Scene) error {
		return s.use(ctx, name, count)
	})
}

// AwaitProtected waits for the finalizer, or for its end.
func AwaitProtected(name string, protected bool) Step {
	return Await(name, fmt.Sprintf("protected: %t", protected), func(image *otv1alpha1.VMDiskImage) bool { return isProtected(image) == protected })
}

func isProtected(image *otv1alpha1.VMDiskImage) bool {
	return slices.Contains(image.Finalizers, otv1alpha1.FinalizerProtection)
}
