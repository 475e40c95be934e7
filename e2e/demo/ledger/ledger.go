// Package ledger follows a recorded history, event by event, and knows at each of them which image and which virtual
// machine stands where, who holds which slot, which downloads are under way and which policy is in force.
package ledger

import (
	"maps"
	"slices"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/pelotech/open-terrain/apis/queue"
	"github.com/pelotech/open-terrain/e2e/history"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// Image is a VMDiskImage as the history has it.
type Image struct {
	Key types.NamespacedName
	UID types.UID
	// Created is the revision of its creation: lower is earlier.
	Created int64
	Status  otv1alpha1.VMDiskImageStatus
	// Slots are the Leases that name it as their holder; more than one would be a bug.
	Slots []string
	// Downloads are the UIDs of all DataVolumes that were ever made for it, in order.
	Downloads []types.UID
}

// Waiting says that the image stands in the queue: it holds no slot and waits for no time.
func (i *Image) Waiting() bool {
	synced := meta.FindStatusCondition(i.Status.Conditions, otv1alpha1.ConditionSynced)
	return len(i.Slots) == 0 && (synced == nil || synced.Reason == otv1alpha1.ReasonQueued)
}

// Ticket orders the images that wait. Before it is in status it is the revision of the creation.
func (i *Image) Ticket() int64 {
	if i.Status.Ticket != 0 {
		return i.Status.Ticket
	}
	return i.Created
}

// Ended says that nothing more will happen by itself.
func (i *Image) Ended() bool {
	return i.Status.Phase == otv1alpha1.PhaseSucceeded || i.Status.Phase == otv1alpha1.PhaseFailed
}

// Ledger is the state after the events that it has taken. Make one with New.
type Ledger struct {
	// Policy in force.
	Policy policy.Policy

	images    map[types.UID]*Image
	holders   map[string]types.UID                       // Lease to image
	volumes   map[types.NamespacedName]*cdiv1.DataVolume // all that exist and are an image's
	snapshots map[types.NamespacedName]*snapshotv1.VolumeSnapshot
	syncs     map[types.NamespacedName]*otv1alpha1.DataSync
	importers map[types.NamespacedName]*corev1.Pod // those that exist, of our class

	machines map[types.UID]*Machine
	disks    map[types.NamespacedName]*cdiv1.DataVolume      // all that exist and are a virtual machine's
	guests   map[types.NamespacedName]*virtv1.VirtualMachine // KubeVirt's, all that exist

	spaces map[types.UID]*Space
}

// New is a ledger before the first event.
func New() *Ledger {
	return &Ledger{
		Policy: policy.Default(), images: map[types.UID]*Image{}, holders: map[string]types.UID{},
		volumes: map[types.NamespacedName]*cdiv1.DataVolume{}, snapshots: map[types.NamespacedName]*snapshotv1.VolumeSnapshot{},
		syncs: map[types.NamespacedName]*otv1alpha1.DataSync{}, importers: map[types.NamespacedName]*corev1.Pod{},
		machines: map[types.UID]*Machine{}, disks: map[types.NamespacedName]*cdiv1.DataVolume{},
		guests: map[types.NamespacedName]*virtv1.VirtualMachine{}, spaces: map[types.UID]*Space{},
	}
}

// Take takes in the next event.
func (l *Ledger) Take(e history.Event) {
	object := e.Object
	if e.Deleted {
		object = e.Prev
	}
	switch o := object.(type) {
	case *otv1alpha1.VMDiskImage:
		l.image(e, o)
	case *coordinationv1.Lease:
		l.lease(e, o)
	case *cdiv1.DataVolume:
		l.volume(e, o)
	case *snapshotv1.VolumeSnapshot:
		keep(l.snapshots, e, o, true)
	case *otv1alpha1.DataSync:
		keep(l.syncs, e, o, true)
	case *corev1.Pod:
		keep(l.importers, e, o, o.Spec.PriorityClassName == otv1alpha1.ImportPriorityClass)
	case *corev1.ConfigMap:
		if o.Name == otv1alpha1.PolicyConfigMapName && !e.Deleted {
			l.Policy, _ = policy.Parse(o.Data)
		}
	default:
		l.takeMachine(e, object)
	}
}

// keep holds what exists and is wanted.
func keep[T any](all map[types.NamespacedName]T, e history.Event, o T, wanted bool) {
	delete(all, e.NamespacedName())
	if wanted && !e.Deleted {
		all[e.NamespacedName()] = o
	}
}

func (l *Ledger) image(e history.Event, o *otv1alpha1.VMDiskImage) {
	if e.Deleted {
		delete(l.images, o.UID)
		return
	}
	known := l.images[o.UID]
	if known == nil {
		known = &Image{Key: e.NamespacedName(), UID: o.UID, Created: e.Revision}
		l.images[o.UID] = known
	}
	known.Status = o.Status
}

func (l *Ledger) lease(e history.Event, o *coordinationv1.Lease) {
	if !strings.HasPrefix(o.Name, otv1alpha1.DiskSyncSlotPrefix) {
		return
	}
	if former := l.images[l.holders[o.Name]]; former != nil {
		former.Slots = slices.DeleteFunc(former.Slots, func(s string) bool { return s == o.Name })
	}
	delete(l.holders, o.Name)
	holder := strings.Split(ptr.Deref(o.Spec.HolderIdentity, ""), "/")
	if e.Deleted || len(holder) != 3 {
		return
	}
	l.holders[o.Name] = types.UID(holder[2])
	if image := l.images[l.holders[o.Name]]; image != nil {
		image.Slots = append(image.Slots, o.Name)
	}
}

func (l *Ledger) volume(e history.Event, o *cdiv1.DataVolume) {
	image := l.OwnerOf(o)
	if image == nil {
		l.disk(e, o)
		return
	}
	keep(l.volumes, e, o, true)
	if !slices.Contains(image.Downloads, o.UID) {
		image.Downloads = append(image.Downloads, o.UID)
	}
}

// OwnerOf is the image that controls an object, or nil.
func (l *Ledger) OwnerOf(o metav1.Object) *Image {
	owner := metav1.GetControllerOf(o)
	if owner == nil {
		return nil
	}
	return l.images[owner.UID]
}

// Images in the order of their creation.
func (l *Ledger) Images() []*Image {
	return slices.SortedFunc(maps.Values(l.images), func(a, b *Image) int { return int(a.Created - b.Created) })
}

// Holder is the image that holds the slot, or nil.
func (l *Ledger) Holder(slot string) *Image { return l.images[l.holders[slot]] }

// Held is the number of slots that are taken.
func (l *Ledger) Held() int { return len(l.holders) }

// Syncing is the number of images in that phase.
func (l *Ledger) Syncing() int {
	n := 0
	for _, image := range l.images {
		if image.Status.Phase == otv1alpha1.PhaseSyncing {
			n++
		}
	}
	return n
}

// Unfinished are the DataVolumes of images that exist and have not Succeeded: the downloads that may be under way.
func (l *Ledger) Unfinished() []*cdiv1.DataVolume {
	var unfinished []*cdiv1.DataVolume
	for _, dv := range l.volumes {
		if dv.Status.Phase != cdiv1.Succeeded {
			unfinished = append(unfinished, dv)
		}
	}
	return unfinished
}

// Importing is the number of importer pods of ours that run: they download, also while they are being deleted.
func (l *Ledger) Importing() int {
	n := 0
	for _, pod := range l.importers {
		if pod.Status.Phase == corev1.PodRunning {
			n++
		}
	}
	return n
}

// Snapshot is the VolumeSnapshot of that name, or nil.
func (l *Ledger) Snapshot(key types.NamespacedName) *snapshotv1.VolumeSnapshot {
	return l.snapshots[key]
}

// Image is the image of that name, or nil.
func (l *Ledger) Image(key types.NamespacedName) *Image {
	for _, image := range l.images {
		if image.Key == key {
			return image
		}
	}
	return nil
}

// Snapshots is how many VolumeSnapshots the image owns.
func (l *Ledger) Snapshots(image *Image) int {
	n := 0
	for _, snapshot := range l.snapshots {
		if metav1.GetControllerOf(snapshot) != nil && metav1.GetControllerOf(snapshot).UID == image.UID {
			n++
		}
	}
	return n
}

// DataSync is the one of that name, or nil.
func (l *Ledger) DataSync(key types.NamespacedName) *otv1alpha1.DataSync { return l.syncs[key] }

// Position of an image in the queue, from 1; 0 when it does not wait.
func (l *Ledger) Position(image *Image) int {
	if !image.Waiting() {
		return 0
	}
	var items []queue.Item
	for _, other := range l.images {
		if other.Waiting() {
			items = append(items, queue.Item{ID: string(other.UID), Ticket: other.Ticket()})
		}
	}
	return queue.Position(items, string(image.UID))
}
