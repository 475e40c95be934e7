package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func read(ctx context.Context, from client.Reader, key types.NamespacedName, obj client.Object) (found bool, err error) {
	err = from.Get(ctx, key, obj)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, wrap(fmt.Sprintf("read %s %s", obj.GetObjectKind().GroupVersionKind().Kind, key), err)
}

// wrap says what was being done.
func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
