package claims_test

import (
	"strconv"
	"strings"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/demo/claims"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// story writes a history by hand.
type story struct {
	events   []history.Event
	last     map[string]client.Object
	revision int64
}

func newStory() *story { return &story{last: map[string]client.Object{}} }

func (s *story) put(o client.Object) {
	s.revision++
	id := kind(o) + o.GetNamespace() + "/" + o.GetName()
	s.events = append(s.events, history.Event{
		Key: history.Key{Namespace: o.GetNamespace(), Name: o.GetName()}, Revision: s.revision, Object: o, Prev: s.last[id],
	})
	s.last[id] = o
}

func (s *story) remove(o client.Object) {
	s.revision++
	id := kind(o) + o.GetNamespace() + "/" + o.GetName()
	s.events = append(s.events, history.Event{
		Key: history.Key{Namespace: o.GetNamespace(), Name: o.GetName()}, Revision: s.revision, Prev: s.last[id], Deleted: true,
	})
	delete(s.last, id)
}

func kind(o client.Object) string {
	switch o.(type) {
	case *otv1alpha1.VMDiskImage:
		return "image"
	case *coordinationv1.Lease:
		return "lease"
	case *cdiv1.DataVolume:
		return "volume"
	case *otv1alpha1.VirtualMachine:
		return "machine"
	case *virtv1.VirtualMachine:
		return "guest"
	case *virtv1.VirtualMachineInstance:
		return "instance"
	}
	return "other"
}

func (s *story) limit(n int) {
	s.put(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "sync-operator", Name: otv1alpha1.PolicyConfigMapName},
		Data:       map[string]string{"concurrency": strconv.Itoa(n)},
	})
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID("uid-" + name)}
}

func (s *story) image(name string, status otv1alpha1.VMDiskImageStatus) {
	s.put(&otv1alpha1.VMDiskImage{ObjectMeta: meta(name), Status: status})
}

func (s *story) slot(i int, holder string) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "sync-operator", Name: otv1alpha1.SlotName(i)}}
	if holder != "" {
		lease.Spec.HolderIdentity = new(otv1alpha1.SlotHolder(types.NamespacedName{Namespace: "lab", Name: holder}, types.UID("uid-"+holder)))
	}
	s.put(lease)
}

func volume(image string, attempt int, phase cdiv1.DataVolumePhase) *cdiv1.DataVolume {
	owner := metav1.OwnerReference{Kind: "VMDiskImage", Name: image, UID: types.UID("uid-" + image), Controller: new(true)}
	dv := &cdiv1.DataVolume{ObjectMeta: meta(image), Status: cdiv1.DataVolumeStatus{Phase: phase}}
	dv.UID, dv.OwnerReferences = types.UID("dv-"+image+strconv.Itoa(attempt)), []metav1.OwnerReference{owner}
	return dv
}

func syncing(attempts int32) otv1alpha1.VMDiskImageStatus {
	return otv1alpha1.VMDiskImageStatus{Phase: otv1alpha1.PhaseSyncing, Attempts: attempts, Conditions: []metav1.Condition{
		{Type: otv1alpha1.ConditionSynced, Status: metav1.ConditionFalse, Reason: otv1alpha1.ReasonSyncing},
	}}
}

func succeeded(name string, attempts int32) otv1alpha1.VMDiskImageStatus {
	return otv1alpha1.VMDiskImageStatus{Phase: otv1alpha1.PhaseSucceeded, Attempts: attempts, Artifact: &otv1alpha1.Artifact{Snapshot: name}}
}

// begins is what must come before an image downloads.
func (s *story) begins(name string, slot int) {
	s.slot(slot, name)
	s.image(name, syncing(1))
	s.put(volume(name, 1, cdiv1.ImportInProgress))
}

// ends is a good end.
func (s *story) ends(name string, slot int) {
	s.put(volume(name, 1, cdiv1.Succeeded))
	s.slot(slot, "")
	s.put(&snapshotv1.VolumeSnapshot{ObjectMeta: meta(name), Status: &snapshotv1.VolumeSnapshotStatus{ReadyToUse: new(true)}})
	s.image(name, succeeded(name, 1))
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "lab", Name: name}
}

// good is two images under a limit of 1, and a third once it is 2.
func good() claims.Run {
	s := newStory()
	s.limit(1)
	for _, name := range []string{"a", "b", "c"} {
		s.image(name, otv1alpha1.VMDiskImageStatus{})
	}
	s.begins("a", 0)
	s.ends("a", 0)
	s.begins("b", 0)
	s.limit(2)
	s.begins("c", 1)
	s.ends("c", 1)
	s.ends("b", 0)
	ok := claims.Expectation{Phase: otv1alpha1.PhaseSucceeded, Attempts: 1}
	count := claims.Count{Gets: 2, Whole: 1, Bytes: 1000, Size: 1000}
	return claims.Run{
		Events:   s.events,
		Expected: map[types.NamespacedName]claims.Expectation{key("a"): ok, key("b"): ok, key("c"): ok},
		Counted:  map[types.NamespacedName]claims.Count{key("a"): count, key("b"): count, key("c"): count},
	}
}

func TestAGoodHistoryKeepsEveryClaim(t *testing.T) {
	for _, verdict := range claims.All(good()) {
		assert.Empty(t, verdict.Faults, verdict.Claim)
		assert.NotEmpty(t, verdict.Details, verdict.Claim)
	}
}

// broken is a history or a count that must be refused by a claim, with words that say what is wrong.
type broken struct {
	claim func(claims.Run) claims.Verdict
	run   func() claims.Run
	want  string
}

