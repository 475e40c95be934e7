package controller

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hall is an Admission without an API server: its steps are looked at, and settled by hand.
func hall(t require.TestingT) *Admission {
	m, err := newMetrics(prometheus.NewRegistry())
	require.NoError(t, err)
	return &Admission{
		now: time.Now, metrics: m, known: map[string]*entry{}, poke: func() {}, wake: func(types.NamespacedName) {},
	}
}

// queued waits with its ticket; ticket 0 has not been seen before, at that resourceVersion.
func queued(name string, ticket, rv int64) *v1alpha1.Workspace {
	ws := &v1alpha1.Workspace{}
	ws.Name, ws.UID, ws.ResourceVersion = name, types.UID("u-"+name), strconv.FormatInt(rv, 10)
	if ticket != 0 {
		ws.Status.Queue = &v1alpha1.WorkspaceQueueStatus{Position: 9, Ticket: ticket}
	}
	return ws
}

// provisioned has been Ready, or Failed.
func provisioned(ws *v1alpha1.Workspace) *v1alpha1.Workspace {
	done := ws.DeepCopy()
	done.Status.AdmittedAt, done.Status.ProvisionedAt = new(metav1.Now()), new(metav1.Now())
	return done
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
	n, _, _ := parseHolder(holder)
	return n
}

func TestSlotsAreGivenInTheOrderOfTheTickets(t *testing.T) {
	a := hall(t)
	a.workspaceSeen(queued("third", 0, 30))
	a.workspaceSeen(queued("first", 10, 90))
	a.workspaceSeen(queued("fourth", 40, 91))
	a.workspaceSeen(queued("second", 0, 20))
	assert.Equal(t, []string{"0:  -> first", "1:  -> second", "2:  -> third"}, steps(a, 3))
	assert.True(t, a.waiting.Has("/fourth/u-fourth"))
}

func TestASlotPassesFromOneHolderToTheNextInOneWrite(t *testing.T) {
	a := hall(t)
	var all []*v1alpha1.Workspace
	for i, n := range []string{"a", "b", "c"} {
		all = append(all, queued(n, 0, int64(i+1)))
		a.workspaceSeen(all[i])
	}
	require.Equal(t, []string{"0:  -> a", "1:  -> b"}, steps(a, 2))
	a.workspaceSeen(provisioned(all[1]))
	assert.Equal(t, []string{"1: b -> c"}, steps(a, 2))
	a.workspaceSeen(provisioned(all[0]))
	a.workspaceGone(all[2])
	assert.Equal(t, []string{"0: a -> ", "1: c -> "}, steps(a, 2))
	a.workspaceSeen(provisioned(all[0]))
	assert.Empty(t, steps(a, 2), "who was provisioned once needs no slot again")
}

func TestADeletedWorkspaceGivesItsSlotUp(t *testing.T) {
	a := hall(t)
	ws := queued("a", 0, 1)
	a.workspaceSeen(ws)
	require.Len(t, steps(a, 1), 1)
	going := ws.DeepCopy()
	going.DeletionTimestamp = new(metav1.Now())
	a.workspaceSeen(going)
	a.workspaceSeen(queued("b", 0, 2))
	assert.Equal(t, []string{"0: a -> b"}, steps(a, 1), "a finalizer that hangs must not keep the others waiting")
}

func TestALoweredLimitStopsNobodyAndAdmitsNobodyUntilFewEnoughAreLeft(t *testing.T) {
	a := hall(t)
	var all []*v1alpha1.Workspace
	for i := range 8 {
		all = append(all, queued(fmt.Sprint("w", i), 0, int64(i+1)))
		a.workspaceSeen(all[i])
	}
	require.Len(t, steps(a, 4), 4)
	assert.Empty(t, steps(a, 2))
	a.workspaceSeen(provisioned(all[0]))
	assert.Equal(t, []string{"0: w0 -> "}, steps(a, 2), "three are left")
	a.workspaceSeen(provisioned(all[3]))
	assert.Equal(t, []string{"3: w3 -> "}, steps(a, 2), "two are left")
	a.workspaceSeen(provisioned(all[2]))
	assert.Equal(t, []string{"2: w2 -> ", "0:  -> w4"}, steps(a, 2), "one is left, and one may come")
}

