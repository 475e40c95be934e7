package invariant

import (
	"fmt"
	"testing"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// vm writes a virtual machine of the image golden.
func (s *story) vm(name string, mods ...func(*otv1alpha1.VirtualMachine)) {
	vm := &otv1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: uid(name), Generation: 1}}
	vm.Spec.VMDiskImageRef.Name = "golden"
	if last := s.vmOf(name); last != nil {
		vm = last.DeepCopy()
	}
	for _, mod := range mods {
		mod(vm)
	}
	s.put("virtualmachines", vm)
}

func (s *story) vmOf(name string) *otv1alpha1.VirtualMachine {
	vm, _ := s.last[history.Key{Resource: "virtualmachines", Namespace: "lab", Name: name}].(*otv1alpha1.VirtualMachine)
	return vm
}

// becomes Ready, or not, with the disk that it has.
func becomes(status metav1.ConditionStatus) func(*otv1alpha1.VirtualMachine) {
	return func(vm *otv1alpha1.VirtualMachine) {
		vm.Status.ObservedGeneration = vm.Generation
		vm.Status.Disk = &otv1alpha1.VirtualMachineDiskStatus{UID: uid("disk-of-" + vm.Name)}
		meta.SetStatusCondition(&vm.Status.Conditions, metav1.Condition{Type: otv1alpha1.ConditionReady, Status: status, Reason: "Running"})
		vm.Status.Phase = otv1alpha1.VirtualMachinePhaseOf(vm.Status.Conditions)
	}
}

func (s *story) ownedBy(name, child string, id types.UID) metav1.ObjectMeta {
	owner := *metav1.NewControllerRef(s.vmOf(name), otv1alpha1.SchemeGroupVersion.WithKind("VirtualMachine"))
	return metav1.ObjectMeta{Namespace: "lab", Name: child, UID: id, OwnerReferences: []metav1.OwnerReference{owner}}
}

// disk of a virtual machine, in a phase.
func (s *story) disk(name string, phase cdiv1.DataVolumePhase) {
	dv := &cdiv1.DataVolume{ObjectMeta: s.ownedBy(name, otv1alpha1.VirtualMachineChild(s.vmOf(name)), uid("disk-of-"+name))}
	dv.Finalizers = []string{otv1alpha1.FinalizerDisk}
	dv.Status.Phase = phase
	s.put("datavolumes", dv)
}

func (s *story) template(name string) *virtv1.VirtualMachineInstanceSpec {
	return &virtv1.VirtualMachineInstanceSpec{Volumes: []virtv1.Volume{{Name: "rootdisk", VolumeSource: virtv1.VolumeSource{
		DataVolume: &virtv1.DataVolumeSource{Name: otv1alpha1.VirtualMachineChild(s.vmOf(name))},
	}}}}
}

// guest makes KubeVirt's machine, under a resource that the virtual machine's own does not hide.
func (s *story) guest(name string) {
	guest := &virtv1.VirtualMachine{ObjectMeta: s.ownedBy(name, name, uid("guest-"+name))}
	guest.Spec.Template = &virtv1.VirtualMachineInstanceTemplateSpec{Spec: *s.template(name)}
	s.put("virtualmachines.kubevirt.io", guest)
}

func (s *story) instance(name string, phase virtv1.VirtualMachineInstancePhase) {
	vmi := &virtv1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: uid("instance-" + name)}}
	vmi.Labels = map[string]string{otv1alpha1.LabelVirtualMachineUID: string(s.vmOf(name).UID)}
	vmi.Spec, vmi.Status.Phase = *s.template(name), phase
	s.put("virtualmachineinstances", vmi)
}

// counted says that the image golden counts those, and is protected.
func (s *story) counted(names ...string) {
	s.image("golden", func(i *otv1alpha1.VMDiskImage) {
		refs := &otv1alpha1.References{Count: int32(len(names))} //nolint:gosec // a handful
		for _, name := range names {
			refs.Sample = append(refs.Sample, "lab/"+name)
		}
		i.Status.References, i.Finalizers = refs, nil
		if len(names) > 0 {
			i.Finalizers = []string{otv1alpha1.FinalizerProtection}
		}
	})
}

