package trace_test

import (
	"testing"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/bench/trace"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

func aMachine(name string) history.Event {
	vm := &otv1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID(name)}}
	vm.Spec.VMDiskImageRef = otv1alpha1.VMDiskImageReference{Namespace: "images", Name: "golden"}
	return history.Event{Key: history.Key{Resource: "virtualmachines", Namespace: "lab", Name: name}, Object: vm}
}

func becomesReady(name string) history.Event {
	before := aMachine(name)
	after := before.Object.DeepCopyObject().(*otv1alpha1.VirtualMachine)
	after.Status.Phase = otv1alpha1.VirtualMachineReady
	return history.Event{Key: before.Key, Object: after, Prev: before.Object}
}

func counts(n int32) history.Event {
	image := &otv1alpha1.VMDiskImage{}
	image.Status.References = &otv1alpha1.References{Count: n}
	return history.Event{Key: history.Key{Resource: "vmdiskimages", Namespace: "images", Name: "golden"}, Object: image, Prev: &otv1alpha1.VMDiskImage{}}
}

func aDisk(of string) history.Event {
	owner := aMachine(of).Object
	dv := &cdiv1.DataVolume{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
		*metav1.NewControllerRef(owner, otv1alpha1.SchemeGroupVersion.WithKind("VirtualMachine")),
	}}}
	return history.Event{Key: history.Key{Resource: "datavolumes", Namespace: "lab", Name: of}, Object: dv}
}

func TestJudgeMachines(t *testing.T) {
	for name, c := range map[string]struct {
		events []history.Event
		want   trace.Machines
	}{
		"nothing happened": {},
		"one claim for two": {
			events: []history.Event{aMachine("a"), aMachine("b"), counts(2), aDisk("b"), aDisk("a"), becomesReady("a"), becomesReady("b")},
			want:   trace.Machines{Created: 2, Ready: 2},
		},
		"a disk before the claim": {
			events: []history.Event{aMachine("a"), aDisk("a"), counts(1), becomesReady("a")},
			want:   trace.Machines{Created: 1, Ready: 1, Unclaimed: 1},
		},
		"more disks than the image counts": {
			events: []history.Event{aMachine("a"), aMachine("b"), counts(1), aDisk("a"), aDisk("b"), counts(2)},
			want:   trace.Machines{Created: 2, Unclaimed: 1},
		},
		"one that is not counted, and not Ready": {
			events: []history.Event{aMachine("a"), counts(1), aDisk("a"), becomesReady("a"), aMachine("b")},
			want:   trace.Machines{Created: 2, Ready: 1, Miscounted: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, trace.JudgeMachines(c.events))
		})
	}
}

func TestViolationsOfMachines(t *testing.T) {
	assert.Empty(t, trace.Machines{Created: 2, Ready: 2}.Violations(2))
	assert.Equal(t, []string{
		"1 machines were created, not 2", "0 machines were Ready, not 2",
		"1 disks were made before their image counted so many machines", "1 images do not count their machines",
	}, trace.Machines{Created: 1, Unclaimed: 1, Miscounted: 1}.Violations(2))
}
