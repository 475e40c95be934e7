package invariant

import (
	"slices"
	"strings"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// Claimed is I7: when the disk of a virtual machine is created, its image admits the virtual machine, counts it, and is protected.
// What was so a lag ago may be taken for the truth.
func Claimed(s Settings, events []history.Event) []Violation {
	f := &found{invariant: "I7"}
	last := map[types.UID]time.Time{} // when the image of a virtual machine last was its
	muster(events, func(fl *fleet, e history.Event, apply func()) {
		for _, vm := range fl.machines {
			if fl.unclaimed(vm) == "" {
				last[vm.UID] = e.Seen
			}
		}
		apply()
		dv, ok := history.As[*cdiv1.DataVolume](e)
		if !ok || !e.Created() || machineOf(dv) == "" {
			return
		}
		vm := fl.controlling(dv)
		if vm == nil {
			return // it was deleted in this moment, and its disk goes, too
		}
		if wrong := fl.unclaimed(vm); wrong != "" && (s.Lag == 0 || last[vm.UID].IsZero() || e.Seen.Sub(last[vm.UID]) > s.Lag) {
			f.add(e, "a disk of %s/%s is made: %s", vm.Namespace, vm.Name, wrong)
		}
	})
	return f.list
}

// unclaimed says why the image of a virtual machine must not be cloned for it, or nothing.
func (f *fleet) unclaimed(vm *otv1alpha1.VirtualMachine) string {
	image := f.images[vm.ImageKey()]
	switch {
	case image == nil:
		return "its image is not there"
	case !f.admitted(image, vm):
		return "its image does not admit it"
	case users(image) == 0:
		return "its image is used by nobody"
	case !slices.Contains(image.Finalizers, otv1alpha1.FinalizerProtection):
		return "its image is not protected"
	}
	refs := image.Status.References
	if int(refs.Count) <= len(refs.Sample) && !slices.Contains(refs.Sample, vm.Namespace+"/"+vm.Name) {
		return "its image counts others: " + strings.Join(refs.Sample, ", ")
	}
	return ""
}

// References is I6 at the end of a history: each image counts the virtual machines that exist, refer to it, and are admitted; and
// names them.
func References(_ Settings, events []history.Event) []Violation {
	f, fl := &found{invariant: "I6"}, after(events)
	for key, image := range fl.images {
		if image.DeletionTimestamp != nil {
			continue
		}
		var names []string
		for _, vm := range fl.machines {
			if vm.ImageKey() == key && fl.admitted(image, vm) {
				names = append(names, vm.Namespace+"/"+vm.Name)
			}
		}
		slices.Sort(names)
		var sample []string
		if image.Status.References != nil {
			sample = image.Status.References.Sample
		}
		if n := users(image); int(n) != len(names) || len(names) <= 10 && !slices.Equal(sample, names) {
			f.add(last(events), "%s counts %d users %v, and %v use it", key, n, sample, names)
		}
	}
	return f.list
}
