package clone

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pelotech/open-terrain/e2e/sim/cdi/objects"
)

// source is what a DataVolume clones from.
type source struct {
	kind string // snapshot or pvc, as CDI's messages have it
	key  types.NamespacedName
}

const (
	ofSnapshot = "snapshot"
	ofClaim    = "pvc"
)

// Is tells whether a DataVolume clones.
func Is(dv *cdiv1.DataVolume) bool {
	return dv.Spec.Source != nil && (dv.Spec.Source.Snapshot != nil || dv.Spec.Source.PVC != nil)
}

func sourceOf(dv *cdiv1.DataVolume) source {
	if s := dv.Spec.Source.Snapshot; s != nil {
		return source{ofSnapshot, types.NamespacedName{Namespace: s.Namespace, Name: s.Name}}
	}
	s := source{ofClaim, types.NamespacedName{Namespace: dv.Spec.Source.PVC.Namespace, Name: dv.Spec.Source.PVC.Name}}
	if s.key.Namespace == "" {
		s.key.Namespace = dv.Namespace
	}
	return s
}

// found is a source as it is now.
type found struct {
	uid   types.UID
	size  resource.Quantity
	ready bool
}

// unfit is why CDI does not begin a clone; it looks again when something changes.
type unfit struct{ reason, message string }

func (u unfit) Error() string { return u.message }

// find looks for the source; what CDI would complain about is unfit.
func (s source) find(ctx context.Context, c client.Reader, dv *cdiv1.DataVolume) (found, error) {
	f, err := s.read(ctx, c)
	if apierrors.IsNotFound(err) {
		return found{}, unfit{objects.ReasonCloneWithoutSource, fmt.Sprintf("The source %s %s doesn't exist", s.kind, s.key.Name)}
	}
	if err == nil {
		err = s.check(f, dv)
	}
	return f, err
}

func (s source) read(ctx context.Context, c client.Reader) (found, error) {
	if s.kind == ofClaim {
		var claim corev1.PersistentVolumeClaim
		err := c.Get(ctx, s.key, &claim)
		return found{claim.UID, claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Phase == corev1.ClaimBound}, err
	}
	var snapshot snapshotv1.VolumeSnapshot
	err := c.Get(ctx, s.key, &snapshot)
	f := found{uid: snapshot.UID, size: *resource.NewQuantity(-1, resource.BinarySI)}
	if st := snapshot.Status; st != nil {
		f.ready = st.ReadyToUse != nil && *st.ReadyToUse
		if st.RestoreSize != nil {
			f.size = *st.RestoreSize
		}
	}
	return f, err
}

// check compares the sizes as CDI does: a snapshot's with the request, without the filesystem's overhead.
func (s source) check(f found, dv *cdiv1.DataVolume) error {
	invalid := func(why string) error {
		return unfit{objects.ReasonCloneValidationFailed, "The clone doesn't meet the validation requirements: " + why}
	}
	if f.size.Sign() < 0 {
		return invalid("snapshot has no restore size")
	}
	var asked resource.Quantity
	if dv.Spec.PVC != nil {
		asked = dv.Spec.PVC.Resources.Requests[corev1.ResourceStorage]
	} else if dv.Spec.Storage != nil && s.kind == ofSnapshot {
		asked = dv.Spec.Storage.Resources.Requests[corev1.ResourceStorage]
	}
	if !asked.IsZero() && asked.Value() < f.size.Value() {
		return invalid(fmt.Sprintf("target resources requests storage size is smaller than the source %d < %d", asked.Value(), f.size.Value()))
	}
	return nil
}