// runs is the life of a virtual machine until it is Ready, in the order of the law.
func (s *story) runs(name string) {
	s.vm(name)
	s.counted(name)
	s.disk(name, "")
	s.disk(name, cdiv1.Succeeded)
	s.guest(name)
	s.instance(name, virtv1.Running)
	s.vm(name, becomes("True"))
}

func leaves(vm *otv1alpha1.VirtualMachine) { vm.DeletionTimestamp = &metav1.Time{Time: time.Now()} }

func (s *story) diskName(name string) string { return otv1alpha1.VirtualMachineChild(s.vmOf(name)) }

func TestAGoodMachineBreaksNothing(t *testing.T) {
	s := newStory()
	s.life("golden", 0)
	s.runs("a")
	assert.Empty(t, Machines(strict(), s.events))
}

func TestClaimed(t *testing.T) {
	foreign := func(vm *otv1alpha1.VirtualMachine) { vm.Spec.VMDiskImageRef.Namespace = "farm" }
	runStories(t, Claimed, map[string]storyTest{
		"in the order of the law": {tell: func(s *story) { s.runs("a") }},
		"no image":                {tell: func(s *story) { s.vm("a"); s.disk("a", "") }, want: []string{"its image is not there"}},
		"not counted":             {tell: func(s *story) { s.vm("a"); s.counted(); s.disk("a", "") }, want: []string{"its image is used by nobody"}},
		"others are counted": {tell: func(s *story) { s.vm("a"); s.counted("b"); s.disk("a", "") },
			want: []string{"its image counts others: lab/b"}},
		"not protected": {tell: func(s *story) {
			s.vm("a")
			s.counted("a")
			s.image("golden", func(i *otv1alpha1.VMDiskImage) { i.Finalizers = nil })
			s.disk("a", "")
		}, want: []string{"its image is not protected"}},
		"not admitted": {tell: func(s *story) {
			s.vm("a", foreign)
			image := &otv1alpha1.VMDiskImage{ObjectMeta: metav1.ObjectMeta{Namespace: "farm", Name: "golden"}}
			s.put("vmdiskimages", image)
			s.disk("a", "")
		}, want: []string{"its image does not admit it"}},
	})
	t.Run("a lag forgives what was so a moment ago", func(t *testing.T) {
		s, settings := newStory(), strict()
		s.vm("a")
		s.counted("a")
		s.counted()
		s.later(time.Second)
		s.disk("a", "")
		settings.Lag = 2 * time.Second
		assert.Empty(t, Claimed(settings, s.events))
		settings.Lag = time.Second / 2
		assert.Len(t, Claimed(settings, s.events), 1)
	})
}

func TestReferences(t *testing.T) {
	runStories(t, References, map[string]storyTest{
		"the truth":  {tell: func(s *story) { s.vm("a"); s.vm("b"); s.counted("a", "b") }},
		"nobody":     {tell: func(s *story) { s.image("golden") }},
		"one more":   {tell: func(s *story) { s.vm("a"); s.counted("a", "b") }, want: []string{"counts 2 users [lab/a lab/b], and [lab/a] use it"}},
		"one less":   {tell: func(s *story) { s.vm("a"); s.counted() }, want: []string{"counts 0 users"}},
		"another":    {tell: func(s *story) { s.vm("a"); s.counted("b") }, want: []string{"counts 1 users [lab/b]"}},
		"one leaves": {tell: func(s *story) { s.vm("a", leaves); s.counted("a") }},
	})
}

