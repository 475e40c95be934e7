package vmfault

import (
	"maps"
	"slices"
	"strings"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

const (
	web   = "web"
	other = "other"
	// slow is a virtual machine whose disk is never cloned.
	slow = "slow"
)

func isSlow(dv *cdiv1.DataVolume) bool { return strings.HasPrefix(dv.Name, slow+"-") }

func ends(end End) map[string]End { return map[string]End{web: end} }

func stories() []Story {
	return slices.Concat(lives(), losses(), deletions(), deletedAt(), grants())
}

func template(vm *otv1alpha1.VirtualMachine) {
	vm.Spec.VMDiskImageTemplate = &otv1alpha1.VMDiskImageSpec{SourceType: otv1alpha1.SourceHTTP, URL: nowhere, DiskSize: resource.MustParse("1Gi")}
}

func moreMemory(vm *otv1alpha1.VirtualMachine) {
	vm.Spec.Resources.Memory = new(resource.MustParse("96Mi"))
}

func moreUsers(vm *otv1alpha1.VirtualMachine) {
	vm.Spec.Users = append(vm.Spec.Users, otv1alpha1.VirtualMachineUser{Name: "guest", Groups: "users"})
}

// lives are the stories of virtual machines that are made and changed.
func lives() []Story {
	restart := running
	restart.Restart = true
	return []Story{
		{Name: "create", Steps: []Step{synced(), create(web)}, Ends: ends(running)},
		{
			Name: "create-first", Ends: ends(running),
			Steps: []Step{create(web), awaitReason(web, otv1alpha1.ConditionImageReady, otv1alpha1.ReasonImageMissing), createImage()},
		},
		{Name: "template", Steps: []Step{create(web, template)}, Ends: ends(running)},
		{
			Name: "update", Ends: ends(restart),
			Steps: []Step{
				synced(), create(web), awaitEnd(web, running), change(web, moreMemory), awaitEnd(web, restart), change(web, moreUsers),
			},
		},
		{
			Name: "start-stop", Ends: ends(stopped),
			Steps: []Step{
				synced(), create(web, strategy(otv1alpha1.RunHalted)), awaitEnd(web, stopped),
				change(web, strategy(otv1alpha1.RunAlways)), awaitEnd(web, running), change(web, strategy(otv1alpha1.RunHalted)),
			},
		},
	}
}

// losses are the stories of what somebody deletes that a virtual machine needs.
func losses() []Story {
	return []Story{
		{
			Name: "image-lost", Ends: ends(running),
			Steps: []Step{
				synced(), policy("0"), loseImage(), awaitImage("lost", func(i *otv1alpha1.VMDiskImage) bool { return i.Status.Phase != otv1alpha1.PhaseSucceeded }),
				create(web), awaitUsers(1), policy("2"),
			},
		},
		{
			Name: "disk-lost", Ends: ends(stopped),
			Steps: []Step{
				synced(), create(web, strategy(otv1alpha1.RunHalted)), awaitEnd(web, stopped), deleteDisk(web), awaitAnotherDisk(web, stopped),
			},
		},
		{
			Name: "disk-deleted", Ends: ends(running),
			Steps: []Step{
				synced(), create(web), awaitEnd(web, running),
				deleteDisk(web), awaitReason(web, otv1alpha1.ConditionDiskReady, otv1alpha1.ReasonDiskDeleted),
				change(web, strategy(otv1alpha1.RunHalted)), awaitAnotherDisk(web, stopped), change(web, strategy(otv1alpha1.RunAlways)),
			},
		},
		{
			Name: "guest-deleted", Ends: ends(running),
			Steps: []Step{synced(), create(web), awaitEnd(web, running), deleteGuest(web), awaitGuest(web)},
		},
	}
}

// deletions are the stories of virtual machines that are deleted in each of their states.
func deletions() []Story {
	return []Story{
		{Name: "delete-waiting", Ends: ends(gone), Steps: []Step{
			create(web), awaitReason(web, otv1alpha1.ConditionImageReady, otv1alpha1.ReasonImageMissing), remove(web), awaitGone(web),
		}},
		// How far it came before is a matter of moments.
		{Name: "delete-at-once", Ends: ends(gone), AnyWay: true, Steps: []Step{synced(), create(web), remove(web), awaitGone(web), untilLet(deleteImage())}},
		{Name: "delete-cloning", Ends: map[string]End{slow: gone}, Steps: []Step{
			synced(), create(slow), awaitReason(slow, otv1alpha1.ConditionDiskReady, otv1alpha1.ReasonDiskCloning), remove(slow), awaitGone(slow),
		}},
		{Name: "delete-ready", Ends: ends(gone), Steps: []Step{
			synced(), create(web), awaitEnd(web, running), remove(web), awaitGone(web), awaitUsers(0), deleteImage(),
		}},
		{Name: "recreate", Ends: ends(running), Steps: []Step{
			synced(), create(web), awaitEnd(web, running), remove(web), awaitGone(web), create(web),
		}},
		{Name: "two", Ends: map[string]End{web: running, other: gone}, Steps: []Step{
			synced(), create(web), create(other), awaitEnd(other, running), remove(other), awaitGone(other), awaitUsers(1), refused(deleteImage()),
		}},
	}
}

// deletedAt are the stories of a virtual machine that is deleted at each of the writes that are made for it.
func deletedAt() []Story {
	writes := map[string]func(history.Event) bool{
		"claimed": func(e history.Event) bool {
			i, ok := history.As[*otv1alpha1.VMDiskImage](e)
			return ok && i.Status.References != nil && i.Status.References.Count > 0
		},
		"protected": func(e history.Event) bool {
			i, ok := history.As[*otv1alpha1.VMDiskImage](e)
			return ok && slices.Contains(i.Finalizers, otv1alpha1.FinalizerProtection)
		},
		"disk": func(e history.Event) bool {
			dv, ok := history.As[*cdiv1.DataVolume](e)
			return ok && slices.Contains(dv.Finalizers, otv1alpha1.FinalizerDisk)
		},
		"secret": func(e history.Event) bool {
			return e.Created() && e.Resource == "secrets" && metav1.GetControllerOf(e.Object) != nil
		},
		"machine":  func(e history.Event) bool { _, ok := history.As[*virtv1.VirtualMachine](e); return ok },
		"instance": func(e history.Event) bool { _, ok := history.As[*virtv1.VirtualMachineInstance](e); return ok },
		"status": func(e history.Event) bool {
			vm, ok := history.As[*otv1alpha1.VirtualMachine](e)
			return ok && vm.Status.Phase != ""
		},
	}
	var all []Story
	for _, name := range slices.Sorted(maps.Keys(writes)) {
		// How far it comes is a matter of moments.
		all = append(all, Story{Name: "delete-at-" + name, Ends: ends(gone), AnyWay: true, Steps: []Step{
			synced(), create(web), awaitWrite(name, writes[name]), remove(web), awaitGone(web), untilLet(deleteImage()),
		}})
	}
	return append(all, Story{Name: "delete-at-template", Farm: true, Ends: ends(gone), AnyWay: true, Steps: []Step{
		create(web, template), awaitImage("made", func(*otv1alpha1.VMDiskImage) bool { return true }),
		remove(web), awaitGone(web), awaitSynced(), untilLet(deleteImage()),
	}})
}

// grants are the stories of images of another namespace.
func grants() []Story {
	granted := func(i *otv1alpha1.VMDiskImage) {
		i.Spec.AllowedNamespaces = &otv1alpha1.AllowedNamespaces{From: otv1alpha1.NamespacesFromAll}
	}
	revoked := func(i *otv1alpha1.VMDiskImage) { i.Spec.AllowedNamespaces = nil }
	notAllowed := func(name string) Step {
		return awaitReason(name, otv1alpha1.ConditionImageReady, otv1alpha1.ReasonImageNotAllowed)
	}
	return []Story{
		{Name: "template-abroad", Farm: true, Steps: []Step{create(web, template)}, Ends: ends(running)},
		{
			Name: "revoke", Farm: true, Ends: map[string]End{web: running, other: running},
			Steps: []Step{
				synced(granted), create(web), awaitEnd(web, running), changeImage(revoked), notAllowed(web), awaitUsers(0),
				create(other), notAllowed(other), changeImage(granted),
			},
		},
	}
}
