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
	lease.Name, lease.UID, lease.ResourceVersion = v1alpha1.SlotName(i), "uid-"+types.UID(strconv.Itoa(i)), strconv.Itoa(rv)
	if holder != "" {
		lease.Spec.HolderIdentity = new(holder)
	}
	return lease
}

func TestSlotsKeepTheNewestOfWhatIsWatchedAndWritten(t *testing.T) {
	var s slots
	s.observe(slotLease(1, "ns/a/1", 10))
	s.observe(slotLease(1, "ns/b/2", 12)) // our own write
	s.observe(slotLease(1, "ns/a/1", 10)) // its older event, late
	assert.Equal(t, "ns/b/2", s.holder(1))
	assert.Equal(t, []bool{false, true}, s.held())
	_, has := s.of("ns/a/1")
	assert.False(t, has)

	made := slotLease(1, "ns/c/3", 3) // deleted and made again elsewhere: another object, any version
	made.UID = "another"
	s.observe(made)
	assert.Equal(t, "ns/c/3", s.holder(1))
	s.forget(slotLease(1, "", 20)) // the deletion of the former object
	assert.Equal(t, "ns/c/3", s.holder(1), "a deletion of the former Lease must not hide the present one")
	s.forget(made)
	assert.Empty(t, s.holder(1))
}

func TestSlotsFindTheLowestOfAHolder(t *testing.T) {
	var s slots
	s.observe(slotLease(3, "ns/a/1", 1))
	s.observe(slotLease(0, "ns/a/1", 2))
	slot, has := s.of("ns/a/1")
	assert.True(t, has)
	assert.Equal(t, 0, slot)
	s.observe(slotLease(0, "", 3))
	slot, _ = s.of("ns/a/1")
	assert.Equal(t, 3, slot)
}

func TestLeasesWithOtherNamesAreNoSlots(t *testing.T) {
	for name, want := range map[string]bool{
		"disk-sync-slot-0": true, "disk-sync-slot-12": true, "disk-sync-slot-": false, "disk-sync-slot-01": false,
		"disk-sync-slot--1": false, "disk-sync-operator": false, "disk-sync-slot-x": false,
	} {
		_, is := slotNumber(name)
		assert.Equal(t, want, is, name)
	}
}

func TestHolderIsReadBackAsItWasWritten(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "image"}
	gotKey, uid, ok := parseHolder(v1alpha1.SlotHolder(key, "u-1"))
	assert.True(t, ok)
	assert.Equal(t, key, gotKey)
	assert.Equal(t, types.UID("u-1"), uid)
	for _, bad := range []string{"", "a", "a/b", "a/b/c/d"} {
		_, _, ok := parseHolder(bad)
		assert.False(t, ok, bad)
	}
}