func TestDiskFirst(t *testing.T) {
	runStories(t, DiskFirst, map[string]storyTest{
		"in the order of the law": {tell: func(s *story) { s.runs("a") }},
		"waits for its consumer":  {tell: func(s *story) { s.vm("a"); s.disk("a", cdiv1.PendingPopulation); s.guest("a") }},
		"without a disk":          {tell: func(s *story) { s.vm("a"); s.guest("a") }, want: []string{"is not there"}},
		"while it is cloned":      {tell: func(s *story) { s.vm("a"); s.disk("a", cdiv1.CSICloneInProgress); s.guest("a") }, want: []string{`is "CSICloneInProgress"`}},
		"with somebody else's": {tell: func(s *story) {
			s.vm("a")
			s.put("datavolumes", &cdiv1.DataVolume{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: s.diskName("a")}})
			s.guest("a")
		}, want: []string{"is somebody else's"}},
	})
}

func TestKeepsDisk(t *testing.T) {
	letGo := func(s *story, name string) {
		dv, _ := s.last[history.Key{Resource: "datavolumes", Namespace: "lab", Name: s.diskName(name)}].(*cdiv1.DataVolume)
		dv = dv.DeepCopy()
		dv.Finalizers = nil
		s.put("datavolumes", dv)
	}
	claim := func(s *story, mods ...func(*corev1.PersistentVolumeClaim)) {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: s.diskName("a")}}
		for _, mod := range mods {
			mod(c)
		}
		s.put("persistentvolumeclaims", c)
	}
	runStories(t, KeepsDisk, map[string]storyTest{
		"a disk goes when the guest has stopped": {tell: func(s *story) {
			s.runs("a")
			s.instance("a", virtv1.Succeeded)
			letGo(s, "a")
			s.remove("datavolumes", "lab", s.diskName("a"))
		}},
		"a disk goes with its virtual machine": {tell: func(s *story) {
			s.runs("a")
			s.vm("a", leaves)
			letGo(s, "a")
		}},
		"a disk goes of a machine that was made anew": {tell: func(s *story) {
			s.runs("a")
			s.vm("a", func(vm *otv1alpha1.VirtualMachine) { vm.UID = "another" })
			s.remove("datavolumes", "lab", s.diskName("a"))
		}},
		"a disk is let go under a guest": {tell: func(s *story) { s.runs("a"); letGo(s, "a") }, want: []string{"the disk loses its finalizer while the guest of lab/a runs"}},
		"a disk goes under a guest": {tell: func(s *story) {
			s.runs("a")
			s.remove("datavolumes", "lab", s.diskName("a"))
		}, want: []string{"the disk goes while"}},
		"a claim is deleted under a guest": {tell: func(s *story) {
			s.runs("a")
			claim(s)
			claim(s, func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{Time: s.now} })
		}, want: []string{"the claim is deleted while"}},
	})
}

func TestOneOfEach(t *testing.T) {
	runStories(t, OneOfEach, map[string]storyTest{
		"one after the other": {tell: func(s *story) {
			s.runs("a")
			s.remove("datavolumes", "lab", s.diskName("a"))
			s.disk("a", "")
		}},
		"two disks": {tell: func(s *story) {
			s.runs("a")
			s.put("datavolumes", &cdiv1.DataVolume{ObjectMeta: s.ownedBy("a", "second", "2")})
		}, want: []string{"its virtual machine has another one"}},
		"two Secrets": {tell: func(s *story) {
			s.vm("a")
			for i := range 2 {
				s.put("secrets", &corev1.Secret{ObjectMeta: s.ownedBy("a", fmt.Sprint("secret-", i), types.UID(fmt.Sprint(i)))})
			}
		}, want: []string{"its virtual machine has another one"}},
	})
}

