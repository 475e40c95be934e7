package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

var (
	earlier = metav1.NewTime(epoch)
	nowTime = metav1.NewTime(epoch.Add(time.Hour))
)

func holders(n int) []plan.Holder {
	all := make([]plan.Holder, 0, n)
	for i := range n {
		all = append(all, plan.Holder{Key: types.NamespacedName{Namespace: "lab", Name: fmt.Sprintf("vm-%02d", n-i)}})
	}
	return all
}

func names(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("lab/vm-%02d", i+1))
	}
	return all
}

func TestReferences(t *testing.T) {
	for name, c := range map[string]struct {
		current *v1alpha1.References
		holders int
		deleted bool
		want    v1alpha1.References
		write   bool
	}{
		"nobody has used it":          {nil, 0, false, v1alpha1.References{}, false},
		"the first":                   {nil, 1, false, v1alpha1.References{Count: 1, Sample: names(1), LastReferencedAt: &nowTime}, true},
		"the same":                    {&v1alpha1.References{Count: 2, Sample: names(2), LastReferencedAt: &earlier}, 2, false, v1alpha1.References{Count: 2, Sample: names(2), LastReferencedAt: &earlier}, false},
		"another one instead":         {&v1alpha1.References{Count: 2, Sample: names(3)[1:], LastReferencedAt: &earlier}, 2, false, v1alpha1.References{Count: 2, Sample: names(2), LastReferencedAt: &earlier}, true},
		"many: the first ten by name": {nil, 30, false, v1alpha1.References{Count: 30, Sample: names(10), LastReferencedAt: &nowTime}, true},
		"the last one has gone":       {&v1alpha1.References{Count: 1, Sample: names(1), LastReferencedAt: &earlier}, 0, false, v1alpha1.References{LastReferencedAt: &nowTime}, true},
		"nobody uses it any more":     {&v1alpha1.References{LastReferencedAt: &earlier}, 0, false, v1alpha1.References{LastReferencedAt: &earlier}, false},
		"being deleted, not claimed":  {nil, 2, true, v1alpha1.References{}, false},
		"being deleted, released":     {&v1alpha1.References{Count: 3, Sample: names(3), LastReferencedAt: &earlier}, 1, true, v1alpha1.References{Count: 1, Sample: names(1), LastReferencedAt: &nowTime}, true},
		"somebody wrote nonsense":     {&v1alpha1.References{Count: 99}, 1, false, v1alpha1.References{Count: 1, Sample: names(1), LastReferencedAt: &nowTime}, true},
	} {
		t.Run(name, func(t *testing.T) {
			image := apitest.Image("ubuntu")
			image.Status.References = c.current
			if c.deleted {
				apitest.Deleted(nowTime)(image)
			}
			next, write := plan.References(image, holders(c.holders), nowTime)
			assert.Equal(t, c.want, next)
			assert.Equal(t, c.write, write)
			image.Status.References = &next
			_, again := plan.References(image, holders(c.holders), metav1.NewTime(epoch.Add(9*time.Hour)))
			assert.False(t, again, "once is enough")
		})
	}
}

func TestHolders(t *testing.T) {
	vm := func(namespace, name string, image v1alpha1.VMDiskImageReference, mods ...vmMod) v1alpha1.VirtualMachine {
		made := newVM(append(mods, func(vm *v1alpha1.VirtualMachine) {
			vm.Namespace, vm.Name, vm.UID, vm.Spec.VMDiskImageRef = namespace, name, types.UID(name), image
		})...)
		return *made
	}
	farm := v1alpha1.VMDiskImageReference{Namespace: "farm", Name: "ubuntu"}
	cloned := func(vm *v1alpha1.VirtualMachine) { vm.Status.Disk = &v1alpha1.VirtualMachineDiskStatus{} }
	going := func(vm *v1alpha1.VirtualMachine) { vm.DeletionTimestamp = &nowTime }
	vms := []v1alpha1.VirtualMachine{
		vm("farm", "at-home", v1alpha1.VMDiskImageReference{Name: "ubuntu"}),
		vm("red", "granted", farm), vm("blue", "not-granted", farm),
		vm("red", "going", farm, going), vm("red", "cloned", farm, cloned), vm("red", "cloning", farm),
		vm("red", "other", v1alpha1.VMDiskImageReference{Name: "ubuntu"}),
	}
	facts := plan.Facts{
		Labels:  func(namespace string) map[string]string { return map[string]string{"team": namespace} },
		HasDisk: func(vm *v1alpha1.VirtualMachine) bool { return vm.Name == "cloning" },
	}
	who := func(image *v1alpha1.VMDiskImage) (all []string) {
		for _, holder := range plan.Holders(image, vms, facts) {
			assert.Equal(t, types.UID(holder.Key.Name), holder.UID)
			all = append(all, holder.Key.String())
		}
		return all
	}
	image := apitest.Image("ubuntu", apitest.In("farm"))
	assert.Equal(t, []string{"farm/at-home"}, who(image), "others need a grant")
	image.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{
		From: v1alpha1.NamespacesFromSelector, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}},
	}
	assert.Equal(t, []string{"farm/at-home", "red/granted", "red/going", "red/cloned", "red/cloning"}, who(image), "who is being deleted still exists")
	image.DeletionTimestamp = &nowTime
	assert.Equal(t, []string{"red/cloned", "red/cloning"}, who(image), "who only waits does not hold it back")
}

func TestClaimed(t *testing.T) {
	claimed := func(mods ...apitest.ImageMod) *v1alpha1.VMDiskImage {
		image := apitest.Image("ubuntu", append([]apitest.ImageMod{func(i *v1alpha1.VMDiskImage) {
			i.Finalizers, i.Status.References = []string{v1alpha1.FinalizerProtection}, &v1alpha1.References{Count: 1}
		}}, mods...)...)
		return image
	}
	assert.True(t, plan.Claimed(claimed(), true))
	assert.False(t, plan.Claimed(claimed(), false), "it counts others")
	assert.False(t, plan.Claimed(claimed(func(i *v1alpha1.VMDiskImage) { i.Finalizers = nil }), true), "nothing would hold it back")
	assert.False(t, plan.Claimed(claimed(func(i *v1alpha1.VMDiskImage) { i.Status.References = nil }), true))
	assert.False(t, plan.Claimed(claimed(func(i *v1alpha1.VMDiskImage) { i.Status.References.Count = 0 }), true))
	assert.False(t, plan.Claimed(claimed(apitest.Deleted(nowTime)), true))
}

// Whatever was counted before, by whomever: after one write the count is the truth, and there is no second one.
func TestReferencesAreTheTruthAfterOneWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		image := apitest.Image("ubuntu")
		if rapid.Bool().Draw(t, "counted before") {
			image.Status.References = &v1alpha1.References{Count: int32(rapid.IntRange(0, 40).Draw(t, "count"))}
		}
		n := rapid.IntRange(0, 40).Draw(t, "holders")
		next, _ := plan.References(image, holders(n), nowTime)
		if int(next.Count) != n || len(next.Sample) > 10 || len(next.Sample) > n {
			t.Fatalf("%d holders, and %+v", n, next)
		}
		image.Status.References = &next
		if _, again := plan.References(image, holders(n), nowTime); again {
			t.Fatalf("a second write")
		}
	})
}
