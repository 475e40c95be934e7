package invariant

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const operator = "sync-operator"

// story is a history made by hand.
type story struct {
	events []history.Event
	now    time.Time
	last   map[history.Key]client.Object
}

func newStory() *story {
	return &story{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), last: map[history.Key]client.Object{}}
}

// later lets time pass.
func (s *story) later(d time.Duration) { s.now = s.now.Add(d) }

func (s *story) put(resource string, object client.Object) {
	key := history.Key{Resource: resource, Namespace: object.GetNamespace(), Name: object.GetName()}
	object.SetResourceVersion(strconv.Itoa(len(s.events) + 1))
	s.events = append(s.events, history.Event{
		Key: key, Revision: int64(len(s.events) + 1), Seen: s.now, Object: object, Prev: s.last[key],
	})
	s.last[key] = object
}

func (s *story) remove(resource, namespace, name string) {
	key := history.Key{Resource: resource, Namespace: namespace, Name: name}
	s.events = append(s.events, history.Event{
		Key: key, Revision: int64(len(s.events) + 1), Seen: s.now, Prev: s.last[key], Deleted: true,
	})
	delete(s.last, key)
}

func (s *story) policy(data map[string]string) {
	s.put("configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: operator, Name: otv1alpha1.PolicyConfigMapName}, Data: data})
}

func (s *story) limit(n int) { s.policy(map[string]string{"concurrency": strconv.Itoa(n)}) }

// slot gives slot i to an image; to nobody when the name is empty.
func (s *story) slot(i int, image string) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: operator, Name: otv1alpha1.SlotName(i)}}
	if image != "" {
		lease.Spec.HolderIdentity = new(otv1alpha1.SlotHolder(types.NamespacedName{Namespace: "lab", Name: image}, uid(image)))
	}
	s.put("leases", lease)
}

// ending marks slot i.
func (s *story) ending(i int) {
	lease, _ := s.last[history.Key{Resource: "leases", Namespace: operator, Name: otv1alpha1.SlotName(i)}].(*coordinationv1.Lease)
	lease = lease.DeepCopy()
	lease.Annotations = map[string]string{otv1alpha1.AnnotationEnding: "true"}
	s.put("leases", lease)
}

func uid(image string) types.UID { return types.UID("uid-" + image) }

// image writes an image with the status that mods make of the last one.
func (s *story) image(name string, mods ...func(*otv1alpha1.VMDiskImage)) {
	image := &otv1alpha1.VMDiskImage{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: uid(name), Generation: 1}}
	if last, ok := s.last[history.Key{Resource: "vmdiskimages", Namespace: "lab", Name: name}].(*otv1alpha1.VMDiskImage); ok {
		image = last.DeepCopy()
	}
	for _, mod := range mods {
		mod(image)
	}
	s.put("vmdiskimages", image)
}

func (s *story) condition(kind string, status metav1.ConditionStatus, reason string) func(*otv1alpha1.VMDiskImage) {
	return func(image *otv1alpha1.VMDiskImage) {
		image.Status.ObservedGeneration = image.Generation
		image.Status.Revision = otv1alpha1.RevisionOf(image)
		meta.SetStatusCondition(&image.Status.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(s.now),
		})
		image.Status.Phase = otv1alpha1.PhaseOf(image.Status.Conditions)
	}
}

func (s *story) queued(name string, ticket int64) {
	s.image(name, s.condition("Synced", "False", otv1alpha1.ReasonQueued), func(image *otv1alpha1.VMDiskImage) {
		image.Status.Ticket, image.Status.NextAttemptTime = ticket, nil
	})
}

func (s *story) syncing(name string, attempt int32) {
	s.image(name, s.condition("Synced", "False", otv1alpha1.ReasonSyncing), func(image *otv1alpha1.VMDiskImage) {
		image.Status.Attempts, image.Status.NextAttemptTime = attempt, nil
	})
}

// backingOff says that the attempt has failed now, and promises the next one after that time.
func (s *story) backingOff(name string, promised time.Duration) {
	s.image(name, s.condition("Synced", "False", otv1alpha1.ReasonBackingOff), func(image *otv1alpha1.VMDiskImage) {
		image.Status.LastFailure = &otv1alpha1.Failure{Time: metav1.NewTime(s.now), Reason: otv1alpha1.FailureUnreachable}
		image.Status.NextAttemptTime = &metav1.Time{Time: s.now.Add(promised)}
	})
}

func (s *story) failed(name string) {
	s.image(name, s.condition("Synced", "False", "SourceNotFound"), s.condition("Stalled", "True", "SourceNotFound"))
}

func (s *story) snapshotting(name string) {
	s.image(name, s.condition("Synced", "True", otv1alpha1.ReasonSynced))
}