func TestMachineTruth(t *testing.T) {
	halted := func(vm *otv1alpha1.VirtualMachine) { vm.Spec.RunStrategy = otv1alpha1.RunHalted }
	runStories(t, MachineTruth, map[string]storyTest{
		"in the order of the law": {tell: func(s *story) { s.runs("a") }},
		"is not to run":           {tell: func(s *story) { s.vm("a", halted); s.vm("a", becomes("True")) }},
		"Ready without a guest":   {tell: func(s *story) { s.vm("a"); s.vm("a", becomes("True")) }, want: []string{"it becomes Ready, and no guest runs"}},
		"Ready before the guest runs": {tell: func(s *story) {
			s.vm("a")
			s.instance("a", virtv1.Scheduled)
			s.vm("a", becomes("True"))
		}, want: []string{"it becomes Ready, and no guest runs"}},
		"a phase that is another one": {tell: func(s *story) {
			s.vm("a", becomes("False"), func(vm *otv1alpha1.VirtualMachine) { vm.Status.Phase = otv1alpha1.VirtualMachineFailed })
		}, want: []string{"it says Failed, and its conditions Provisioning"}},
	})
}

func TestMachinesAtEnd(t *testing.T) {
	runStories(t, MachinesAtEnd, map[string]storyTest{
		"in the order of the law": {tell: func(s *story) { s.runs("a") }},
		"a former spec":           {tell: func(s *story) { s.runs("a"); s.vm("a", func(vm *otv1alpha1.VirtualMachine) { vm.Generation++ }) }, want: []string{"that is about a former spec"}},
		"without a disk":          {tell: func(s *story) { s.runs("a"); s.remove("datavolumes", "lab", s.diskName("a")) }, want: []string{"its disk is not there"}},
		"another disk": {tell: func(s *story) {
			s.runs("a")
			s.vm("a", func(vm *otv1alpha1.VirtualMachine) { vm.Status.Disk.UID = "former" })
		}, want: []string{"status names another disk"}},
		"without a machine": {tell: func(s *story) { s.runs("a"); s.remove("virtualmachines.kubevirt.io", "lab", "a") }, want: []string{"KubeVirt's machine is not there"}},
		"without a guest":   {tell: func(s *story) { s.runs("a"); s.remove("virtualmachineinstances", "lab", "a") }, want: []string{"its guest does not run"}},
		"an address that is not told": {tell: func(s *story) {
			s.runs("a")
			vmi, _ := s.last[history.Key{Resource: "virtualmachineinstances", Namespace: "lab", Name: "a"}].(*virtv1.VirtualMachineInstance)
			vmi = vmi.DeepCopy()
			vmi.Status.Interfaces = []virtv1.VirtualMachineInstanceNetworkInterface{{MAC: "02:00:00:00:00:01", IP: "10.0.0.1"}}
			s.put("virtualmachineinstances", vmi)
		}, want: []string{"status does not tell of the guest's address 10.0.0.1"}},
		"not to run, but up": {tell: func(s *story) {
			s.runs("a")
			s.vm("a", func(vm *otv1alpha1.VirtualMachine) { vm.Spec.RunStrategy = otv1alpha1.RunHalted })
		}, want: []string{"its guest is not stopped"}},
	})
}

func TestNoSecrets(t *testing.T) {
	runStories(t, NoSecrets("c4nary"), map[string]storyTest{
		"in a Secret": {tell: func(s *story) {
			s.put("secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"password": "c4nary"}})
		}},
		"in a status": {tell: func(s *story) {
			s.vm("a", func(vm *otv1alpha1.VirtualMachine) { vm.Status.Message = "password c4nary refused" })
		}, want: []string{"it holds what only Secrets may hold"}},
	})
}

func TestForeignToMachines(t *testing.T) {
	by := func(manager string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "lab", Name: "theirs", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: manager}}}
	}
	runStories(t, ForeignToMachines, map[string]storyTest{
		"somebody else's": {tell: func(s *story) { s.put("secrets", &corev1.Secret{ObjectMeta: by("kubectl")}) }},
		"its own": {tell: func(s *story) {
			s.vm("a")
			secret := &corev1.Secret{ObjectMeta: s.ownedBy("a", s.diskName("a"), "1")}
			secret.ManagedFields = by("vm-operator").ManagedFields
			s.put("secrets", secret)
		}},
		"marked": {tell: func(s *story) { s.vm("a"); s.put("secrets", &corev1.Secret{ObjectMeta: by("vm-operator")}) }, want: []string{"the vm-operator has written it"}},
	})
}

