package arm

import (
	"fmt"
	"time"

	"github.com/pelotech/open-terrain/e2e/chart"
)

// Name of an arm, which is also the user agent that its requests are counted by.
type Name string

// The arms: each operator is measured against a floor of its own.
const (
	Floor    Name = "floor"
	DiskSync Name = "disk-sync-operator"
	VM       Name = "vm-operator"
)

// Load is what is asked of an arm: images, or VirtualMachines when there are any.
type Load struct {
	// Images to sync; with VirtualMachines, the images that are there and that they share.
	Images  int           `json:"images"`
	Slots   int           `json:"slots,omitempty"`
	Writers int           `json:"writers"`
	Import  time.Duration `json:"importNs,omitempty"`
	// VMs to create.
	VMs int `json:"vms,omitempty"`
	// Delete all of them when they are there, and measure that, too.
	Delete bool `json:"delete,omitempty"`
}

func (l Load) String() string {
	if l.VMs > 0 {
		return fmt.Sprintf("(%d VMs, %d images)", l.VMs, l.Images)
	}
	return fmt.Sprintf("(%d images, %d slots, %s)", l.Images, l.Slots, l.Import)
}

// Operator is the one that does such work.
func (l Load) Operator() Name {
	if l.VMs > 0 {
		return VM
	}
	return DiskSync
}

// Units is how many objects are created.
func (l Load) Units() int {
	if l.VMs > 0 {
		return l.VMs
	}
	return l.Images
}

// Unit is what one of them is called.
func (l Load) Unit() string {
	if l.VMs > 0 {
		return "VM"
	}
	return "image"
}

func (l Load) chart() chart.Chart {
	if l.VMs > 0 {
		return chart.VM
	}
	return chart.DiskSync
}

func (l Load) task() task {
	if l.VMs > 0 {
		return machines{}
	}
	return images{}
}
