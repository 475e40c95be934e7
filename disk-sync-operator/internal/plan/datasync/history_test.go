package datasync_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan/datasync"
	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// cluster holds images as the API server does, and carries decisions out on them.
type cluster struct {
	images map[string]*v1alpha1.VMDiskImage
	made   int
}

func (c *cluster) snapshot(d *v1alpha1.DataSync) datasync.Snapshot {
	s := datasync.Snapshot{DataSync: d, Named: map[string]*v1alpha1.VMDiskImage{}}
	for _, vm := range d.Spec.VMs {
		if image := c.images[v1alpha1.DataSyncImageName(d.Name, vm.Name)]; image != nil {
			s.Named[image.Name] = image
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.images)) {
		if metav1.IsControlledBy(c.images[name], d) {
			s.Owned = append(s.Owned, c.images[name])
		}
	}
	return s
}

// carryOut does some of what was decided: an operator may be killed after any write.
func (c *cluster) carryOut(d datasync.Decision, writes int) (done int) {
	step := func(write func()) {
		if done < writes {
			done++
			write()
		}
	}
	for _, image := range d.Create {
		step(func() {
			c.made++
			image.UID = types.UID(fmt.Sprint("uid-", c.made))
			c.images[image.Name] = image
		})
	}
	for _, change := range d.Change {
		step(func() { c.images[change.To.Name] = change.To })
	}
	for _, image := range d.Delete {
		step(func() { delete(c.images, image.Name) })
	}
	return done
}

// Any history of edits, uses and crashes ends with exactly the images of the last spec, and those that are in use.
func TestAnyHistoryEndsWithTheLastSpec(t *testing.T) {
	names := []string{"a", "b", "c-d", "e"}
	rapid.Check(t, func(t *rapid.T) {
		d := apitest.DataSync("lab", apitest.VM("a"))
		theirs := apitest.Image("lab-b")
		c := &cluster{images: map[string]*v1alpha1.VMDiskImage{theirs.Name: theirs.DeepCopy()}}
		p := policy.Policy{DefaultDiskSize: resource.MustParse("1Gi")}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"edit", "use", "policy", "reconcile", "reconcile"}).Draw(t, "what") {
			case "edit":
				d.Spec.VMs = nil
				for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 4, rapid.ID[string]).Draw(t, "entries") {
					apitest.VM(name, func(vm *v1alpha1.DataSyncVM) {
						vm.URL += rapid.SampledFrom([]string{"", "?v=2"}).Draw(t, "url")
						if rapid.Bool().Draw(t, "bare") {
							vm.DiskSize = nil
						}
					})(d)
				}
			case "use":
				for _, name := range slices.Sorted(maps.Keys(c.images)) {
					apitest.UsedBy(rapid.Int32Range(0, 1).Draw(t, "users"))(c.images[name])
				}
			case "policy":
				p.DefaultDiskSize = *resource.NewQuantity(rapid.Int64Range(1, 3).Draw(t, "size")<<30, resource.BinarySI)
			default:
				c.carryOut(datasync.Next(c.snapshot(d), p), rapid.IntRange(0, 3).Draw(t, "writes"))
			}
		}
		c.carryOut(datasync.Next(c.snapshot(d), p), 100)

		want := map[string]bool{theirs.Name: true}
		for _, vm := range d.Spec.VMs {
			name := v1alpha1.DataSyncImageName(d.Name, vm.Name)
			want[name] = true
			assert.NotNil(t, c.images[name], name)
			if name != theirs.Name {
				assert.Equal(t, vm.URL, c.images[name].Spec.URL)
			}
		}
		for name, image := range c.images {
			used := image.Status.References != nil && image.Status.References.Count > 0
			assert.True(t, want[name] || used, "%s is asked for or in use", name)
		}
		assert.Equal(t, theirs.Spec, c.images[theirs.Name].Spec, "never touched")
		assert.Equal(t, theirs.ObjectMeta, c.images[theirs.Name].ObjectMeta, "never touched")

		images := fmt.Sprint(slices.Sorted(maps.Keys(c.images)))
		assert.Zero(t, c.carryOut(datasync.Next(c.snapshot(d), p), 100), "a second look writes nothing")
		p.DefaultDiskSize, p.DefaultStorageClass, p.DefaultSnapshotClass = resource.MustParse("9Gi"), "other", "other"
		assert.Zero(t, c.carryOut(datasync.Next(c.snapshot(d), p), 100), "and neither does another policy")
		assert.Equal(t, images, fmt.Sprint(slices.Sorted(maps.Keys(c.images))))
	})
}
