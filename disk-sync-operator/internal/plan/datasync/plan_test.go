package datasync_test

import (
	"testing"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/desired"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan/datasync"
	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var lab = apitest.DataSync("lab", apitest.VM("a"))

// made is the image of lab's entry as the API server would hold it.
func made(mods ...apitest.ImageMod) *v1alpha1.VMDiskImage {
	image := desired.Image(lab, lab.Spec.VMs[0], nil, policy.Policy{})
	image.UID, image.Generation, image.ResourceVersion = "uid-lab-a", 1, "100"
	for _, mod := range mods {
		mod(image)
	}
	return image
}

// at is an image that has come so far with the spec that it has.
func at(phase v1alpha1.Phase, message string) apitest.ImageMod {
	return func(i *v1alpha1.VMDiskImage) {
		i.Status.Phase, i.Status.Message, i.Status.Revision = phase, message, v1alpha1.RevisionOf(i)
	}
}

func foreign(mods ...apitest.ImageMod) *v1alpha1.VMDiskImage {
	return apitest.Image("lab-a", mods...)
}

func former(mods ...apitest.ImageMod) *v1alpha1.VMDiskImage {
	gone := apitest.DataSync("lab", func(d *v1alpha1.DataSync) { d.UID = "uid-before" })
	return foreign(append(mods, apitest.ControlledBy(gone))...)
}

func TestEntries(t *testing.T) {
	going := apitest.Deleted(metav1.Now())
	const queued, failed = v1alpha1.PhaseQueued, v1alpha1.PhaseFailed
	cases := map[string]struct {
		image   *v1alpha1.VMDiskImage
		refusal string
		phase   v1alpha1.Phase
		message string
		started bool
		does    string
	}{
		"no image":                       {nil, "", queued, "Waiting for a place in the queue", false, "create"},
		"the API server refuses it":      {nil, "exceeded quota: q", failed, "The API server refuses the image: exceeded quota: q", false, "create"},
		"just made":                      {made(), "", queued, "Waiting for a place in the queue", false, ""},
		"in the queue":                   {made(at(queued, "3 were ahead")), "", queued, "3 were ahead", false, ""},
		"between two attempts":           {made(apitest.Attempts(1), at(queued, "failed once")), "", queued, "failed once", true, ""},
		"syncing":                        {made(apitest.Attempts(1), at(v1alpha1.PhaseSyncing, "attempt 1")), "", v1alpha1.PhaseSyncing, "attempt 1", true, ""},
		"snapshotting":                   {made(apitest.Attempts(1), at(v1alpha1.PhaseSnapshotting, "snap")), "", v1alpha1.PhaseSnapshotting, "snap", true, ""},
		"succeeded":                      {made(apitest.Attempts(1), at(v1alpha1.PhaseSucceeded, "ready")), "", v1alpha1.PhaseSucceeded, "", true, ""},
		"failed":                         {made(at(failed, "got 404")), "", failed, "got 404", false, ""},
		"succeeded with a former spec":   {made(apitest.Attempts(1), url("https://b.example/x"), at(v1alpha1.PhaseSucceeded, "")), "", queued, "The changed image is about to enter the queue", true, "change"},
		"failed before it was asked for": {made(apitest.Attempts(3), at(failed, "got 404"), apitest.SyncRequested("now")), "", queued, "The changed image is about to enter the queue", true, ""},
		"a change that downloads nothing": {
			made(apitest.Attempts(1), at(v1alpha1.PhaseSucceeded, ""), apitest.Spec(func(s *v1alpha1.VMDiskImageSpec) { s.VolumePolicy = "DeleteAfterSnapshot" })),
			"", v1alpha1.PhaseSucceeded, "", true, "change",
		},
		"the API server refuses the change": {made(url("https://b.example/x"), at(v1alpha1.PhaseSucceeded, "")), "no", failed, "The API server refuses the image: no", false, "change"},
		"being deleted":                     {made(going), "", queued, "The image is being deleted; it will be made again when it is gone", false, ""},
		"being deleted, and in use":         {made(going, apitest.UsedBy(2)), "", queued, "The image is being deleted; it will be made again when it is gone; virtual machines that use it: 2", false, ""},
		"somebody else's":                   {foreign(), "", failed, "A VMDiskImage lab-a exists that does not belong to this DataSync: rename the entry, or delete that image", false, ""},
		"another DataSync's": {
			foreign(apitest.ControlledBy(apitest.DataSync("other"))), "", failed,
			"A VMDiskImage lab-a exists that does not belong to this DataSync: rename the entry, or delete that image", false, "",
		},
		"somebody else's, which is going": {foreign(going), "", queued, "Waiting until the VMDiskImage lab-a, which does not belong to this DataSync, is gone", false, ""},
		"a former DataSync's":             {former(), "", queued, "Waiting until the VMDiskImage lab-a of a former DataSync of this name is gone", false, ""},
		"a former DataSync's, in use":     {former(apitest.UsedBy(1)), "", queued, "Waiting until the VMDiskImage lab-a of a former DataSync of this name is gone; virtual machines that use it: 1", false, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := datasync.Snapshot{DataSync: lab, Named: map[string]*v1alpha1.VMDiskImage{}, Refusals: map[string]string{}}
			if c.image != nil {
				s.Named["lab-a"] = c.image
				if metav1.IsControlledBy(c.image, lab) {
					s.Owned = append(s.Owned, c.image)
				}
			}
			if c.refusal != "" {
				s.Refusals["lab-a"] = c.refusal
			}
			d := datasync.Next(s, policy.Policy{})
			assert.Equal(t, []datasync.Entry{{Name: "a", Image: "lab-a", Phase: c.phase, Message: c.message, Started: c.started}}, d.Entries)
			does := ""
			if len(d.Create) == 1 {
				does = "create"
			} else if len(d.Change) == 1 {
				does = "change"
			}
			assert.Equal(t, c.does, does)
			assert.Empty(t, d.Delete)
			assert.Empty(t, d.Blocked)
		})
	}
}

