package controller

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// hall is an Admission without an API server: its steps are looked at, and settled by hand.
func hall(t *testing.T) *Admission {
	t.Helper()
	m, err := newMetrics(prometheus.NewRegistry())
	require.NoError(t, err)
	return &Admission{
		now: time.Now, metrics: m, images: map[string]entry{}, fresh: map[string]bool{}, ended: map[string]struct{}{}, granted: map[string]grant{},
		poke: func() {}, wake: func(types.NamespacedName) {}, admitted: func(types.NamespacedName) {},
	}
}

// queuedImage stands in the queue with its ticket; ticket 0 has not been seen before, at that resourceVersion.
func queuedImage(name string, ticket, rv int64) *v1alpha1.VMDiskImage {
	image := &v1alpha1.VMDiskImage{}
	image.Namespace, image.Name, image.UID, image.ResourceVersion = "ns", name, types.UID("u-"+name), strconv.FormatInt(rv, 10)
	if ticket != 0 {
		image.Status.Ticket, image.Status.Revision = ticket, v1alpha1.RevisionOf(image)
		image.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSynced, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonQueued}}
	}
	return image
}

// steps takes and settles steps until there is none, and tells them.
func steps(a *Admission, limit int) []string {
	var told []string
	for {
		s, ok := a.next(limit)
		if !ok {
			return told
		}
		told = append(told, fmt.Sprintf("%d: %s -> %s", s.slot, name(s.from), name(s.to)))
		version := 1000
		if s.lease != nil {
			known, _ := strconv.Atoi(s.lease.ResourceVersion)
			version = known + 1
		}
		a.settle(s, slotLease(s.slot, s.to, version))
	}
}

func name(holder string) string {
	key, _, _ := parseHolder(holder)
	return key.Name
}

func TestSlotsAreGivenInTheOrderOfTheTickets(t *testing.T) {
	a := hall(t)
	a.imageSeen(queuedImage("third", 0, 30))
	a.imageSeen(queuedImage("first", 10, 90))
	a.imageSeen(queuedImage("fourth", 40, 91))
	a.imageSeen(queuedImage("second", 0, 20))
	assert.Equal(t, []string{"0:  -> first", "1:  -> second", "2:  -> third"}, steps(a, 3))
	assert.True(t, a.waiting.Has(v1alpha1.SlotHolder(types.NamespacedName{Namespace: "ns", Name: "fourth"}, "u-fourth")))
}

func TestASlotPassesFromOneHolderToTheNextInOneWrite(t *testing.T) {
	a := hall(t)
	for i, n := range []string{"a", "b", "c"} {
		a.imageSeen(queuedImage(n, int64(i+1), int64(i+1)))
	}
	require.Equal(t, []string{"0:  -> a", "1:  -> b"}, steps(a, 2))
	a.release(a.standing("ns/b/u-b").hold)
	assert.Equal(t, []string{"1: b -> c"}, steps(a, 2))
	a.release(a.standing("ns/a/u-a").hold)
	a.release(a.standing("ns/c/u-c").hold)
	assert.Equal(t, []string{"0: a -> ", "1: c -> "}, steps(a, 2))
}

func TestALoweredLimitStopsNobodyAndAdmitsNobodyUntilFewEnoughAreLeft(t *testing.T) {
	a := hall(t)
	for i := range 8 {
		a.imageSeen(queuedImage(fmt.Sprint("i", i), int64(i+1), int64(i+1)))
	}
	require.Len(t, steps(a, 4), 4)
	assert.Empty(t, steps(a, 2))
	a.release(a.standing("ns/i0/u-i0").hold)
	assert.Equal(t, []string{"0: i0 -> "}, steps(a, 2), "three are left")
	a.release(a.standing("ns/i3/u-i3").hold)
	assert.Equal(t, []string{"3: i3 -> "}, steps(a, 2), "two are left")
	a.release(a.standing("ns/i2/u-i2").hold)
	assert.Equal(t, []string{"2: i2 -> ", "0:  -> i4"}, steps(a, 2), "one is left, and one may come")
}

func TestAnImageWithTwoSlotsGivesUpTheHigherOne(t *testing.T) {
	a := hall(t)
	a.leaseSeen(slotLease(0, "ns/a/u-a", 1))
	a.leaseSeen(slotLease(2, "ns/a/u-a", 2))
	a.imageSeen(queuedImage("b", 5, 5))
	assert.Equal(t, []string{"2: a -> b"}, steps(a, 3))
	assert.Empty(t, steps(a, 3))
}

