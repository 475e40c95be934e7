package bench

import (
	"slices"
	"time"

	"github.com/pelotech/open-terrain/e2e/bench/arm"
)

// Row is a load and the highest ratio to the floor that is allowed under it; 0 means that there is none.
type Row struct {
	Name  string   `json:"name"`
	Load  arm.Load `json:"load"`
	Ratio float64  `json:"ratio"`
	// Quick rows are run with --quick, too.
	Quick bool `json:"-"`
}

// Limits that hold for every row, and for what comes after the largest.
const (
	maxWrites    = 7
	maxEvents    = 3
	maxGrowth    = 1.15
	maxMemory    = 1.5
	slotsBound   = 1.15
	serverBound  = 1.5
	writers      = 8
	manyImages   = 10000
	fewImages    = 100
	manySlots    = 64
	growthRepeat = 5
	// Of the vm-operator.
	machinesBound  = 1.3
	vmsPerImage    = 50
	vmsPerWrite    = 20  // of an image that all of them use
	manyClaims     = 500 // on one image; with few, the first and the last write of it are too many already
	fewestOfImages = 2
	// Of the workspace-operator.
	workspacesBound = 1.5
)

// Rows are all rows. Images scales the largest one of images down, vms those of VirtualMachines (the second one has half as
// many), workspaces that of Workspaces; the others stay as they are.
func Rows(images, vms, workspaces int) []Row {
	load := func(images, slots int, duration time.Duration) arm.Load {
		return arm.Load{Images: images, Slots: slots, Writers: writers, Import: duration}
	}
	return []Row{
		{Name: "short", Load: load(40, 4, 200*time.Millisecond), Ratio: slotsBound, Quick: true},
		{Name: "long", Load: load(20, 4, 7*time.Second), Ratio: slotsBound, Quick: true},
		{Name: "thousand", Load: load(1000, 16, 0), Ratio: serverBound},
		{Name: "many", Load: load(images, manySlots, 0), Ratio: serverBound},
		{Name: "vm", Load: shared(vms, max(fewestOfImages, vms/vmsPerImage)), Ratio: machinesBound},
		{Name: "claims", Load: arm.Load{VMs: max(1, vms/2), Images: 1, Writers: writers, Delete: true}},
		{Name: "workspace", Load: arm.Load{Workspaces: min(max(1, workspaces), arm.MostWorkspaces), Writers: writers}, Ratio: workspacesBound},
	}
}

// shared are so many VirtualMachines, as many on each image.
func shared(vms, images int) arm.Load {
	return arm.Load{VMs: max(1, vms/images) * images, Images: images, Writers: writers}
}

// arms are those of a row in its first round. What the workspace-operator makes is what the others are to make.
func (r Row) arms() []arm.Name {
	if r.Load.Workspaces > 0 {
		return []arm.Name{arm.Workspace, arm.Floor, arm.Kubectl, arm.Helm}
	}
	return []arm.Name{arm.Floor, r.Load.Operator()}
}

// Growth is the row that the largest is compared with.
const Growth = "growth"

func growthLoad() arm.Load {
	return arm.Load{Images: fewImages, Slots: manySlots, Writers: writers}
}

// settles says after which row the settled operator is looked at: the last one of each operator that leaves its objects.
func settles(rows []Row, i int) bool {
	return !rows[i].Load.Delete && !slices.ContainsFunc(rows[i+1:], func(later Row) bool {
		return !later.Load.Delete && later.Load.Operator() == rows[i].Load.Operator()
	})
}

// choose the rows with these names; none means all.
func choose(rows []Row, names []string, quick bool) []Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool {
		if len(names) > 0 {
			return !slices.Contains(names, r.Name)
		}
		return quick && !r.Quick
	})
}
