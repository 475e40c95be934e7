package invariant

import (
	"slices"
	"strings"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/pelotech/open-terrain/e2e/history"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// state is what exists after an event.
type state struct {
	namespace string
	images    map[types.UID]*otv1alpha1.VMDiskImage
	volumes   map[types.UID]*cdiv1.DataVolume
	complete  map[types.UID]bool // DataVolumes that have Succeeded, even if CDI imports into them again
	claims    map[types.NamespacedName]*corev1.PersistentVolumeClaim
	snapshots map[types.NamespacedName]*snapshotv1.VolumeSnapshot
	contents  map[string]*snapshotv1.VolumeSnapshotContent
	slots     map[string]string // holder by name of the Lease; free ones are left out
	ending    map[string]bool   // Leases that are marked as ending
	policies  []inForce
}

// inForce is a policy and when it was written.
type inForce struct {
	policy.Policy
	since time.Time
}

// replay calls look after each event, with the state that it led to.
func replay(s Settings, events []history.Event, look func(*state, history.Event)) *state {
	st := &state{
		namespace: s.Namespace,
		images:    map[types.UID]*otv1alpha1.VMDiskImage{},
		volumes:   map[types.UID]*cdiv1.DataVolume{},
		complete:  map[types.UID]bool{},
		claims:    map[types.NamespacedName]*corev1.PersistentVolumeClaim{},
		snapshots: map[types.NamespacedName]*snapshotv1.VolumeSnapshot{},
		contents:  map[string]*snapshotv1.VolumeSnapshotContent{},
		slots:     map[string]string{},
		ending:    map[string]bool{},
		policies:  []inForce{{Policy: policy.Default()}},
	}
	for _, e := range events {
		st.apply(e)
		look(st, e)
	}
	return st
}

func (st *state) apply(e history.Event) {
	switch o := latest(e).(type) {
	case *otv1alpha1.VMDiskImage:
		keep(st.images, o.UID, o, e.Deleted)
	case *cdiv1.DataVolume:
		keep(st.volumes, o.UID, o, e.Deleted)
		st.complete[o.UID] = st.complete[o.UID] || o.Status.Phase == cdiv1.Succeeded
	case *corev1.PersistentVolumeClaim:
		keep(st.claims, e.NamespacedName(), o, e.Deleted)
	case *snapshotv1.VolumeSnapshot:
		keep(st.snapshots, e.NamespacedName(), o, e.Deleted)
	case *snapshotv1.VolumeSnapshotContent:
		keep(st.contents, o.Name, o, e.Deleted)
	case *coordinationv1.Lease:
		st.applyLease(o, e)
	case *corev1.ConfigMap:
		st.applyPolicy(o, e)
	}
}

func (st *state) applyLease(lease *coordinationv1.Lease, e history.Event) {
	if st.isSlot(lease) {
		keep(st.slots, lease.Name, holder(lease), e.Deleted || holder(lease) == "")
		marked := lease.Annotations[otv1alpha1.AnnotationEnding] != ""
		keep(st.ending, lease.Name, marked, e.Deleted || !marked)
	}
}

func keep[K comparable, V any](m map[K]V, key K, value V, gone bool) {
	if gone {
		delete(m, key)
		return
	}
	m[key] = value
}

// applyPolicy follows the rule that a bad ConfigMap changes nothing.
func (st *state) applyPolicy(cm *corev1.ConfigMap, e history.Event) {
	if cm.Namespace != st.namespace || cm.Name != otv1alpha1.PolicyConfigMapName {
		return
	}
	next, errs := policy.Parse(cm.Data)
	if e.Deleted {
		next, errs = policy.Default(), nil
	}
	if len(errs) == 0 {
		st.policies = append(st.policies, inForce{Policy: next, since: e.Seen})
	}
}

// most is the highest value that a policy in force at that time, or until a lag before it, has for something.
func (st *state) most(at time.Time, lag time.Duration, value func(policy.Policy) int) int {
	last := len(st.policies) - 1
	most := value(st.policies[last].Policy)
	for i := last; i > 0 && at.Sub(st.policies[i].since) < lag; i-- {
		most = max(most, value(st.policies[i-1].Policy))
	}
	return most
}

func concurrency(p policy.Policy) int { return p.Concurrency }

func (st *state) isSlot(lease *coordinationv1.Lease) bool {
	return lease.Namespace == st.namespace && strings.HasPrefix(lease.Name, otv1alpha1.DiskSyncSlotPrefix)
}

func holder(lease *coordinationv1.Lease) string {
	if lease == nil {
		return ""
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

func (st *state) holds(image *otv1alpha1.VMDiskImage) bool {
	return st.slotsOf(identity(image)) > 0
}

func (st *state) slotsOf(holder string) int {
	n := 0
	for _, h := range st.slots {
		if h == holder {
			n++
		}
	}
	return n
}

func identity(image *otv1alpha1.VMDiskImage) string {
	return otv1alpha1.SlotHolder(types.NamespacedName{Namespace: image.Namespace, Name: image.Name}, image.UID)
}

// uidOf is the image's UID in a holder identity.
func uidOf(holder string) types.UID {
	return types.UID(holder[strings.LastIndex(holder, "/")+1:])
}

// ownerOf is the UID of the VMDiskImage that controls the object, or empty.
func ownerOf(object metav1.Object) types.UID {
	if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == "VMDiskImage" {
		return owner.UID
	}
	return ""
}

// active lists the downloads: of one image, or of all when the UID is empty. One that CDI does once more, because somebody
// has deleted the claim of a volume that was complete, is none of the operator's: it asks nobody for a slot.
func (st *state) active(image types.UID) []*cdiv1.DataVolume {
	return slices.DeleteFunc(st.unfinished(image), func(dv *cdiv1.DataVolume) bool { return st.complete[dv.UID] })
}

// unfinished lists the DataVolumes of images that have not Succeeded.
func (st *state) unfinished(image types.UID) []*cdiv1.DataVolume {
	var list []*cdiv1.DataVolume
	for _, dv := range st.volumes {
		owner := ownerOf(dv)
		if owner != "" && (image == "" || owner == image) && dv.Status.Phase != cdiv1.Succeeded {
			list = append(list, dv)
		}
	}
	return list
}

func (st *state) syncing() int {
	n := 0
	for _, image := range st.images {
		if image.Status.Phase == otv1alpha1.PhaseSyncing {
			n++
		}
	}
	return n
}

// waits says whether the image stands in the queue, by its status, and with which ticket. One without a status stands
// there with the resourceVersion that will be its ticket.
func waits(image *otv1alpha1.VMDiskImage) (ticket int64, yes bool) {
	if image == nil || image.DeletionTimestamp != nil {
		return 0, false
	}
	status := &image.Status
	synced := meta.FindStatusCondition(status.Conditions, otv1alpha1.ConditionSynced)
	if status.Revision == "" || synced == nil {
		return number(image.ResourceVersion), true
	}
	queued := status.Phase == otv1alpha1.PhaseQueued && synced.Reason == otv1alpha1.ReasonQueued && status.NextAttemptTime == nil
	return status.Ticket, queued && status.Revision == otv1alpha1.RevisionOf(image)
}
