package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/pelotech/open-terrain/apis/queue"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Admission gives slots to waiting workspaces: one worker, on one key. It knows who waits and who holds what from events, and
// from nothing else: a workspace needs a slot until its status says provisionedAt, or it is being deleted. Each step of a
// round is one compare-and-swap of a Lease, under the rule of the package queue: two leaders at once never give more slots
// than the limit.
type Admission struct {
	client    client.Client
	live      client.Reader
	namespace string
	policy    func(context.Context) (policy.Policy, error)
	now       func() time.Time
	metrics   *metrics

	// wake is called for workspaces that have to be looked at: those that got or lost a slot, and those whose place in the
	// queue is to be told.
	wake func(types.NamespacedName)
	// poke asks for a round.
	poke func()

	mu       sync.Mutex
	slots    slots
	waiting  queue.Queue
	known    map[string]*entry // every workspace that exists, by holder identity
	granting string            // the holder whose Lease is being written
	limit    int               // the limit of the last round
	begun    bool              // there has been one
}

// entry is what admission remembers of a workspace.
type entry struct {
	needs    bool  // a slot
	ticket   int64 // of its place in the queue
	position int   // that was told, from 1; 0 before any was
	since    time.Time
	gone     bool
}

// step is one write of a Lease: from one holder to the next; no one is empty.
type step struct {
	slot     int
	lease    *coordinationv1.Lease // as it is known; nil when there is none
	from, to string
}

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;list;watch;create;update,namespace=operator

// roundTime is how long a round goes on while there are steps to take: well below tooLong, which would break off a write.
const roundTime = 5 * time.Second

// strangerCheck is when to ask again for a holder whose event has not come.
const strangerCheck = 5 * time.Second

// Reconcile is a round: it takes steps until there is none, each by the policy of the moment. The request says nothing.
func (a *Admission) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	defer a.tell()
	expected, err := a.missStrangers(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	for begin := a.now(); a.now().Sub(begin) < roundTime; {
		p, err := a.policy(ctx)
		if err != nil {
			return reconcile.Result{}, err
		}
		s, ok := a.next(p.WorkspaceConcurrency)
		if !ok && expected {
			return reconcile.Result{RequeueAfter: strangerCheck}, nil
		}
		if !ok {
			return reconcile.Result{}, nil
		}
		if err := a.take(ctx, s); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: time.Millisecond}, nil
}

// next is the most urgent step: a slot that is done with goes to the first in the queue or becomes free; then free slots are
// taken. A workspace that holds two slots, as after two leaders, gives up the higher one.
func (a *Admission) next(limit int) (step, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changeLimit(limit)
	held := a.slots.held()
	for i := range held {
		holder := a.slots.holder(i)
		if holder == "" || !a.done(i, holder) {
			continue
		}
		s := step{slot: i, lease: a.slots.leases[i], from: holder}
		if queue.MayKeep(held, i, limit) {
			s.to = a.popWaiting()
		}
		return s, true
	}
	if a.waiting.Len() == 0 {
		return step{}, false
	}
	for _, i := range queue.Takeable(held, limit) {
		return step{slot: i, lease: a.slots.leases[i], to: a.popWaiting()}, true
	}
	return step{}, false
}

// changeLimit has all places told anew when the limit is another one. The lock is held.
func (a *Admission) changeLimit(limit int) {
	if a.begun && a.limit != limit {
		for _, e := range a.known {
			e.position = 0
		}
	}
	a.limit, a.begun = limit, true
}

// done says that the holder needs the slot no longer. One that is not known exists, or has just been made: see missStrangers.
func (a *Admission) done(slot int, holder string) bool {
	if e, known := a.known[holder]; known && !e.needs {
		return true
	}
	lowest, _ := a.slots.of(holder)
	return lowest != slot
}

func (a *Admission) popWaiting() string {
	item, _ := a.waiting.Pop()
	a.granting = item.ID
	return item.ID
}

// take writes the Lease. Someone else's write in between is a conflict, and the round begins again.
func (a *Admission) take(ctx context.Context, s step) error {
	lease := a.leaseFor(s)
	var err error
	if s.lease == nil {
		err = a.client.Create(ctx, lease)
	} else {
		err = a.client.Update(ctx, lease)
	}
	if err != nil {
		a.refresh(ctx, lease, err)
		a.giveBack(s.to)
		return fmt.Errorf("pass the slot %s from %q to %q: %w", lease.Name, s.from, s.to, err)
	}
	log.FromContext(ctx).V(1).Info("slot passed on", "slot", lease.Name, "from", s.from, "to", s.to)
	a.settle(s, lease)
	a.wakeHolder(s.to)
	return nil
}

func (a *Admission) wakeHolder(holder string) {
	if name, _, ok := parseHolder(holder); ok {
		a.wake(types.NamespacedName{Name: name})
	}
}

func (a *Admission) leaseFor(s step) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: slotName(s.slot)}}
	if s.lease != nil {
		lease = s.lease.DeepCopy()
	}
	metav1.SetMetaDataLabel(&lease.ObjectMeta, v1alpha1.LabelSlot, v1alpha1.WorkspaceQueueName)
	lease.Spec.HolderIdentity, lease.Spec.AcquireTime = nil, nil
	if s.to != "" {
		lease.Spec.HolderIdentity = new(s.to)
		lease.Spec.AcquireTime = new(metav1.NewMicroTime(a.now()))
	}
	lease.Spec.LeaseTransitions = new(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
	return lease
}

// refresh looks at the Lease itself after a write that failed because it is not what it was thought to be: its event may be on
// the way, or never come (a Lease without our label).
func (a *Admission) refresh(ctx context.Context, lease *coordinationv1.Lease, err error) {
	if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return
	}
	current := &coordinationv1.Lease{}
	switch err := a.live.Get(ctx, client.ObjectKeyFromObject(lease), current); {
	case err == nil:
		a.learn(current)
	case apierrors.IsNotFound(err):
		a.mu.Lock()
		defer a.mu.Unlock()
		a.slots.forget(lease)
	}
}

// settle takes in a step that was written.
func (a *Admission) settle(s step, lease *coordinationv1.Lease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.slots.observe(lease)
	a.granting = ""
	if e, known := a.known[s.to]; known && !e.needs {
		a.poke() // it needs it no longer, as of just now
	} else if known {
		a.metrics.admissionWait.Observe(max(0, a.now().Sub(e.since).Seconds()))
	}
}

// giveBack puts a workspace that got no slot where it was.
func (a *Admission) giveBack(holder string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.granting = ""
	a.enqueue(holder)
}
