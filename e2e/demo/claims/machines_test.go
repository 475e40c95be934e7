package claims_test

import (
	"strings"
	"testing"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/demo/claims"
	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// machine is a virtual machine that uses the image "a".
func machine(name string, phase otv1alpha1.VirtualMachinePhase) *otv1alpha1.VirtualMachine {
	vm := &otv1alpha1.VirtualMachine{ObjectMeta: meta(name)}
	vm.Spec.VMDiskImageRef.Name, vm.Status.Phase = "a", phase
	return vm
}

func ownedBy(name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{Kind: "VirtualMachine", Name: name, UID: types.UID("uid-" + name), Controller: new(true)}}
}

func disk(name, uid string, phase cdiv1.DataVolumePhase) *cdiv1.DataVolume {
	dv := &cdiv1.DataVolume{ObjectMeta: meta(name + "-disk"), Status: cdiv1.DataVolumeStatus{Phase: phase}}
	dv.UID, dv.OwnerReferences = types.UID(uid), ownedBy(name)
	return dv
}

func guest(name, uid, firmware string) *virtv1.VirtualMachine {
	vm := &virtv1.VirtualMachine{ObjectMeta: meta(name)}
	vm.UID, vm.OwnerReferences = types.UID(uid), ownedBy(name)
	vm.Spec.Template = &virtv1.VirtualMachineInstanceTemplateSpec{}
	vm.Spec.Template.Spec.Domain.Firmware = &virtv1.Firmware{UUID: types.UID(firmware)}
	return vm
}

// counts is the image "a" with virtual machines that use it.
func (s *story) counts(phase otv1alpha1.Phase, names ...string) {
	status := ready(phase, "1")
	status.References = &otv1alpha1.References{Count: int32(len(names))}
	for _, name := range names {
		status.References.Sample = append(status.References.Sample, "lab/"+name)
	}
	s.image("a", status)
}

// goes is what must come of virtual machines that were there before their image.
func (s *story) goes(names ...string) {
	for _, name := range names {
		s.put(machine(name, otv1alpha1.VirtualMachineProvisioning))
	}
	s.image("a", otv1alpha1.VMDiskImageStatus{})
	s.put(volume("a", 1, cdiv1.Succeeded))
	s.counts(otv1alpha1.PhaseSucceeded, names...)
	for _, name := range names {
		s.put(disk(name, "1", cdiv1.CloneInProgress))
		s.put(disk(name, "1", cdiv1.Succeeded))
		s.put(guest(name, "1", "f"))
		s.put(&virtv1.VirtualMachineInstance{ObjectMeta: meta(name)})
		s.put(machine(name, otv1alpha1.VirtualMachineReady))
	}
}

// by marks an object as written by a manager.
func by[T client.Object](manager string, at int64, o T) T {
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, Time: &metav1.Time{Time: time.Unix(at, 0)}}})
	return o
}

func waitedOf(r claims.Run) claims.Verdict   { return claims.Waited(r, key("web")) }
func repairedOf(r claims.Run) claims.Verdict { return claims.Repaired(r, key("web")) }

// silentAfter is the claim for a second process that began after so many events of the story.
func silentAfter(events int64, looks int) func(claims.Run) claims.Verdict {
	return func(r claims.Run) claims.Verdict {
		return claims.Silent(r, claims.Second{After: r.Events[0].Revision + events, Looks: looks})
	}
}