func (s *story) succeeded(name string) {
	s.image(name, s.condition("SnapshotReady", "True", otv1alpha1.ReasonSnapshotReady), s.condition("Ready", "True", "SnapshotReady"),
		func(image *otv1alpha1.VMDiskImage) {
			image.Status.Artifact = &otv1alpha1.Artifact{Revision: image.Status.Revision, DataVolume: childOf(image), Snapshot: childOf(image)}
		})
}

func childOf(image *otv1alpha1.VMDiskImage) string {
	return otv1alpha1.ChildName(image.Name, otv1alpha1.RevisionOf(image))
}

func (s *story) existing(name string) *otv1alpha1.VMDiskImage {
	image, _ := s.last[history.Key{Resource: "vmdiskimages", Namespace: "lab", Name: name}].(*otv1alpha1.VMDiskImage)
	return image
}

func (s *story) child(name string) metav1.ObjectMeta {
	image := s.existing(name)
	return metav1.ObjectMeta{
		Namespace: "lab", Name: childOf(image), UID: types.UID(fmt.Sprintf("child-%d", len(s.events))),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(image, otv1alpha1.SchemeGroupVersion.WithKind("VMDiskImage"))},
	}
}

// volume creates the DataVolume of an attempt.
func (s *story) volume(name string, attempt int) {
	dv := &cdiv1.DataVolume{ObjectMeta: s.child(name)}
	dv.Annotations = map[string]string{otv1alpha1.AnnotationAttempt: strconv.Itoa(attempt), otv1alpha1.AnnotationSlot: otv1alpha1.SlotName(0)}
	s.put("datavolumes", dv)
}

func (s *story) volumePhase(name string, phase cdiv1.DataVolumePhase) {
	dv, _ := s.last[history.Key{Resource: "datavolumes", Namespace: "lab", Name: childOf(s.existing(name))}].(*cdiv1.DataVolume)
	dv = dv.DeepCopy()
	dv.Status.Phase = phase
	s.put("datavolumes", dv)
}

func (s *story) volumeGone(name string) {
	s.remove("datavolumes", "lab", childOf(s.existing(name)))
}

func (s *story) claim(name string, phase corev1.PersistentVolumeClaimPhase) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: s.child(name)}
	claim.Status.Phase = phase
	s.put("persistentvolumeclaims", claim)
}

// snapshot of an image; its content is bound to the UID, or to the snapshot when the UID is empty.
func (s *story) snapshot(name string, ready bool, boundTo types.UID) {
	vs := &snapshotv1.VolumeSnapshot{ObjectMeta: s.child(name)}
	vs.Status = &snapshotv1.VolumeSnapshotStatus{ReadyToUse: new(ready), BoundVolumeSnapshotContentName: new("content-" + name)}
	if boundTo == "" {
		boundTo = vs.UID
	}
	content := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: "content-" + name}}
	content.Spec.VolumeSnapshotRef.UID = boundTo
	s.put("volumesnapshotcontents", content)
	s.put("volumesnapshots", vs)
}

// life is that of an image that succeeds at its first attempt, in the order of the law.
func (s *story) life(name string, slot int) {
	s.image(name)
	s.slot(slot, name)
	s.syncing(name, 1)
	s.volume(name, 1)
	s.claim(name, corev1.ClaimPending)
	s.later(time.Second)
	s.volumePhase(name, cdiv1.Succeeded)
	s.claim(name, corev1.ClaimBound)
	s.snapshotting(name)
	s.slot(slot, "")
	s.snapshot(name, true, "")
	s.succeeded(name)
}

// attempt that fails, and all that belongs to it; the image must exist.
func (s *story) attempt(name string, number int32, promised time.Duration) {
	s.slot(0, name)
	s.syncing(name, number)
	s.volume(name, int(number))
	s.later(time.Second)
	s.backingOff(name, promised)
	s.volumeGone(name)
	s.slot(0, "")
}

// strict settings: the histories are made by hand.
func strict() Settings {
	return Settings{Namespace: operator, Idle: time.Second, Late: time.Second, OrderedStarts: true}
}

type storyTest struct {
	tell func(*story)
	// want is what each violation says, in order; none for a good story.
	want []string
}

func runStories(t *testing.T, check Check, tests map[string]storyTest) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStory()
			test.tell(s)
			got := check(strict(), s.events)
			assert.Len(t, got, len(test.want), "%v", got)
			for i := range min(len(got), len(test.want)) {
				assert.Contains(t, got[i].Text, test.want[i])
				assert.True(t, strings.HasPrefix(got[i].String(), got[i].Invariant+" broken at revision"), got[i].String())
				assert.NotEmpty(t, Excerpt(s.events, got[i], 5))
			}
		})
	}
}
