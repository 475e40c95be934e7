package controller

import (
	"context"

	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups=kubevirt.io,resources=virtualmachineinstances,verbs=delete

// deleteInstance takes away an instance whose guest was never started: the very version that was seen, which had no guest.
func (r *VirtualMachines) deleteInstance(ctx context.Context, s plan.Snapshot) error {
	instance := s.Instance.DeepCopy()
	err := r.client.Delete(ctx, instance, client.Preconditions{UID: new(instance.GetUID()), ResourceVersion: new(instance.GetResourceVersion())})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return wrap("delete the instance that has never run", err)
}