// TestClaimsAboutVirtualMachinesHoldOrDoNot begins each story without any image.
func TestClaimsAboutVirtualMachinesHoldOrDoNot(t *testing.T) {
	one := func(s *story) { s.goes("web") }
	for name, c := range map[string]struct {
		claim func(claims.Run) claims.Verdict
		tell  func(*story)
		want  string // empty: it holds
	}{
		"a virtual machine that waits": {waitedOf, one, ""},
		"a machine before its disk is there": {waitedOf, func(s *story) {
			one(s)
			s.put(machine("db", otv1alpha1.VirtualMachineReady))
			s.put(guest("db", "2", "f"))
		}, "a  of lab/db was made while its disk was not cloned"},
		"a guest that starts while the disk is being cloned": {waitedOf, func(s *story) {
			one(s)
			s.remove(&virtv1.VirtualMachineInstance{ObjectMeta: meta("web")})
			s.put(disk("web", "2", cdiv1.CloneInProgress))
			s.put(&virtv1.VirtualMachineInstance{ObjectMeta: meta("web")})
		}, "of lab/web was made while its disk was not cloned"},
		"a virtual machine that does not get ready": {waitedOf, func(s *story) {
			one(s)
			s.put(machine("web", otv1alpha1.VirtualMachineFailed))
		}, "lab/web is Failed"},
		"an image that was there first": {waitedOf, func(s *story) {
			s.image("a", otv1alpha1.VMDiskImageStatus{})
			one(s)
		}, "lab/web did not wait"},

		"two virtual machines of one image": {claims.Shared, func(s *story) { s.goes("web", "db") }, ""},
		"a download for each of them": {claims.Shared, func(s *story) {
			s.goes("web", "db")
			s.put(volume("a", 2, cdiv1.Succeeded))
		}, "lab/a had 2 DataVolumes"},
		"a disk too many":          {claims.Shared, func(s *story) { one(s); s.put(disk("web", "2", cdiv1.Succeeded)) }, "1 virtual machines have 2 disks of it"},
		"no virtual machine":       {claims.Shared, func(*story) {}, "there are no virtual machines"},
		"an image that never came": {claims.Shared, func(s *story) { s.put(machine("web", "")) }, "lab/a does not exist"},

		"an image that counts first": {claims.Counted, func(s *story) { s.goes("web", "db") }, ""},
		"a disk that nobody counted": {claims.Counted, func(s *story) {
			one(s)
			s.put(machine("db", ""))
			s.put(disk("db", "2", ""))
			s.counts(otv1alpha1.PhaseSucceeded, "web", "db")
		}, "lab/db got a disk before lab/a counted it"},
		"one too many in the end": {claims.Counted, func(s *story) {
			s.goes("web", "db")
			s.remove(machine("db", ""))
		}, "lab/a counts 2 virtual machines, and there are 1"},

		"a machine that comes back": {repairedOf, func(s *story) {
			one(s)
			s.remove(guest("web", "1", "f"))
			s.put(guest("web", "2", "f"))
		}, ""},
		"a machine that does not":        {repairedOf, one, "lab/web had 1 machines of KubeVirt"},
		"one with another disk":          {repairedOf, func(s *story) { one(s); s.put(disk("web", "2", "")); s.put(guest("web", "2", "f")) }, "and 2 disks"},
		"another guest":                  {repairedOf, func(s *story) { one(s); s.remove(guest("web", "1", "f")); s.put(guest("web", "2", "g")) }, "another one than before"},
		"a virtual machine that is gone": {repairedOf, func(*story) {}, "lab/web does not exist"},

		"a second look without a change": {silentAfter(1, 1), func(s *story) {
			s.put(by("vm-operator", 1, machine("web", "")))
			s.put(by("vm-operator", 2, &coordinationv1.Lease{ObjectMeta: meta("vm-operator")}))
			s.put(by("kubectl", 3, machine("db", "")))
			s.remove(machine("db", ""))
		}, ""},
		"a status that is written again": {silentAfter(2, 1), func(s *story) {
			s.put(by("vm-operator", 1, machine("web", "")))
			s.put(by("vm-operator", 2, machine("web", "")))
			s.put(by("vm-operator", 3, machine("web", "")))
		}, "lab/web was changed"},
		"references that are written again": {silentAfter(1, 1), func(s *story) {
			s.put(by("vm-operator", 1, machine("web", "")))
			s.put(by("vm-operator-references", 2, &otv1alpha1.VMDiskImage{ObjectMeta: meta("a")}))
		}, "lab/a was changed"},
		"a disk that goes": {silentAfter(2, 1), func(s *story) {
			s.put(by("vm-operator", 1, machine("web", "")))
			s.put(disk("web", "1", cdiv1.Succeeded))
			s.remove(disk("web", "1", cdiv1.Succeeded))
		}, "lab/web-disk was changed"},
		"nobody looked": {silentAfter(1, 0), func(s *story) { s.put(by("vm-operator", 1, machine("web", ""))) }, "0 looks at 1 virtual machines"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory()
			s.limit(1)
			c.tell(s)
			verdict := c.claim(claims.Run{Events: s.events, Counted: map[types.NamespacedName]claims.Count{key("a"): {Whole: 1}}})
			assert.Equal(t, c.want == "", verdict.Held(), verdict.Faults)
			assert.Contains(t, strings.Join(verdict.Faults, "\n"), c.want)
		})
	}
}