func TestALimitOfNoneAdmitsNobody(t *testing.T) {
	a := hall(t)
	a.workspaceSeen(queued("a", 0, 1))
	assert.Empty(t, steps(a, 0))
	assert.Len(t, steps(a, 1), 1)
}

func TestAWorkspaceWithTwoSlotsGivesUpTheHigherOne(t *testing.T) {
	a := hall(t)
	a.workspaceSeen(queued("a", 0, 1))
	a.leaseSeen(slotLease(0, "/a/u-a", 1))
	a.leaseSeen(slotLease(2, "/a/u-a", 2))
	a.workspaceSeen(queued("b", 5, 5))
	assert.Equal(t, []string{"2: a -> b"}, steps(a, 3))
	assert.Empty(t, steps(a, 3))
}

func TestASlotThatComesUnawaresIsUsed(t *testing.T) {
	a := hall(t)
	var woken []string
	a.wake = func(key types.NamespacedName) { woken = append(woken, key.Name) }
	a.workspaceSeen(queued("a", 0, 1))
	a.workspaceSeen(queued("b", 0, 2))
	a.leaseSeen(slotLease(0, "/a/u-a", 10)) // we wrote it, and the answer got lost
	assert.Equal(t, []string{"a"}, woken, "nobody else has it go on")
	assert.Equal(t, []string{"1:  -> b"}, steps(a, 2), "a gets no second one")
	a.leaseGone(slotLease(0, "/a/u-a", 11)) // somebody has deleted it
	assert.Equal(t, []string{"0:  -> a"}, steps(a, 2), "it waits for another one")
}

func TestAnAdmittedWorkspaceThatLostItsSlotGoesFirst(t *testing.T) {
	a := hall(t)
	a.workspaceSeen(queued("a", 0, 1))
	lost := queued("b", 0, 2)
	lost.Status.AdmittedAt = new(metav1.Now())
	a.workspaceSeen(lost)
	assert.Equal(t, []string{"0:  -> b"}, steps(a, 1))
}

func TestTheSlotsOfWorkspacesThatAreGoneAreFree(t *testing.T) {
	a := hall(t)
	there := queued("there", 0, 1)
	a.live = readerOf{"there": there, "again": queued("again", 0, 2)}
	for i, holder := range []string{"/there/u-there", "/gone/u-gone", "/again/former", "of another kind"} {
		a.leaseSeen(slotLease(i, holder, i+1))
	}
	expected, err := a.missStrangers(t.Context())
	require.NoError(t, err)
	assert.True(t, expected, "its event is on the way")
	assert.Equal(t, []string{"1: gone -> ", "2: again -> ", "3:  -> "}, steps(a, 4))
	a.tell()
	assert.Empty(t, a.known, "nobody is remembered for ever")
	a.workspaceSeen(there)
	expected, err = a.missStrangers(t.Context())
	require.NoError(t, err)
	assert.False(t, expected)
}

// readerOf has these workspaces, and nothing else.
type readerOf map[string]*v1alpha1.Workspace

func (r readerOf) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	ws, found := r[key.Name]
	if !found {
		return apierrors.NewNotFound(v1alpha1.Resource("workspaces"), key.Name)
	}
	ws.DeepCopyInto(obj.(*v1alpha1.Workspace))
	return nil
}