func url(url string) apitest.ImageMod {
	return apitest.Spec(func(s *v1alpha1.VMDiskImageSpec) { s.URL = url })
}

func TestWhatIsMissingIsNamedAndRecovers(t *testing.T) {
	d := apitest.DataSync("lab", apitest.VM("a", func(vm *v1alpha1.DataSyncVM) { vm.SourceType, vm.DiskSize = v1alpha1.SourceS3, nil }))
	s := datasync.Snapshot{DataSync: d}
	p := policy.Policy{}
	entry := datasync.Next(s, p).Entries[0]
	assert.Equal(t, v1alpha1.PhaseFailed, entry.Phase)
	assert.Contains(t, entry.Message, "set defaultDiskSize in the policy")
	assert.Empty(t, datasync.Next(s, p).Create)

	p.DefaultDiskSize = resource.MustParse("24Gi")
	assert.Contains(t, datasync.Next(s, p).Entries[0].Message, "set defaultSecretRef in the policy")
	assert.Empty(t, datasync.Next(s, p).Create)

	p.DefaultSecretRef = "keys"
	assert.Len(t, datasync.Next(s, p).Create, 1)
	assert.Equal(t, v1alpha1.PhaseQueued, datasync.Next(s, p).Entries[0].Phase)
}

func TestImagesOfFormerEntries(t *testing.T) {
	unused, used, going := apitest.Image("unused"), apitest.Image("used", apitest.UsedBy(2, "x/y")), apitest.Image("going", apitest.Deleted(metav1.Now()))
	released, held := apitest.Image("released", apitest.UsedBy(0)), apitest.Image("held", apitest.UsedBy(1), apitest.Deleted(metav1.Now()))
	d := datasync.Next(datasync.Snapshot{
		DataSync: lab, Named: map[string]*v1alpha1.VMDiskImage{"lab-a": made()},
		Owned: []*v1alpha1.VMDiskImage{made(), unused, used, going, released, held},
	}, policy.Policy{})
	assert.Equal(t, []*v1alpha1.VMDiskImage{unused, released}, d.Delete)
	assert.Equal(t, []*v1alpha1.VMDiskImage{used, held}, d.Blocked)
	assert.Len(t, d.Entries, 1)
}

func TestAnImageInUseIsChangedAllTheSame(t *testing.T) {
	image := made(apitest.UsedBy(3), url("https://b.example/x"))
	d := datasync.Next(datasync.Snapshot{DataSync: lab, Named: map[string]*v1alpha1.VMDiskImage{"lab-a": image}, Owned: []*v1alpha1.VMDiskImage{image}}, policy.Policy{})
	assert.Len(t, d.Change, 1, "the image keeps its artifact until the new one is ready")
	assert.Empty(t, d.Blocked)
}
