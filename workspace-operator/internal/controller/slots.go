package controller

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// slots is what this process knows of the queue's Leases: the newest of what it has watched and what it has written
// itself, so that it never acts on less than it has done. It is not safe for concurrent use.
type slots struct {
	leases  map[int]*coordinationv1.Lease
	holders map[string][]int // the slots of each holder, in order
}

// observe takes in a Lease, unless a newer one is known.
func (s *slots) observe(lease *coordinationv1.Lease) {
	i, ok := slotNumber(lease.Name)
	if !ok {
		return
	}
	if known := s.leases[i]; known == nil || known.UID != lease.UID || !older(lease.ResourceVersion, known.ResourceVersion) {
		s.set(i, lease)
	}
}

// forget takes out a Lease that was deleted, unless it has been made again since.
func (s *slots) forget(lease *coordinationv1.Lease) {
	if i, ok := slotNumber(lease.Name); ok && s.leases[i] != nil && s.leases[i].UID == lease.UID {
		s.set(i, nil)
	}
}

func (s *slots) set(i int, lease *coordinationv1.Lease) {
	if s.leases == nil {
		s.leases, s.holders = map[int]*coordinationv1.Lease{}, map[string][]int{}
	}
	if former := holderOf(s.leases[i]); former != "" {
		if rest := slices.DeleteFunc(s.holders[former], func(n int) bool { return n == i }); len(rest) > 0 {
			s.holders[former] = rest
		} else {
			delete(s.holders, former)
		}
	}
	if lease == nil {
		delete(s.leases, i)
		return
	}
	s.leases[i] = lease
	if holder := holderOf(lease); holder != "" {
		s.holders[holder] = append(s.holders[holder], i)
		slices.Sort(s.holders[holder])
	}
}

// held says of each slot, up to the highest that is known, whether it has a holder.
func (s *slots) held() []bool {
	var held []bool
	for i, lease := range s.leases {
		for len(held) <= i {
			held = append(held, false)
		}
		held[i] = holderOf(lease) != ""
	}
	return held
}

// of is the lowest slot that the holder has.
func (s *slots) of(holder string) (slot int, has bool) {
	own := s.holders[holder]
	if len(own) == 0 {
		return -1, false
	}
	return own[0], true
}

// holder of the slot, or empty.
func (s *slots) holder(slot int) string { return holderOf(s.leases[slot]) }

func holderOf(lease *coordinationv1.Lease) string {
	if lease == nil {
		return ""
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// parseHolder takes apart what v1alpha1.SlotHolder has put together for a Workspace, which is in no namespace.
func parseHolder(holder string) (name string, uid types.UID, ok bool) {
	parts := strings.Split(holder, "/")
	if len(parts) != 3 || parts[0] != "" {
		return "", "", false
	}
	return parts[1], types.UID(parts[2]), true
}

func holderIdentity(workspace *v1alpha1.Workspace) string {
	return v1alpha1.SlotHolder(client.ObjectKeyFromObject(workspace), workspace.UID)
}

func slotName(i int) string { return v1alpha1.WorkspaceSlotPrefix + strconv.Itoa(i) }

func slotNumber(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, v1alpha1.WorkspaceSlotPrefix)
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(digits)
	return i, err == nil && i >= 0 && slotName(i) == name
}

// older compares resource versions, which are decimal numbers; an unreadable one is never older.
func older(a, b string) bool {
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	return errX == nil && errY == nil && x < y
}