func TestMachineHandsOff(t *testing.T) {
	s := newStory()
	s.runs("a")
	child, disk, ours, cdi := s.diskName("a"), uid("disk-of-a"), otv1alpha1.GroupName, "cdi.kubevirt.io"
	for name, test := range map[string]struct {
		write Write
		want  string
	}{
		"creates its disk":            {Write{Verb: "create", Group: cdi, Resource: "datavolumes", Name: child}, ""},
		"creates another":             {Write{Verb: "create", Group: cdi, Resource: "datavolumes", Name: "another"}, "no virtual machine has such a child"},
		"deletes its disk":            {Write{Verb: "delete", Group: cdi, Resource: "datavolumes", Name: child, UID: disk}, ""},
		"deletes by name":             {Write{Verb: "delete", Group: cdi, Resource: "datavolumes", Name: child}, "whatever object of that name"},
		"deletes a claim":             {Write{Verb: "delete", Resource: "persistentvolumeclaims", Name: child, UID: "1"}, "it has no such objects"},
		"applies its Secret":          {Write{Verb: "patch", Resource: "secrets", Name: child}, ""},
		"applies a Secret of others":  {Write{Verb: "patch", Resource: "secrets", Name: "passwords"}, "no virtual machine has such a child"},
		"applies over others":         {Write{Verb: "patch", Resource: "secrets", Name: child, UID: "theirs"}, "is nobody's of ours"},
		"applies KubeVirt's machine":  {Write{Verb: "patch", Group: "kubevirt.io", Resource: "virtualmachines", Name: "a"}, ""},
		"patches the spec":            {Write{Verb: "patch", Group: ours, Resource: "virtualmachines", Name: "a", UID: uid("a")}, "it has no such objects"},
		"writes its status":           {Write{Verb: "patch", Group: ours, Resource: "virtualmachines", Subresource: "status", Name: "a", UID: uid("a")}, ""},
		"writes a status by name":     {Write{Verb: "patch", Group: ours, Resource: "virtualmachines", Subresource: "status", Name: "a"}, "whatever object of that name"},
		"claims an image":             {Write{Verb: "patch", Group: ours, Resource: "vmdiskimages", Subresource: "status", Name: "golden", UID: uid("golden")}, ""},
		"deletes an image":            {Write{Verb: "delete", Group: ours, Resource: "vmdiskimages", Name: "golden", UID: uid("golden")}, "it has no such objects"},
		"makes an image of templates": {Write{Verb: "create", Group: ours, Resource: "vmdiskimages", Name: "made"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			test.write.Namespace = "lab"
			got := MachineHandsOff(strict(), s.events, []Write{test.write})
			if test.want == "" {
				assert.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			assert.Contains(t, got[0].Text, test.want)
		})
	}
}

func TestOrphansOfMachines(t *testing.T) {
	runStories(t, NoOrphans, map[string]storyTest{
		"nothing is left": {tell: func(s *story) {
			s.vm("a")
			s.disk("a", "")
			s.remove("datavolumes", "lab", s.diskName("a"))
			s.remove("virtualmachines", "lab", "a")
		}},
		"a disk is left": {tell: func(s *story) {
			s.vm("a")
			s.disk("a", "")
			s.remove("virtualmachines", "lab", "a")
		}, want: []string{"its owner VirtualMachine a is gone"}},
		"a Secret with the label is left": {tell: func(s *story) {
			s.vm("a")
			s.put("secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "s", Labels: map[string]string{otv1alpha1.LabelVirtualMachineUID: string(uid("a"))}}})
			s.remove("virtualmachines", "lab", "a")
		}, want: []string{"its label names a virtual machine that is gone"}},
	})
}
