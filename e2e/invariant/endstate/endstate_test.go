package endstate

import (
	"strings"
	"testing"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// telling is a history of an image with a volume, in a namespace and with a UID and a revision of its own.
type telling struct {
	namespace, revision string
	uid                 types.UID
	events              []history.Event
}

func tell(namespace, revision string, mods ...func(*otv1alpha1.VMDiskImage)) *telling {
	t := &telling{namespace: namespace, revision: revision, uid: types.UID(strings.Repeat(revision, 1) + "-0000-4000-8000-00000000000a")}
	image := &otv1alpha1.VMDiskImage{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "image", UID: t.uid, ResourceVersion: revision}}
	image.Status = otv1alpha1.VMDiskImageStatus{
		Phase: otv1alpha1.PhaseSucceeded, Revision: revision, Ticket: int64(len(namespace)), Attempts: 1,
		Message: "2 were ahead of " + namespace, Artifact: &otv1alpha1.Artifact{Revision: revision, DataVolume: "image-" + revision},
	}
	for _, mod := range mods {
		mod(image)
	}
	t.put("vmdiskimages", image)
	t.volume()
	return t
}

func (t *telling) put(resource string, object client.Object) {
	t.events = append(t.events, history.Event{
		Key: history.Key{Resource: resource, Namespace: object.GetNamespace(), Name: object.GetName()}, Object: object,
	})
}

func (t *telling) volume() {
	t.put("datavolumes", &cdiv1.DataVolume{ObjectMeta: metav1.ObjectMeta{
		Namespace: t.namespace, Name: "image-" + t.revision, UID: "1", Labels: map[string]string{otv1alpha1.LabelImage: string(t.uid)},
	}})
}

func TestWhatMustDifferIsMasked(t *testing.T) {
	a, b := tell("story-1", "0e120001"), tell("story-2", "12345678")
	assert.Empty(t, Of(a.events).Diff(Of(b.events)))
}

func TestWhatMustNotDifferShows(t *testing.T) {
	reference := Of(tell("story-1", "0e120001").events)
	for name, test := range map[string]struct {
		events []history.Event
		want   []string
	}{
		"another phase": {
			events: tell("story-2", "12345678", func(i *otv1alpha1.VMDiskImage) { i.Status.Phase = otv1alpha1.PhaseFailed }).events,
			want:   []string{"different: vmdiskimages image\n  is    phase: Failed\n  was   phase: Succeeded\n"},
		},
		"a volume that is not there": {
			events: tell("story-2", "12345678").events[:1],
			want:   []string{"missing: datavolumes image-r1", "0 datavolumes were created, and 1 in the reference"},
		},
		"a volume that was made twice": {
			events: func() []history.Event {
				t := tell("story-2", "12345678")
				t.events = append(t.events, history.Event{Key: t.events[1].Key, Prev: t.events[1].Object, Deleted: true})
				t.volume()
				return t.events
			}(),
			want: []string{"2 datavolumes were created, and 1 in the reference", "1 datavolumes were deleted, and 0 in the reference"},
		},
		"a slot that is held": {
			events: func() []history.Event {
				t := tell("story-2", "12345678")
				t.put("leases", &coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{Name: "disk-sync-slot-7"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: new("story-2/image/" + string(t.uid))},
				})
				return t.events
			}(),
			want: []string{"too much: leases disk-sync-slot-N\nheld by NAMESPACE/image/UID\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, Of(test.events).Diff(reference))
		})
	}
}

func TestPlainForgetsTheWay(t *testing.T) {
	way := func(i *otv1alpha1.VMDiskImage) {
		i.Status.Attempts, i.Status.Losses, i.Status.LastFailure = 3, 0, &otv1alpha1.Failure{Reason: otv1alpha1.FailureUnreachable}
		i.Status.Message = "another"
	}
	a, b := tell("story-1", "0e120001"), tell("story-2", "0e120001", way)
	assert.NotEmpty(t, Of(a.events).Diff(Of(b.events)))
	assert.Empty(t, Plain(a.events).Diff(Plain(b.events)))
	failed := tell("story-2", "0e120001", way, func(i *otv1alpha1.VMDiskImage) { i.Status.Phase = otv1alpha1.PhaseFailed })
	assert.NotEmpty(t, Plain(a.events).Diff(Plain(failed.events)), "but not the end")
}

func TestMachinesAreComparedWithoutWhatMustDiffer(t *testing.T) {
	of := func(namespace, uid, mac string, phase otv1alpha1.VirtualMachinePhase) State {
		told := tell(namespace, "0e120001")
		vm := &otv1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", UID: types.UID(uid)}}
		vm.Status.Phase = phase
		vm.Status.Message = "The disk " + otv1alpha1.VirtualMachineChild(vm) + " is ready at " + mac + " and 10.0.17.4"
		told.put("virtualmachines", vm)
		guest := &virtv1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
		told.put("virtualmachines", guest)
		told.events[len(told.events)-1].Group = "kubevirt.io"
		return Of(told.events)
	}
	reference := of("story-1", "one", "02:00:00:00:00:01", otv1alpha1.VirtualMachineReady)
	assert.Contains(t, reference.Objects, "virtualmachines.kubevirt.io web")
	assert.Empty(t, of("story-2", "two", "06:00:00:00:00:02", otv1alpha1.VirtualMachineReady).Diff(reference))
	failed := of("story-2", "two", "06:00:00:00:00:02", otv1alpha1.VirtualMachineFailed)
	assert.Equal(t, []string{"different: virtualmachines web\n  is    phase: Failed\n  was   phase: Ready\n"}, failed.Diff(reference))
}
