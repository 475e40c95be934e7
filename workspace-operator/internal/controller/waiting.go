package controller

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/queue"
	"github.com/pelotech/open-terrain/workspace-operator/internal/plan"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ticketOf orders the workspaces by their creation (docs/adr/0001). One that is admitted and has lost its slot goes first.
func ticketOf(workspace *v1alpha1.Workspace) int64 {
	switch {
	case workspace.Status.AdmittedAt != nil:
		return 0
	case workspace.Status.Queue != nil && workspace.Status.Queue.Ticket != 0:
		return workspace.Status.Queue.Ticket
	}
	ticket, err := strconv.ParseInt(workspace.ResourceVersion, 10, 64)
	if err != nil {
		return workspace.CreationTimestamp.UnixNano()
	}
	return ticket
}

// workspaceSeen takes in a workspace as it was watched.
func (a *Admission) workspaceSeen(workspace *v1alpha1.Workspace) {
	a.mu.Lock()
	holder := holderIdentity(workspace)
	e := a.known[holder]
	if e == nil {
		e = &entry{needs: true, ticket: ticketOf(workspace), since: workspace.CreationTimestamp.Time}
		if workspace.Status.Queue != nil {
			e.position = int(workspace.Status.Queue.Position)
		}
		a.known[holder] = e
	}
	if workspace.Status.AdmittedAt != nil {
		e.ticket = 0
	}
	e.needs = e.needs && plan.NeedsSlot(workspace) // that is never taken back: what was true once may be acted upon
	_, has := a.slots.of(holder)
	a.enqueue(holder)
	news := has != e.needs
	a.mu.Unlock()
	if news {
		a.poke()
	}
}

// enqueue keeps the workspace in the queue or out of it. The lock is held.
func (a *Admission) enqueue(holder string) {
	e, known := a.known[holder]
	_, has := a.slots.of(holder)
	if !known || !e.needs || has || a.granting == holder {
		a.waiting.Remove(holder)
		return
	}
	a.waiting.Put(queue.Item{ID: holder, Ticket: e.ticket})
}

// workspaceGone takes in that a workspace was deleted: its slot is free.
func (a *Admission) workspaceGone(workspace *v1alpha1.Workspace) {
	holder := holderIdentity(workspace)
	a.mu.Lock()
	if e, known := a.known[holder]; known {
		e.needs, e.gone = false, true
		a.waiting.Remove(holder)
	}
	a.mu.Unlock()
	a.poke()
}

// leaseSeen and leaseGone take in the Leases as they were watched.
func (a *Admission) leaseSeen(lease *coordinationv1.Lease) {
	a.learn(lease)
	a.poke()
}

// learn takes in a Lease as the API server has it. When its holder is news, another leader wrote it, or we did and never got
// the answer.
func (a *Admission) learn(lease *coordinationv1.Lease) {
	i, _ := slotNumber(lease.Name)
	a.mu.Lock()
	before := a.slots.holder(i)
	a.slots.observe(lease)
	after := a.slots.holder(i)
	a.enqueue(before)
	a.enqueue(after)
	a.mu.Unlock()
	if before != after {
		a.wakeHolder(after)
	}
}

func (a *Admission) leaseGone(lease *coordinationv1.Lease) {
	a.mu.Lock()
	a.slots.forget(lease)
	a.enqueue(holderOf(lease))
	a.mu.Unlock()
	a.poke()
}

// missStrangers asks the API server itself for the holders that nobody has seen: those that went while no operator was there.
// It says whether there are any that exist; their events are on the way.
func (a *Admission) missStrangers(ctx context.Context) (expected bool, err error) {
	for _, holder := range a.strangers() {
		name, uid, ok := parseHolder(holder)
		if ok {
			workspace := &v1alpha1.Workspace{}
			found, err := read(ctx, a.live, types.NamespacedName{Name: name}, workspace)
			if err != nil {
				return false, err
			}
			if found && workspace.UID == uid {
				expected = true
				continue
			}
		}
		a.mu.Lock()
		a.known[holder] = &entry{gone: true}
		a.mu.Unlock()
	}
	return expected, nil
}

func (a *Admission) strangers() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var strangers []string
	for holder := range a.slots.holders {
		if a.known[holder] == nil {
			strangers = append(strangers, holder)
		}
	}
	return strangers
}

// tell has the workspaces looked at whose place in the queue is to be told: those that have just come, and those whose place
// is half of what was told, or among the first three. So a place is told a few times and not at every move: a queue of a
// thousand would have a thousand writes for each that leaves it.
func (a *Admission) tell() {
	a.mu.Lock()
	var waiting []queue.Item
	for holder, e := range a.known {
		if a.waiting.Has(holder) {
			waiting = append(waiting, queue.Item{ID: holder, Ticket: e.ticket})
		}
	}
	slices.SortFunc(waiting, queue.Compare)
	var told []string
	for i, item := range waiting {
		e := a.known[item.ID]
		if at := i + 1; e.position == 0 || at > e.position || at < e.position && (at <= 3 || at <= e.position/2) {
			e.position = at
			told = append(told, item.ID)
		}
	}
	a.forgetGone()
	a.mu.Unlock()
	for _, holder := range told {
		a.wakeHolder(holder)
	}
}

// forgetGone forgets the workspaces that are gone, once they hold no slot. The lock is held.
func (a *Admission) forgetGone() {
	for holder, e := range a.known {
		if _, has := a.slots.of(holder); e.gone && !has {
			delete(a.known, holder)
		}
	}
}

// standing of a workspace. One that waits has a position as soon as a round has looked at it.
func (a *Admission) standing(workspace *v1alpha1.Workspace) plan.Slot {
	holder := holderIdentity(workspace)
	a.mu.Lock()
	defer a.mu.Unlock()
	_, held := a.slots.of(holder)
	slot := plan.Slot{Held: held, Limit: a.limit}
	if e := a.known[holder]; e != nil && a.waiting.Has(holder) {
		slot.Position, slot.Ticket = e.position, e.ticket
	}
	return slot
}

// queueState is for the metrics.
type queueState struct {
	depth, held, limit int
	oldest             time.Duration
}

func (a *Admission) state() queueState {
	a.mu.Lock()
	defer a.mu.Unlock()
	st := queueState{depth: a.waiting.Len(), limit: a.limit}
	for _, held := range a.slots.held() {
		if held {
			st.held++
		}
	}
	if item, waits := a.waiting.Next(); waits {
		st.oldest = cmp.Or(a.now().Sub(a.known[item.ID].since), 0)
	}
	return st
}
