package trace_test

import (
	"fmt"
	"testing"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/bench/trace"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// story writes a history, one event per line.
type story struct {
	events []history.Event
	last   map[history.Key]client.Object
}

func (s *story) put(resource, name string, object client.Object) *story {
	if s.last == nil {
		s.last = map[history.Key]client.Object{}
	}
	key := history.Key{Resource: resource, Namespace: "bench", Name: name}
	s.events = append(s.events, history.Event{
		Key: key, Revision: int64(len(s.events) + 1), Object: object, Prev: s.last[key], Deleted: object == nil,
	})
	s.last[key] = object
	return s
}

func (s *story) image(name string, phase otv1alpha1.Phase) *story {
	return s.put("vmdiskimages", name, &otv1alpha1.VMDiskImage{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Status: otv1alpha1.VMDiskImageStatus{Phase: phase},
	})
}

func (s *story) volume(image string, phase cdiv1.DataVolumePhase) *story {
	return s.put("datavolumes", image, &cdiv1.DataVolume{
		ObjectMeta: metav1.ObjectMeta{Name: image, OwnerReferences: []metav1.OwnerReference{{UID: types.UID(image), Controller: new(true)}}},
		Status:     cdiv1.DataVolumeStatus{Phase: phase},
	})
}

func (s *story) slot(number int, image string) *story {
	lease := &coordinationv1.Lease{}
	if image != "" {
		lease.Spec.HolderIdentity = new(otv1alpha1.SlotHolder(types.NamespacedName{Namespace: "bench", Name: image}, types.UID(image)))
	}
	return s.put("leases", otv1alpha1.SlotName(number), lease)
}

func (s *story) create(images ...string) *story {
	for _, image := range images {
		s.image(image, "")
	}
	return s
}

// begin lets an image in, on all levels.
func (s *story) begin(slot int, image string) *story {
	return s.slot(slot, image).image(image, otv1alpha1.PhaseSyncing).volume(image, cdiv1.Pending)
}

// end of an image that was let in; its slot stays as it is.
func (s *story) end(image string) *story {
	return s.volume(image, cdiv1.Succeeded).image(image, otv1alpha1.PhaseSnapshotting).image(image, otv1alpha1.PhaseSucceeded)
}

func good() *story {
	return (&story{}).create("a", "b", "c").begin(0, "a").begin(1, "b").end("a").begin(0, "c").end("b").slot(1, "").end("c").slot(0, "")
}

func TestJudgeTellsGoodFromBad(t *testing.T) {
	for name, c := range map[string]struct {
		story *story
		want  []string
	}{
		"two slots, passed on in order": {story: good()},
		"a slot is passed on before its download has ended": {
			story: (&story{}).create("a", "b", "c").begin(0, "a").begin(1, "b").begin(0, "c").end("a").end("b").end("c"),
			want:  []string{"syncing: 3 at once under a limit of 2", "download: 3 at once under a limit of 2"},
		},
		"three Leases are held": {
			story: (&story{}).create("a", "b", "c").begin(0, "a").begin(1, "b").end("a").begin(2, "c").end("b").end("c"),
			want:  []string{"slot: 3 at once under a limit of 2"},
		},
		"a DataVolume that has not Succeeded counts until it is gone, without its image, too": {
			story: (&story{}).create("a", "b", "c").volume("left-over", cdiv1.Pending).begin(0, "a").begin(1, "b").
				put("datavolumes", "left-over", nil).end("a").begin(0, "c").end("b").end("c"),
			want: []string{"download: 3 at once under a limit of 2"},
		},
		"the last comes first": {
			story: (&story{}).create("a", "b", "c").begin(0, "c").begin(1, "a").end("c").begin(0, "b").end("a").end("b"),
			want:  []string{"slot: 2 inversions", "syncing: 2 inversions", "download: 2 inversions"},
		},
		"only the downloads change places": {
			story: (&story{}).create("a", "b", "c").slot(0, "a").slot(1, "b").
				image("a", otv1alpha1.PhaseSyncing).image("b", otv1alpha1.PhaseSyncing).volume("b", cdiv1.Pending).volume("a", cdiv1.Pending).
				end("a").begin(0, "c").end("b").end("c"),
			want: []string{"download: 1 inversions"},
		},
		"an image is forgotten": {
			story: (&story{}).create("a", "b", "c").begin(0, "a").begin(1, "b").end("a").end("b"),
			want: []string{"2 images have Succeeded, not 3", "slot: 2 images were let in, not 3",
				"syncing: 2 images were let in, not 3", "download: 2 images were let in, not 3"},
		},
		"no Lease was ever taken": {
			story: (&story{}).create("a", "b", "c").image("a", otv1alpha1.PhaseSyncing).volume("a", cdiv1.Pending).end("a").
				image("b", otv1alpha1.PhaseSyncing).volume("b", cdiv1.Pending).end("b").image("c", otv1alpha1.PhaseSyncing).volume("c", cdiv1.Pending).end("c"),
			want: []string{"slot: 0 images were let in, not 3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, trace.Judge(c.story.events).Violations(3, 2, trace.Levels()...))
		})
	}
}

func TestJudgeCountsARetryOnce(t *testing.T) {
	s := (&story{}).create("a", "b").begin(0, "a").image("a", otv1alpha1.PhaseQueued).put("datavolumes", "a", nil).
		begin(0, "b").end("b").begin(0, "a").end("a")
	assert.Empty(t, trace.Judge(s.events).Violations(2, 1, trace.Levels()...))
}

func TestTheFloorIsBoundedByItsDownloads(t *testing.T) {
	s := (&story{}).create("a", "b").image("a", otv1alpha1.PhaseSyncing).volume("a", cdiv1.Pending).volume("a", cdiv1.Succeeded).
		image("b", otv1alpha1.PhaseSyncing).volume("b", cdiv1.Pending).end("a").end("b")
	found := trace.Judge(s.events)
	assert.Empty(t, found.Violations(2, 1, trace.Download))
	assert.Equal(t, 2, found.Levels[trace.Syncing].Highest)
	assert.NotEmpty(t, found.Violations(2, 1, trace.Syncing))
}

func TestInversionsAreCountedInPairs(t *testing.T) {
	const n = 50
	s := &story{}
	for i := range n {
		s.create(fmt.Sprintf("i%d", i))
	}
	for i := n - 1; i >= 0; i-- {
		s.begin(0, fmt.Sprintf("i%d", i))
	}
	assert.Equal(t, n*(n-1)/2, trace.Judge(s.events).Levels[trace.Slot].Inversions)
}
