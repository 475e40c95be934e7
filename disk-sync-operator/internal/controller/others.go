package controller

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cloning says that the DataVolume still needs the snapshot or the claim that it is a clone of.
func cloning(dv *cdiv1.DataVolume) bool {
	return sourceOf(dv) != "" && dv.Status.Phase != cdiv1.Succeeded
}

// sourceOf a clone, empty of an import.
func sourceOf(dv *cdiv1.DataVolume) string {
	switch source := dv.Spec.Source; {
	case source == nil:
	case source.Snapshot != nil:
		return snapshotSource(source.Snapshot.Namespace, source.Snapshot.Name)
	case source.PVC != nil:
		return claimSource(source.PVC.Namespace, source.PVC.Name)
	}
	return ""
}

func snapshotSource(namespace, name string) string { return "snapshot/" + namespace + "/" + name }
func claimSource(namespace, name string) string    { return "pvc/" + namespace + "/" + name }

// owned lists the DataVolumes and VolumeSnapshots that the image controls. What is chosen by label or index is only a
// choice: whose a child is, its owner's UID decides.
func (r *Images) owned(ctx context.Context, from client.Reader, chosen client.ListOption, image *v1alpha1.VMDiskImage) ([]client.Object, error) {
	var own []client.Object
	volumes, snapshots := &cdiv1.DataVolumeList{}, &snapshotv1.VolumeSnapshotList{}
	for _, list := range []client.ObjectList{volumes, snapshots} {
		if err := from.List(ctx, list, client.InNamespace(image.Namespace), chosen); err != nil {
			return nil, fmt.Errorf("list the children of %s: %w", image.Name, err)
		}
	}
	for i := range volumes.Items {
		own = append(own, &volumes.Items[i])
	}
	for i := range snapshots.Items {
		own = append(own, &snapshots.Items[i])
	}
	mine := own[:0]
	for _, child := range own {
		if ownedBy(child, image.UID) {
			mine = append(mine, child)
		}
	}
	return mine, nil
}

// observeOthers keeps the children of other revisions, and looks for clones where children may be deleted. A clone that
// begins at this very moment is not seen: whoever begins one now has an outdated artifact.
func (r *Images) observeOthers(ctx context.Context, current string, owned []client.Object, s *plan.Snapshot) (err error) {
	settled := plan.StageOf(&s.Image.Status) == plan.Succeeded
	if settled && (s.Image.Spec.VolumePolicy == v1alpha1.VolumeDeleteAfterSnapshot || s.Image.Status.ExpiresAt != nil) {
		if s.Clone, err = r.cloneOf(ctx, claimSource(s.Image.Namespace, current)); err != nil {
			return err
		}
		if s.SnapshotClone, err = r.cloneOf(ctx, snapshotSource(s.Image.Namespace, current)); err != nil {
			return err
		}
	}
	for _, child := range owned {
		if child.GetName() == current {
			continue
		}
		other := plan.Child{Object: child}
		if settled {
			source := claimSource(child.GetNamespace(), child.GetName())
			if _, is := child.(*snapshotv1.VolumeSnapshot); is {
				source = snapshotSource(child.GetNamespace(), child.GetName())
			}
			if other.Clone, err = r.cloneOf(ctx, source); err != nil {
				return err
			}
		}
		s.Others = append(s.Others, other)
	}
	return nil
}

// cloneOf names a DataVolume, of any namespace, that is being cloned from there, or is empty.
func (r *Images) cloneOf(ctx context.Context, source string) (string, error) {
	clones := &cdiv1.DataVolumeList{}
	if err := r.cache.List(ctx, clones, client.MatchingFields{cloneSource: source}, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("look for clones of %s: %w", source, err)
	}
	first := ""
	for i := range clones.Items {
		if name := client.ObjectKeyFromObject(&clones.Items[i]).String(); first == "" || name < first {
			first = name
		}
	}
	return first, nil
}
