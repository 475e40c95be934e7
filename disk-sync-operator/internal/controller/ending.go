package controller

import (
	"context"
	"fmt"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// end marks the Lease of a slot whose attempt has ended, unless it is under another hold by now. Between the end of an
// attempt and that of its pods the slot is still the image's, and another leader's request to create the attempt's DataVolume
// may be on its way: by the mark the API server refuses it. The mark goes when the slot is passed on.
func (a *Admission) end(ctx context.Context, hold string) error {
	lease := a.under(hold)
	if lease == nil || isEnding(lease) {
		return nil
	}
	lease = lease.DeepCopy()
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, v1alpha1.AnnotationEnding, "true")
	if err := a.client.Update(ctx, lease); err != nil {
		a.refresh(ctx, lease, err)
		return fmt.Errorf("mark the slot %s as ending: %w", lease.Name, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.slots.observe(lease)
	return nil
}

// under is the Lease that is under that hold, and not about to be passed on.
func (a *Admission) under(hold string) *coordinationv1.Lease {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ended := a.ended[hold]; ended || hold == "" {
		return nil
	}
	for _, lease := range a.slots.leases {
		if holdOf(lease) == hold {
			return lease
		}
	}
	return nil
}

func isEnding(lease *coordinationv1.Lease) bool {
	return lease.Annotations[v1alpha1.AnnotationEnding] != ""
}
