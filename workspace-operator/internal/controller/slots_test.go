package controller

import (
	"strconv"
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
)

// slotLease is slot i as version rv shows it.
func slotLease(i int, holder string, rv int) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{}
	lease.Name, lease.UID, lease.ResourceVersion = slotName(i), "uid-"+types.UID(strconv.Itoa(i)), strconv.Itoa(rv)
	if holder != "" {
		lease.Spec.HolderIdentity = new(holder)
	}
	return lease
}

func TestSlotsKeepTheNewestOfWhatIsWatchedAndWritten(t *testing.T) {
	var s slots
	s.observe(slotLease(1, "/a/1", 10))
	s.observe(slotLease(1, "/b/2", 12)) // our own write
	s.observe(slotLease(1, "/a/1", 10)) // its older event, late
	assert.Equal(t, "/b/2", s.holder(1))
	assert.Equal(t, []bool{false, true}, s.held())
	_, has := s.of("/a/1")
	assert.False(t, has)

	made := slotLease(1, "/c/3", 3) // deleted and made again elsewhere: another object, any version
	made.UID = "another"
	s.observe(made)
	assert.Equal(t, "/c/3", s.holder(1))
	s.forget(slotLease(1, "", 20)) // the deletion of the former object
	assert.Equal(t, "/c/3", s.holder(1), "a deletion of the former Lease must not hide the present one")
	s.forget(made)
	assert.Empty(t, s.holder(1))
}

func TestSlotsFindTheLowestOfAHolder(t *testing.T) {
	var s slots
	s.observe(slotLease(3, "/a/1", 1))
	s.observe(slotLease(0, "/a/1", 2))
	slot, has := s.of("/a/1")
	assert.True(t, has)
	assert.Equal(t, 0, slot)
	s.observe(slotLease(0, "", 3))
	slot, _ = s.of("/a/1")
	assert.Equal(t, 3, slot)
}

func TestLeasesWithOtherNamesAreNoSlots(t *testing.T) {
	for name, want := range map[string]bool{
		"workspace-slot-0": true, "workspace-slot-12": true, "workspace-slot-": false, "workspace-slot-01": false,
		"workspace-slot--1": false, "workspace-operator": false, "workspace-slot-x": false,
	} {
		_, is := slotNumber(name)
		assert.Equal(t, want, is, name)
	}
}

func TestHolderIsReadBackAsItWasWritten(t *testing.T) {
	name, uid, ok := parseHolder(v1alpha1.SlotHolder(types.NamespacedName{Name: "lab"}, "u-1"))
	assert.True(t, ok)
	assert.Equal(t, "lab", name)
	assert.Equal(t, types.UID("u-1"), uid)
	for _, bad := range []string{"", "a", "a/b", "a/b/c", "/a/b/c"} {
		_, _, ok := parseHolder(bad)
		assert.False(t, ok, bad)
	}
}