func told(tell func(*story)) func() claims.Run {
	return func() claims.Run {
		s := newStory()
		s.limit(1)
		s.image("a", otv1alpha1.VMDiskImageStatus{})
		s.image("b", otv1alpha1.VMDiskImageStatus{})
		tell(s)
		return claims.Run{Events: s.events}
	}
}

func changed(change func(*claims.Run)) func() claims.Run {
	return func() claims.Run {
		run := good()
		change(&run)
		return run
	}
}

func TestEachClaimIsRedOnABadHistory(t *testing.T) {
	cases := map[string]broken{
		"two images syncing under a limit of 1": {claims.Limit, told(func(s *story) {
			s.image("a", syncing(1))
			s.image("b", syncing(1))
		}), "2 images syncing under a limit of 1"},
		"two slots held under a limit of 1": {claims.Limit, told(func(s *story) {
			s.slot(0, "a")
			s.slot(1, "b")
		}), "2 slots held under a limit of 1"},
		"the second download begins while the first is still there": {claims.Limit, told(func(s *story) {
			s.begins("a", 0)
			s.slot(0, "b")
			s.put(volume("b", 1, cdiv1.ImportScheduled))
		}), "2 downloads unfinished under a limit of 1"},
		"an importer of an attempt that has ended still runs": {claims.Limit, told(func(s *story) {
			for _, name := range []string{"importer-a", "importer-b"} {
				pod := &corev1.Pod{ObjectMeta: meta(name), Status: corev1.PodStatus{Phase: corev1.PodRunning}}
				pod.Spec.PriorityClassName = otv1alpha1.ImportPriorityClass
				s.put(pod)
			}
		}), "2 importer pods running under a limit of 1"},
		"the limit was raised and nothing came of it": {claims.Raised, told(func(s *story) {
			s.limit(2)
			s.begins("a", 0)
			s.ends("a", 0)
		}), "never more than 1 were syncing"},
		"the later image gets the first slot": {claims.Order, told(func(s *story) {
			s.slot(0, "b")
			s.slot(0, "a")
		}), "lab/b got a slot before lab/a"},
		"a retry goes before an image that was there when it went to the tail": {claims.Order, told(func(s *story) {
			s.slot(0, "a")
			s.slot(0, "")
			s.image("a", otv1alpha1.VMDiskImageStatus{Ticket: 100, Attempts: 1})
			s.slot(0, "a")
		}), "lab/a got a slot before lab/b"},
		"nobody was ever admitted": {claims.Order, told(func(*story) {}), "no image got a slot"},
		"a DataVolume without a slot": {claims.Fenced, told(func(s *story) {
			s.image("a", syncing(1))
			s.put(volume("a", 1, cdiv1.ImportScheduled))
		}), "holds 0 slots"},
		"a slot given up while its download goes on": {claims.Fenced, told(func(s *story) {
			s.begins("a", 0)
			s.slot(0, "")
		}), "holds 0 slots"},
		"a DataVolume before the status said so": {claims.Fenced, told(func(s *story) {
			s.slot(0, "a")
			s.put(volume("a", 1, cdiv1.PhaseUnset))
		}), `was made while its image was ""`},
		"an image that was downloaded four times": {claims.Downloads, changed(func(r *claims.Run) {
			r.Counted[key("b")] = claims.Count{Gets: 4, Whole: 4}
		}), "lab/b was downloaded 4 times, 3 are allowed"},
		"an image that was asked for more often than its attempts explain": {claims.Downloads, changed(func(r *claims.Run) {
			r.Counted[key("b")] = claims.Count{Gets: 7}
		}), "lab/b was asked for 7 times"},
		"more bytes than its attempts explain": {claims.Downloads, changed(func(r *claims.Run) {
			r.Counted[key("b")] = claims.Count{Bytes: 50 << 20, Size: 10 << 20}
		}), "which is more than 3 times"},
		"servers that have counted nothing": {claims.Downloads, changed(func(r *claims.Run) { r.Counted = nil }), "counted nothing"},
		"an attempt that was not counted": {claims.Attempts, told(func(s *story) {
			s.begins("a", 0)
			s.remove(volume("a", 1, ""))
			s.put(volume("a", 2, cdiv1.PhaseUnset))
		}), "lab/a says 1 attempts, and 2 DataVolumes were made for it"},
		"more attempts than allowed": {claims.Attempts, told(func(s *story) {
			for attempt := range 4 {
				s.put(volume("a", attempt, cdiv1.PhaseUnset))
			}
		}), "lab/a had 4 DataVolumes, 3 are allowed"},
		"an image that ended differently": {claims.Ends, changed(func(r *claims.Run) {
			r.Expected[key("c")] = claims.Expectation{Phase: otv1alpha1.PhaseFailed, Reason: otv1alpha1.FailureSourceNotFound, Attempts: 3}
		}), "lab/c is Succeeded at the first attempt, expected Failed at attempt 3 (SourceNotFound)"},
		"an image that is not there": {claims.Ends, changed(func(r *claims.Run) {
			r.Expected[key("d")] = claims.Expectation{}
		}), "lab/d does not exist"},
		"Succeeded before the snapshot is ready": {claims.Ends, told(func(s *story) {
			s.put(&snapshotv1.VolumeSnapshot{ObjectMeta: meta("a")})
			s.image("a", succeeded("a", 1))
		}), "lab/a said Succeeded without a snapshot that is ready"},
		"a slot that nobody gives up": {claims.Ends, told(func(s *story) { s.slot(0, "a") }), "1 slots are still held"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			verdict := c.claim(c.run())
			require.False(t, verdict.Held())
			assert.Contains(t, strings.Join(verdict.Faults, "\n"), c.want)
		})
	}
}
