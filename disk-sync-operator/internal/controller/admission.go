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

// Admission gives slots to waiting images: one worker, on one key. It knows who waits and who holds what from
// events, so that a round costs no list of images; each step of a round is one compare-and-swap of a Lease.
type Admission struct {
	client    client.Client
	live      client.Reader
	namespace string
	policy    func(context.Context) (policy.Policy, error)
	now       func() time.Time
	metrics   *metrics

	// admitted is called, in the order of the tickets, for each image that got a slot.
	admitted func(types.NamespacedName)
	// wake is called for images that have to be looked at: those that stay in the queue, and those that lost a slot.
	wake func(types.NamespacedName)
	// poke asks for a round.
	poke func()

	mu       sync.Mutex
	slots    slots
	waiting  queue.Queue
	images   map[string]entry    // every image that exists, by holder identity
	fresh    map[string]bool     // waiting, and without a ticket in status
	granting string              // the holder whose Lease is being written
	ended    map[string]struct{} // holds that are needed no longer
	granted  map[string]grant    // holds that we gave and that are still in force
	tail     int64               // the highest resourceVersion that was seen of an image
	limit    int                 // the limit of the last round
	begun    bool                // the first round has woken every holder
	judged   judgement           // which sources are admitted
}

// entry is what admission remembers of an image.
type entry struct {
	since time.Time // when it began to wait
	ahead int       // how many were waiting then
}

// grant is what admission remembers of a hold that it gave.
type grant struct {
	at     time.Time
	looked bool // the downloads have had their turn
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

// Reconcile is a round: it takes steps until there is none, each by the policy of the moment. The request says nothing.
func (a *Admission) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	defer a.wakeFresh()
	for begin, first := a.now(), true; a.now().Sub(begin) < roundTime; first = false {
		p, err := a.policy(ctx)
		if err != nil {
			return reconcile.Result{}, err
		}
		if first {
			a.wakeHolders()
		}
		if err := a.judge(ctx, p); err != nil {
			return reconcile.Result{}, err
		}
		s, ok := a.next(p.Concurrency)
		if !ok {
			return a.later(), nil
		}
		if err := a.take(ctx, s); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: time.Millisecond}, nil
}

// next is the most urgent step: a slot that is done with goes to the first in the queue or becomes free; then free slots
// are taken. An image that holds two slots, as after two leaders, gives up the higher one.
func (a *Admission) next(limit int) (step, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.limit = limit
	held, mayGive := a.slots.held(), a.unstarted() < startsAhead
	for i := range held {
		holder := a.slots.holder(i)
		if holder == "" || !a.done(i, holder) {
			continue
		}
		s := step{slot: i, lease: a.slots.leases[i], from: holder}
		if queue.MayKeep(held, i, limit) && a.waiting.Len() > 0 {
			if !mayGive {
				continue // it is handed on in one write, later
			}
			s.to = a.popWaiting()
		}
		return s, true
	}
	if a.waiting.Len() == 0 || !mayGive {
		return step{}, false
	}
	for _, i := range queue.Takeable(held, limit) {
		if s := (step{slot: i, lease: a.slots.leases[i], to: a.popWaiting()}); s.to != "" {
			return s, true
		}
	}
	return step{}, false
}

// done says that the holder needs the slot no longer.
func (a *Admission) done(slot int, holder string) bool {
	if _, ended := a.ended[holdOf(a.slots.leases[slot])]; ended {
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
	a.settle(s, lease)
	log.FromContext(ctx).V(1).Info("slot passed on", "slot", lease.Name, "from", s.from, "to", s.to)
	if key, _, ok := parseHolder(s.to); ok {
		a.admitted(key)
	}
	if key, _, ok := parseHolder(s.from); ok {
		a.wake(key)
	}
	return nil
}

func (a *Admission) leaseFor(s step) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: v1alpha1.SlotName(s.slot)}}
	if s.lease != nil {
		lease = s.lease.DeepCopy()
	}
	metav1.SetMetaDataLabel(&lease.ObjectMeta, v1alpha1.LabelSlot, v1alpha1.DiskSyncQueue)
	delete(lease.Annotations, v1alpha1.AnnotationEnding)
	lease.Spec.HolderIdentity, lease.Spec.AcquireTime = nil, nil
	if s.to != "" {
		lease.Spec.HolderIdentity = new(s.to)
		lease.Spec.AcquireTime = new(metav1.NewMicroTime(a.now()))
	}
	lease.Spec.LeaseTransitions = new(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
	return lease
}

// refresh looks at the Lease itself after a write that failed because it is not what it was thought to be: its event may
// be on the way, or never come (a Lease without our label).
func (a *Admission) refresh(ctx context.Context, lease *coordinationv1.Lease, err error) {
	if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return
	}
	current := &coordinationv1.Lease{}
	err = a.live.Get(ctx, client.ObjectKeyFromObject(lease), current)
	switch {
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
	delete(a.ended, holdOf(s.lease))
	delete(a.granted, holdOf(s.lease))
	a.granting = ""
	if s.to == "" {
		return
	}
	a.granted[holdOf(lease)] = grant{at: a.now()}
	delete(a.fresh, s.to)
	if e, known := a.images[s.to]; known {
		a.metrics.admissionWait.Observe(a.now().Sub(e.since).Seconds())
	}
}

// giveBack puts an image that got no slot where it was, by asking for its event again.
func (a *Admission) giveBack(holder string) {
	a.mu.Lock()
	a.granting = ""
	a.mu.Unlock()
	key, uid, ok := parseHolder(holder)
	if !ok {
		return
	}
	image := &v1alpha1.VMDiskImage{}
	if err := a.client.Get(context.Background(), key, image); err == nil && image.UID == uid {
		a.imageSeen(image)
	}
}
