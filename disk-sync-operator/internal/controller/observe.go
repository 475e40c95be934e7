package controller

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups=pelotech.ot,resources=vmdiskimages,verbs=get;list;watch
// +kubebuilder:rbac:groups=cdi.kubevirt.io,resources=datavolumes,verbs=get;list;watch
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshots;volumesnapshotcontents,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims;pods,verbs=get;list;watch

// observe does every read of a reconcile, from the caches. The cached client waits until a cache shows what this process
// has written to the object that is read; but what others wrote to one kind may show before what they wrote to another.
// Without an image the snapshot is empty.
func (r *Images) observe(ctx context.Context, key types.NamespacedName) (plan.Snapshot, error) {
	image := &v1alpha1.VMDiskImage{}
	if found, err := read(ctx, r.client, key, image); err != nil || !found {
		return plan.Snapshot{}, err
	}
	owned, err := r.owned(ctx, r.cache, client.MatchingFields{ownerUID: string(image.UID)}, image)
	if err != nil {
		return plan.Snapshot{}, err
	}
	return r.look(ctx, r.client, image, owned)
}

// observeLive does the same from the API server itself. The image is read after its children: status is ahead of the
// deed, so that no child is taken for one of a former revision that another leader has just made for the next one.
func (r *Images) observeLive(ctx context.Context, key types.NamespacedName) (plan.Snapshot, error) {
	image := &v1alpha1.VMDiskImage{}
	if found, err := read(ctx, r.live, key, image); err != nil || !found {
		return plan.Snapshot{}, err
	}
	owned, err := r.owned(ctx, r.live, client.MatchingLabels{v1alpha1.LabelImage: string(image.UID)}, image)
	if err != nil {
		return plan.Snapshot{}, err
	}
	uid := image.UID
	if found, err := read(ctx, r.live, key, image); err != nil || !found || image.UID != uid {
		return plan.Snapshot{}, err
	}
	return r.look(ctx, r.live, image, owned)
}

// look reads what belongs to the image. Of the children that it controls, those of other revisions are kept apart.
func (r *Images) look(ctx context.Context, from client.Reader, image *v1alpha1.VMDiskImage, owned []client.Object) (plan.Snapshot, error) {
	st, err := r.standing(ctx, image)
	if err != nil {
		return plan.Snapshot{}, err
	}
	s := plan.Snapshot{Image: image, Slot: st.slot, Hold: st.hold, Ending: st.ending, Tail: st.tail, Ahead: st.ahead, SeenUID: r.sightings.of(image)}
	child := types.NamespacedName{Namespace: image.Namespace, Name: v1alpha1.ChildName(image.Name, plan.Revision(image))}
	dv := &cdiv1.DataVolume{}
	if found, err := read(ctx, from, child, dv); err != nil {
		return s, err
	} else if found {
		s.DataVolume = dv
		if err := r.observeVolume(ctx, from, child, &s); err != nil {
			return s, err
		}
	}
	if err := observeSnapshot(ctx, from, child, &s); err != nil {
		return s, err
	}
	return s, r.observeOthers(ctx, child.Name, owned, &s)
}

// standing asks the API server itself before an attempt is said to have lost its slot: with two leaders, the news of the
// slot may come after the news of the attempt.
func (r *Images) standing(ctx context.Context, image *v1alpha1.VMDiskImage) (standing, error) {
	holder := holderIdentity(image)
	st := r.admission.standing(holder)
	if st.slot != "" || plan.StageOf(&image.Status) != plan.Syncing {
		return st, nil
	}
	if err := r.admission.reload(ctx); err != nil {
		return st, err
	}
	return r.admission.standing(holder), nil
}

// observeVolume reads the claim and, while it is being filled, the importer pod.
func (r *Images) observeVolume(ctx context.Context, from client.Reader, child types.NamespacedName, s *plan.Snapshot) error {
	r.sightings.note(s.Image, s.DataVolume)
	claim := &corev1.PersistentVolumeClaim{}
	if found, err := read(ctx, from, child, claim); err != nil || !found {
		return err
	}
	s.Claim = claim
	if s.DataVolume.Status.Phase == cdiv1.Succeeded {
		return nil
	}
	for _, owner := range importerOwners(claim) {
		pod := &corev1.Pod{}
		found, err := read(ctx, from, types.NamespacedName{Namespace: child.Namespace, Name: "importer-" + owner}, pod)
		if err != nil {
			return err
		}
		if ref := metav1.GetControllerOf(pod); found && ref != nil && ref.Name == owner {
			s.Importer = pod
			return nil
		}
	}
	return nil
}

func observeSnapshot(ctx context.Context, from client.Reader, child types.NamespacedName, s *plan.Snapshot) error {
	vs := &snapshotv1.VolumeSnapshot{}
	if found, err := read(ctx, from, child, vs); err != nil || !found {
		return err
	}
	s.VolumeSnapshot = vs
	if vs.Status == nil || ptr.Deref(vs.Status.BoundVolumeSnapshotContentName, "") == "" {
		return nil
	}
	content := &snapshotv1.VolumeSnapshotContent{}
	found, err := read(ctx, from, types.NamespacedName{Name: *vs.Status.BoundVolumeSnapshotContentName}, content)
	if found {
		s.Content = content
	}
	return err
}

func read(ctx context.Context, from client.Reader, key types.NamespacedName, obj client.Object) (found bool, err error) {
	err = from.Get(ctx, key, obj)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %T %s: %w", obj, key, err)
	}
	return true, nil
}

func ownedBy(obj metav1.Object, uid types.UID) bool {
	owner := metav1.GetControllerOf(obj)
	return owner != nil && owner.UID == uid
}