func TestASlotThatComesUnawaresIsUsed(t *testing.T) {
	a := hall(t)
	var woken []string
	a.wake = func(key types.NamespacedName) { woken = append(woken, key.Name) }
	a.imageSeen(queuedImage("a", 0, 1))
	a.imageSeen(queuedImage("b", 0, 2))
	a.leaseSeen(slotLease(0, "ns/a/u-a", 10)) // we wrote it, and the answer got lost
	assert.Equal(t, []string{"a"}, woken, "nobody else begins its attempt")
	assert.Equal(t, []string{"1:  -> b"}, steps(a, 2), "a gets no second one")
	a.leaseSeen(slotLease(0, "ns/c/u-c", 11)) // another leader took it away
	assert.Equal(t, []string{"a", "a", "c"}, woken)
	a.leaseSeen(slotLease(0, "ns/c/u-c", 12))
	assert.Len(t, woken, 3, "no news")
}

func TestAReleaseIsForTheSlotThatIsHeldNow(t *testing.T) {
	a := hall(t)
	a.leaseSeen(slotLease(1, "ns/a/u-a", 1))
	former := slotLease(1, "ns/a/u-a", 0)
	former.Spec.LeaseTransitions = new(int32(-2))
	a.release(holdOf(former))
	assert.Empty(t, steps(a, 4), "it has got the slot anew, from another leader")
	a.release(a.standing("ns/a/u-a").hold)
	a.leaseGone(slotLease(1, "ns/a/u-a", 1))
	a.leaseSeen(slotLease(3, "ns/a/u-a", 9)) // the next attempt
	assert.Empty(t, steps(a, 4), "what was said of the former attempt does not end the next one")
}

func TestAnEndedHoldIsForgottenWhenAnotherLeaderPassesItOn(t *testing.T) {
	a := hall(t)
	held := func(holder string, transitions int32, version int) *coordinationv1.Lease {
		lease := slotLease(0, holder, version)
		lease.Spec.LeaseTransitions = new(transitions)
		return lease
	}
	a.leaseSeen(held("ns/a/u-a", 1, 1))
	a.release(a.standing("ns/a/u-a").hold)
	a.leaseSeen(held("ns/b/u-b", 2, 2))
	assert.Empty(t, a.ended)
	a.leaseSeen(held("ns/a/u-a", 3, 3))
	assert.Empty(t, steps(a, 4), "the next attempt has its slot")
}

func TestAnImageThatIsGoneOrRunsDoesNotWait(t *testing.T) {
	a := hall(t)
	image := queuedImage("a", 1, 1)
	a.imageSeen(image)
	a.imageGone(image)
	assert.Zero(t, a.state().depth)
	a.leaseSeen(slotLease(0, "ns/b/u-b", 1))
	a.imageSeen(queuedImage("b", 2, 2)) // its event from before the slot, late
	assert.Zero(t, a.state().depth)
}

func TestThePositionIsThatOfTheArrival(t *testing.T) {
	a := hall(t)
	for i := range 5 {
		a.imageSeen(queuedImage(fmt.Sprint("i", i), 0, int64(i+1)))
	}
	a.imageSeen(queuedImage("i3", 4, 9)) // its ticket has been written
	st := a.standing("ns/i3/u-i3")
	assert.Equal(t, 3, st.ahead)
	assert.Equal(t, int64(9), st.tail)
	assert.Empty(t, st.slot)
}

func TestTheAnswerToOurOwnGrantIsTheAPIServersWordForAWhile(t *testing.T) {
	a := hall(t)
	now := time.Now()
	a.now = func() time.Time { return now }
	a.imageSeen(queuedImage("a", 1, 1))
	steps(a, 1)
	hold := a.standing("ns/a/u-a").hold
	assert.True(t, a.justGranted(hold))
	now = now.Add(wordKept) // the process was stopped
	assert.False(t, a.justGranted(hold))
	a.release(hold)
	steps(a, 1)
	assert.Empty(t, a.granted)
}

func TestAdmissionWaitsForTheDownloads(t *testing.T) {
	a := hall(t)
	now, poked := time.Now(), 0
	a.now, a.poke = func() time.Time { return now }, func() { poked++ }
	const images = 3 * startsAhead
	for i := range images {
		a.imageSeen(queuedImage(fmt.Sprint("i", i), int64(i+1), int64(i+1)))
	}
	require.Len(t, steps(a, images), startsAhead)
	assert.Equal(t, wordKept, a.later().RequeueAfter, "nobody tells of downloads that do not get on")
	poked = 0
	a.begins(types.NamespacedName{Namespace: "ns", Name: "i0"})
	assert.Equal(t, 1, poked)
	assert.Equal(t, []string{"16:  -> i16"}, steps(a, images))
	a.release(a.standing("ns/i0/u-i0").hold)
	assert.Empty(t, steps(a, images), "it is handed on in one write, when its turn comes")
	a.begins(types.NamespacedName{Namespace: "ns", Name: "i1"})
	assert.Equal(t, []string{"0: i0 -> i17"}, steps(a, images))
	now = now.Add(wordKept)
	assert.Len(t, steps(a, images), startsAhead, "one that is not looked at blocks nobody for longer")
}
