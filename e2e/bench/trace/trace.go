// Package trace judges a run of the bench by its history in etcd: how many images synced at once, and in which order
// they were let in. It is pure: the history comes in, findings come out.
package trace

import (
	"fmt"
	"slices"
	"strings"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// Level is one of the three writes that let an image in, in the order in which they happen.
type Level string

// The levels.
const (
	// Slot is the write of a slot's Lease.
	Slot Level = "slot"
	// Syncing is the image's first revision with phase Syncing.
	Syncing Level = "syncing"
	// Download is the creation of the DataVolume.
	Download Level = "download"
)

// Levels are all, first to last.
func Levels() []Level { return []Level{Slot, Syncing, Download} }

// Finding is what the history says of one level.
type Finding struct {
	// Images that were let in.
	Images int `json:"images"`
	// Highest number at once: of held slots, of images in phase Syncing, of DataVolumes that have not Succeeded.
	Highest int `json:"highest"`
	// Inversions are the pairs of images of which the one that was created later was let in first.
	Inversions int `json:"inversions"`
}

// Findings of a run.
type Findings struct {
	// Created and Succeeded count images.
	Created   int               `json:"created"`
	Succeeded int               `json:"succeeded"`
	Levels    map[Level]Finding `json:"levels"`
}

// Judge reads a history. Only images that it shows the creation of are judged for order.
func Judge(events []history.Event) Findings {
	j := judge{created: map[types.UID]int{}, succeeded: map[types.UID]bool{}, levels: map[Level]*gauge{}}
	for _, level := range Levels() {
		j.levels[level] = &gauge{active: map[history.Key]bool{}, let: map[types.UID]bool{}}
	}
	for _, event := range events {
		j.take(event)
	}
	found := Findings{Created: len(j.created), Succeeded: len(j.succeeded), Levels: map[Level]Finding{}}
	for level, g := range j.levels {
		found.Levels[level] = Finding{Images: len(g.order), Highest: g.highest, Inversions: inversions(g.order, len(j.created))}
	}
	return found
}

type judge struct {
	created   map[types.UID]int // place in the order of creation
	succeeded map[types.UID]bool
	levels    map[Level]*gauge
}

// gauge follows one level.
type gauge struct {
	active  map[history.Key]bool
	highest int
	let     map[types.UID]bool
	order   []int // places in the order of creation, in the order of admission
}

func (g *gauge) set(key history.Key, active bool) {
	if !active {
		delete(g.active, key)
		return
	}
	g.active[key] = true
	g.highest = max(g.highest, len(g.active))
}

// admit notes the first time only: a retry has a place of its own in the queue.
func (j *judge) admit(level Level, image types.UID) {
	g := j.levels[level]
	place, known := j.created[image]
	if !known || g.let[image] {
		return
	}
	g.let[image] = true
	g.order = append(g.order, place)
}

func (j *judge) take(event history.Event) {
	switch event.Resource {
	case "vmdiskimages":
		image, _ := history.As[*otv1alpha1.VMDiskImage](event)
		j.image(event, image)
	case "datavolumes":
		dv, _ := history.As[*cdiv1.DataVolume](event)
		j.dataVolume(event, dv)
	case "leases":
		if strings.HasPrefix(event.Name, otv1alpha1.DiskSyncSlotPrefix) {
			lease, _ := history.As[*coordinationv1.Lease](event)
			j.lease(event, lease)
		}
	}
}

func (j *judge) image(event history.Event, image *otv1alpha1.VMDiskImage) {
	syncing := image != nil && image.Status.Phase == otv1alpha1.PhaseSyncing
	j.levels[Syncing].set(event.Key, syncing)
	if image == nil {
		return
	}
	if event.Created() {
		j.created[image.UID] = len(j.created)
	}
	if syncing {
		j.admit(Syncing, image.UID)
	}
	if image.Status.Phase == otv1alpha1.PhaseSucceeded {
		j.succeeded[image.UID] = true
	}
}

// dataVolume counts one that is being deleted, too: its importer may still be at work.
func (j *judge) dataVolume(event history.Event, dv *cdiv1.DataVolume) {
	j.levels[Download].set(event.Key, dv != nil && dv.Status.Phase != cdiv1.Succeeded)
	if dv == nil || !event.Created() {
		return
	}
	if owner := metav1.GetControllerOf(dv); owner != nil {
		j.admit(Download, owner.UID)
	}
}

func (j *judge) lease(event history.Event, lease *coordinationv1.Lease) {
	held := lease != nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != ""
	j.levels[Slot].set(event.Key, held)
	if held {
		holder := *lease.Spec.HolderIdentity
		j.admit(Slot, types.UID(holder[strings.LastIndex(holder, "/")+1:]))
	}
}

// inversions counts the pairs that stand in the wrong order, with a Fenwick tree: 0 for a sorted list.
func inversions(order []int, n int) int {
	tree, count := make([]int, n+1), 0
	for seen, place := range order {
		lower := 0
		for i := place + 1; i > 0; i -= i & -i {
			lower += tree[i]
		}
		count += seen - lower
		for i := place + 1; i <= n; i += i & -i {
			tree[i]++
		}
	}
	return count
}

// Violations says what in the findings makes a run void: an image that is missing, more at once than the limit on a
// bounded level, or an order that is not that of creation. A level without any image was not used by this arm.
func (f Findings) Violations(images, limit int, bounded ...Level) []string {
	var c complaints
	c.add(f.Created != images, "%d images were created, not %d", f.Created, images)
	c.add(f.Succeeded != images, "%d images have Succeeded, not %d", f.Succeeded, images)
	for _, level := range Levels() {
		l, isBounded := f.Levels[level], slices.Contains(bounded, level)
		if l.Images == 0 && !isBounded {
			continue
		}
		c.add(l.Images != images, "%s: %d images were let in, not %d", level, l.Images, images)
		c.add(l.Inversions > 0, "%s: %d inversions", level, l.Inversions)
		c.add(isBounded && l.Highest > limit, "%s: %d at once under a limit of %d", level, l.Highest, limit)
	}
	return c
}

type complaints []string

func (c *complaints) add(bad bool, text string, args ...any) {
	if bad {
		*c = append(*c, fmt.Sprintf(text, args...))
	}
}
