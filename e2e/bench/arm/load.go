package arm

import (
	"fmt"
	"time"

	"github.com/pelotech/open-terrain/e2e/chart"
)

// Name of an arm, which is also the user agent that its requests are counted by.
type Name string

// The arms: each operator is measured against a floor of its own, the workspace-operator also against what people would use
// instead.
const (
	Floor     Name = "floor"
	DiskSync  Name = "disk-sync-operator"
	VM        Name = "vm-operator"
	Workspace Name = "workspace-operator"
	Kubectl   Name = "kubectl"
	Helm      Name = "Helm"
)

// Load is what is asked of an arm: images, or VirtualMachines or Workspaces when there are any.
type Load struct {
	// Images to sync; with VirtualMachines, the images that are there and that they share.
	Images  int           `json:"images"`
	Slots   int           `json:"slots,omitempty"`
	Writers int           `json:"writers"`
	Import  time.Duration `json:"importNs,omitempty"`
	// VMs to create.
	VMs int `json:"vms,omitempty"`
	// Workspaces to create, or the objects of so many.
	Workspaces int `json:"workspaces,omitempty"`
	// Delete all of them when they are there, and measure that, too.
	Delete bool `json:"delete,omitempty"`
}

func (l Load) String() string {
	switch {
	case l.Workspaces > 0:
		return fmt.Sprintf("(%d workspaces)", l.Workspaces)
	case l.VMs > 0:
		return fmt.Sprintf("(%d VMs, %d images)", l.VMs, l.Images)
	}
	return fmt.Sprintf("(%d images, %d slots, %s)", l.Images, l.Slots, l.Import)
}

// Operator is the one that does such work.
func (l Load) Operator() Name {
	switch {
	case l.Workspaces > 0:
		return Workspace
	case l.VMs > 0:
		return VM
	}
	return DiskSync
}

// Units is how many objects are created.
func (l Load) Units() int {
	switch {
	case l.Workspaces > 0:
		return l.Workspaces
	case l.VMs > 0:
		return l.VMs
	}
	return l.Images
}

// Unit is what one of them is called.
func (l Load) Unit() string {
	switch {
	case l.Workspaces > 0:
		return "workspace"
	case l.VMs > 0:
		return "VM"
	}
	return "image"
}

func (l Load) chart() chart.Chart {
	switch {
	case l.Workspaces > 0:
		return chart.Workspace
	case l.VMs > 0:
		return chart.VM
	}
	return chart.DiskSync
}

func (l Load) task() task {
	switch {
	case l.Workspaces > 0:
		return workspaces{}
	case l.VMs > 0:
		return machines{}
	}
	return images{}
}
