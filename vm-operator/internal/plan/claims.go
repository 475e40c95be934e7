package plan

import (
	"slices"
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// sampleSize is how many users of an image are named.
const sampleSize = 10

// Holder is a VirtualMachine that uses an image, or waits for it.
type Holder struct {
	Key types.NamespacedName
	UID types.UID
}

// Facts are what decides about a holder besides itself and the image.
type Facts struct {
	// Labels of a namespace.
	Labels func(namespace string) map[string]string
	// HasDisk says that there is a DataVolume for the VirtualMachine.
	HasDisk func(vm *v1alpha1.VirtualMachine) bool
}

// Holders are those of the VirtualMachines that refer to the image that count: all that exist, also those that are being
// deleted, and that the image admits. One that is being deleted is held back only by those that have a disk of it, or are
// getting one: the others would wait for it for ever, and it for them.
func Holders(image *v1alpha1.VMDiskImage, vms []v1alpha1.VirtualMachine, facts Facts) []Holder {
	key := types.NamespacedName{Namespace: image.Namespace, Name: image.Name}
	holders := make([]Holder, 0, len(vms))
	for i := range vms {
		vm := &vms[i]
		if vm.ImageKey() != key || !image.Admits(vm.Namespace, facts.Labels(vm.Namespace)) {
			continue
		}
		if image.DeletionTimestamp == nil || vm.Status.Disk != nil || facts.HasDisk(vm) {
			holders = append(holders, Holder{Key: types.NamespacedName{Namespace: vm.Namespace, Name: vm.Name}, UID: vm.UID})
		}
	}
	return holders
}

// References are what the image shall say about who uses it, and whether that differs from what it says. The count is that of
// the holders, never one more or less than before; an image that is being deleted is released, and not claimed anew.
// References stay when nobody is left: lastReferencedAt tells since when.
func References(image *v1alpha1.VMDiskImage, holders []Holder, now metav1.Time) (next v1alpha1.References, write bool) {
	var current v1alpha1.References
	if image.Status.References != nil {
		current = *image.Status.References
	}
	next = v1alpha1.References{Count: int32(len(holders)), LastReferencedAt: current.LastReferencedAt} // the API server holds fewer than 2^31
	if image.DeletionTimestamp != nil {
		next.Count = min(next.Count, current.Count)
	}
	names := make([]string, 0, len(holders))
	for _, holder := range holders {
		names = append(names, holder.Key.String())
	}
	slices.SortFunc(names, strings.Compare)
	next.Sample = names[:min(len(names), sampleSize, int(next.Count))]
	if next.Count != current.Count {
		next.LastReferencedAt = &now
	}
	if len(next.Sample) == 0 {
		next.Sample = nil
	}
	return next, !equality.Semantic.DeepEqual(current, next)
}
