package trace

import (
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// Machines is what the history says of VirtualMachines.
type Machines struct {
	// Created and Ready count VirtualMachines.
	Created int `json:"created"`
	Ready   int `json:"ready"`
	// Unclaimed are the disks that were made while their image counted fewer machines than had a disk.
	Unclaimed int `json:"unclaimed"`
	// Miscounted are the images that do not count their machines in the end.
	Miscounted int `json:"miscounted"`
}

// JudgeMachines reads a history that begins before the first claim. No machine is deleted in it.
func JudgeMachines(events []history.Event) Machines {
	j := machines{
		image: map[types.UID]types.NamespacedName{}, ready: map[types.UID]bool{},
		users: map[types.NamespacedName]int{}, disks: map[types.NamespacedName]int{}, counts: map[types.NamespacedName]int{},
	}
	unclaimed := 0
	for _, event := range events {
		if j.take(event) {
			unclaimed++
		}
	}
	found := Machines{Created: len(j.image), Ready: len(j.ready), Unclaimed: unclaimed}
	for image, users := range j.users {
		if j.counts[image] != users {
			found.Miscounted++
		}
	}
	return found
}

type machines struct {
	image map[types.UID]types.NamespacedName // of each machine
	ready map[types.UID]bool
	// By image: the machines that refer to it, those of them that have a disk, and how many it counts.
	users, disks, counts map[types.NamespacedName]int
}

// take returns true for a disk that nobody claimed.
func (j *machines) take(event history.Event) bool {
	switch object := event.Object.(type) {
	case *otv1alpha1.VirtualMachine:
		if event.Created() {
			j.image[object.UID] = object.ImageKey()
			j.users[object.ImageKey()]++
		}
		if object.Status.Phase == otv1alpha1.VirtualMachineReady {
			j.ready[object.UID] = true
		}
	case *otv1alpha1.VMDiskImage:
		if references := object.Status.References; references != nil {
			j.counts[event.NamespacedName()] = int(references.Count)
		}
	case *cdiv1.DataVolume:
		owner := metav1.GetControllerOf(object)
		if !event.Created() || owner == nil {
			return false
		}
		image := j.image[owner.UID]
		j.disks[image]++
		return j.disks[image] > j.counts[image]
	}
	return false
}

// Violations says what makes a run void.
func (m Machines) Violations(vms int) []string {
	var c complaints
	c.add(m.Created != vms, "%d machines were created, not %d", m.Created, vms)
	c.add(m.Ready != vms, "%d machines were Ready, not %d", m.Ready, vms)
	c.add(m.Unclaimed > 0, "%d disks were made before their image counted so many machines", m.Unclaimed)
	c.add(m.Miscounted > 0, "%d images do not count their machines", m.Miscounted)
	return c
}