func (readerOf) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func TestAPlaceIsToldWhenItHasHalved(t *testing.T) {
	a := hall(t)
	const all = 20
	waiting := map[string]*v1alpha1.Workspace{}
	for i := range all {
		n := fmt.Sprint("w", i)
		waiting[n] = queued(n, 0, int64(i+1))
		a.workspaceSeen(waiting[n])
	}
	told := map[string][]int{}
	a.wake = func(key types.NamespacedName) {
		told[key.Name] = append(told[key.Name], a.standing(waiting[key.Name]).Position)
	}
	for i := range all {
		steps(a, 1)
		a.tell()
		a.workspaceSeen(provisioned(waiting[fmt.Sprint("w", i)]))
	}
	assert.Equal(t, []int{19, 9, 4, 3, 2, 1}, told["w19"])
	assert.Equal(t, []int{4, 3, 2, 1}, told["w4"])
	assert.Empty(t, told["w0"])
}

func TestAProcessThatBeginsTellsNobodyWhatStatusSaysAlready(t *testing.T) {
	a := hall(t)
	var told []string
	a.wake = func(key types.NamespacedName) { told = append(told, key.Name) }
	a.leaseSeen(slotLease(0, "/x/u-x", 1))
	told = nil
	ws := queued("a", 7, 99)
	ws.Status.Queue.Position = 1
	a.workspaceSeen(ws)
	a.workspaceSeen(queued("b", 8, 100)) // says 9, and is the second
	a.next(1)
	a.tell()
	assert.Equal(t, []string{"b"}, told)
	told = nil
	a.changeLimit(0)
	a.tell()
	assert.ElementsMatch(t, []string{"a", "b"}, told, "the limit is told, too")
}

// world is the API server's Leases, and every version that there has been of them.
type world struct {
	leases  map[int]*coordinationv1.Lease
	version int
}

// write is the compare-and-swap of a step.
func (w *world) write(s step) (*coordinationv1.Lease, bool) {
	current := w.leases[s.slot]
	if (current == nil) != (s.lease == nil) || current != nil && current.ResourceVersion != s.lease.ResourceVersion {
		return nil, false
	}
	w.version++
	w.leases[s.slot] = slotLease(s.slot, s.to, w.version)
	return w.leases[s.slot], true
}

func (w *world) holders() map[string]bool {
	holders := map[string]bool{}
	for _, lease := range w.leases {
		if holder := holderOf(lease); holder != "" {
			holders[holder] = true
		}
	}
	return holders
}

// Two leaders see Leases and workspaces late and in any order, and write whenever they like: there are never more slots held
// than the highest limit that anybody has gone by.
func TestTwoLeadersNeverExceedTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{leases: map[int]*coordinationv1.Lease{}}
		leaders := []*Admission{hall(t), hall(t)}
		all := map[string]*v1alpha1.Workspace{}
		for i := range rapid.IntRange(1, 12).Draw(t, "workspaces") {
			ws := queued(fmt.Sprint("w", i), 0, int64(i+1))
			all[ws.Name] = ws
		}
		names := func() []string {
			var names []string
			for i := range len(all) {
				names = append(names, fmt.Sprint("w", i))
			}
			return names
		}()
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		for range rapid.IntRange(1, 120).Draw(t, "events") {
			a := leaders[rapid.IntRange(0, 1).Draw(t, "leader")]
			switch rapid.IntRange(0, 3).Draw(t, "event") {
			case 0:
				a.workspaceSeen(all[rapid.SampledFrom(names).Draw(t, "seen")])
			case 1:
				if lease := w.leases[rapid.IntRange(0, 5).Draw(t, "lease")]; lease != nil {
					a.learn(lease)
				}
			case 2: // whoever holds a slot may be done
				n := rapid.SampledFrom(names).Draw(t, "done")
				if w.holders()[holderIdentity(all[n])] {
					all[n] = provisioned(all[n])
				}
			case 3:
				s, ok := a.next(limit)
				if !ok {
					continue
				}
				if lease, written := w.write(s); written {
					a.settle(s, lease)
				} else {
					if current := w.leases[s.slot]; current != nil {
						a.learn(current)
					}
					a.giveBack(s.to)
				}
			}
			held := 0
			for _, lease := range w.leases {
				if holderOf(lease) != "" {
					held++
				}
			}
			if held > limit {
				t.Fatalf("%d slots are held, the limit is %d", held, limit)
			}
		}
	})
}
