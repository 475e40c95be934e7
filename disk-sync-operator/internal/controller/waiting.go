package controller

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/queue"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// imageSeen takes in an image as it was watched.
func (a *Admission) imageSeen(image *v1alpha1.VMDiskImage) {
	ticket, waits := plan.Waiting(image)
	if a.misjudged(image) {
		waits = false
		defer a.wake(client.ObjectKeyFromObject(image))
	}
	if a.note(image, ticket, waits) {
		a.poke()
	}
}

// note keeps the image in the queue or out of it, and says whether a round could change something.
func (a *Admission) note(image *v1alpha1.VMDiskImage, ticket int64, waits bool) bool {
	holder := holderIdentity(image)
	a.mu.Lock()
	defer a.mu.Unlock()
	if rv, err := strconv.ParseInt(image.ResourceVersion, 10, 64); err == nil {
		a.tail = max(a.tail, rv)
	}
	_, has := a.slots.of(holder)
	if waits = waits && !has && a.granting != holder; !waits {
		a.images[holder] = entry{}
		delete(a.fresh, holder)
		a.waiting.Remove(holder)
		return false
	}
	if !a.waiting.Has(holder) {
		a.images[holder] = entry{since: waitsSince(image), ahead: a.waiting.Len()}
	}
	if image.Status.Ticket == 0 {
		a.fresh[holder] = true
	} else {
		delete(a.fresh, holder)
	}
	a.waiting.Put(queue.Item{ID: holder, Ticket: ticket})
	return true
}

// imageGone takes in that an image was deleted. Its slot stays taken until its DataVolume is gone.
func (a *Admission) imageGone(image *v1alpha1.VMDiskImage) {
	holder := holderIdentity(image)
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.images, holder)
	delete(a.fresh, holder)
	a.waiting.Remove(holder)
}

// leaseSeen and leaseGone take in the Leases as they were watched.
func (a *Admission) leaseSeen(lease *coordinationv1.Lease) {
	a.learn(lease)
	a.poke()
}

// learn takes in a Lease as the API server has it. When its holder is news, another leader wrote it, or we did and never
// got the answer: the new holder waits no longer, and nobody else would have it begin; the former one has lost its slot.
func (a *Admission) learn(lease *coordinationv1.Lease) {
	a.mu.Lock()
	i, _ := slotNumber(lease.Name)
	before, hold := a.slots.holder(i), holdOf(a.slots.leases[i])
	a.slots.observe(lease)
	after := a.slots.holder(i)
	if holdOf(a.slots.leases[i]) != hold {
		delete(a.ended, hold)
	}
	if after != "" {
		a.waiting.Remove(after)
		delete(a.fresh, after)
	}
	a.mu.Unlock()
	if before == after {
		return
	}
	for _, holder := range []string{before, after} {
		if key, _, ok := parseHolder(holder); ok {
			a.wake(key)
		}
	}
}

func (a *Admission) leaseGone(lease *coordinationv1.Lease) {
	a.mu.Lock()
	a.slots.forget(lease)
	delete(a.ended, holdOf(lease))
	a.mu.Unlock()
	if key, _, ok := parseHolder(holderOf(lease)); ok {
		a.wake(key)
	}
	a.poke()
}

// release says that the hold, as standing gave it, is needed no longer: its DataVolume has Succeeded or is gone. A slot
// that the same image has got since, from another leader, is another hold.
func (a *Admission) release(hold string) {
	a.mu.Lock()
	has := false
	for _, lease := range a.slots.leases {
		has = has || hold != "" && holdOf(lease) == hold
	}
	if has {
		a.ended[hold] = struct{}{}
	}
	a.mu.Unlock()
	if has {
		a.poke()
	}
}

// standing is what a reconcile needs to know of the queue.
type standing struct {
	slot  string // the Lease that the image holds, or empty
	hold  string // see holdOf
	tail  int64
	ahead int

	ending bool // see end
}

// standing of an image.
func (a *Admission) standing(holder string) standing {
	a.mu.Lock()
	defer a.mu.Unlock()
	st := standing{tail: a.tail, ahead: a.waiting.Len()}
	if a.waiting.Has(holder) {
		st.ahead = a.images[holder].ahead
	}
	if i, has := a.slots.of(holder); has {
		st.slot, st.hold, st.ending = v1alpha1.SlotName(i), holdOf(a.slots.leases[i]), isEnding(a.slots.leases[i])
	}
	return st
}

// holdersOf lists the holders of slots that have, or had, the name of this object.
func (a *Admission) holdersOf(key types.NamespacedName) []types.UID {
	a.mu.Lock()
	defer a.mu.Unlock()
	var uids []types.UID
	for _, lease := range a.slots.leases {
		if own, uid, ok := parseHolder(holderOf(lease)); ok && own == key {
			uids = append(uids, uid)
		}
	}
	return uids
}

// holders lists the objects that hold slots.
func (a *Admission) holders() []types.NamespacedName {
	a.mu.Lock()
	defer a.mu.Unlock()
	var keys []types.NamespacedName
	for _, lease := range a.slots.leases {
		if key, _, ok := parseHolder(holderOf(lease)); ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// holdersIn is a request for each image of the namespace that holds a slot.
func (a *Admission) holdersIn(namespace string) []reconcile.Request {
	var requests []reconcile.Request
	for _, key := range a.holders() {
		if key.Namespace == namespace {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}

// wakeFresh has the images looked at that came and got no slot at once: their place in the queue is to be written.
func (a *Admission) wakeFresh() {
	a.mu.Lock()
	fresh := a.fresh
	a.fresh = map[string]bool{}
	a.mu.Unlock()
	for holder := range fresh {
		if key, _, ok := parseHolder(holder); ok {
			a.wake(key)
		}
	}
}

// wakeHolders has every holder looked at when this process begins, whatever it was in the middle of; and later the
// holders that do not exist, which nobody else would notice.
func (a *Admission) wakeHolders() {
	a.mu.Lock()
	var keys []types.NamespacedName
	for holder := range a.slots.holders {
		if key, _, ok := parseHolder(holder); ok {
			if _, known := a.images[holder]; !known || !a.begun {
				keys = append(keys, key)
			}
		}
	}
	a.begun = true
	a.mu.Unlock()
	for _, key := range keys {
		a.wake(key)
	}
}

// reload reads all Leases from the API server itself.
func (a *Admission) reload(ctx context.Context) error {
	leases := &coordinationv1.LeaseList{}
	if err := a.live.List(ctx, leases, client.InNamespace(a.namespace), client.MatchingLabels{v1alpha1.LabelSlot: v1alpha1.DiskSyncQueue}); err != nil {
		return fmt.Errorf("list the slots: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range leases.Items {
		a.slots.observe(&leases.Items[i])
	}
	return nil
}

// wordKept is how long the API server's answer to our own write of a Lease is taken for its word. A process that was
// stopped for longer asks again.
const wordKept = 2 * time.Second

// confirm makes sure that a slot is still under that hold: by the answer to our own write, or by asking the API server,
// which asked tells: then what else is known may be as old.
func (a *Admission) confirm(ctx context.Context, slot, hold string) (holds, asked bool, err error) {
	if a.beingGranted(hold) {
		return false, false, nil // the answer is on its way, and then the attempt is asked for again
	}
	if a.justGranted(hold) {
		return true, false, nil
	}
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = a.namespace, slot
	err = a.live.Get(ctx, client.ObjectKeyFromObject(lease), lease)
	if apierrors.IsNotFound(err) {
		return false, true, nil // its deletion is an event
	}
	if err != nil {
		return false, true, fmt.Errorf("look at the slot %s: %w", slot, err)
	}
	if holdOf(lease) == hold {
		return true, true, nil
	}
	a.leaseSeen(lease)
	return false, true, nil
}

// beingGranted says that the watch has shown a Lease before the answer to our write of it came.
func (a *Admission) beingGranted(hold string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.granting != "" && strings.HasPrefix(hold, a.granting+" ")
}

func (a *Admission) justGranted(hold string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	g, granted := a.granted[hold]
	return granted && a.now().Sub(g.at) < wordKept
}

// startsAhead is how many images may have a slot while the downloads have not looked at them. Admission is faster than
// starts and downloads: with many slots it would give so many that the last of them wait for longer than its word is kept.
const startsAhead = 16

// unstarted counts the grants that the downloads have not looked at; what they have left alone for too long is no longer
// worth waiting for. The lock is held.
func (a *Admission) unstarted() int {
	n := 0
	for _, g := range a.granted {
		if !g.looked && a.now().Sub(g.at) < wordKept {
			n++
		}
	}
	return n
}

// later is when to look again without being asked: when the downloads do not get on, nobody says so.
func (a *Admission) later() reconcile.Result {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unstarted() < startsAhead {
		return reconcile.Result{}
	}
	return reconcile.Result{RequeueAfter: wordKept}
}

// begins says that the downloads have had their look at what the image was given.
func (a *Admission) begins(key types.NamespacedName) {
	a.mu.Lock()
	full, news := a.unstarted() >= startsAhead, false
	for hold, g := range a.granted {
		if own, _, ok := parseHolder(hold); !g.looked && ok && own == key {
			a.granted[hold], news = grant{at: g.at, looked: true}, true
		}
	}
	a.mu.Unlock()
	if full && news {
		a.poke()
	}
}

// givenUp says that the hold is about to be passed on, or has been.
func (a *Admission) givenUp(hold string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ended := a.ended[hold]
	if ended {
		return true
	}
	for _, lease := range a.slots.leases {
		if holdOf(lease) == hold {
			return false
		}
	}
	return true
}

// releaseAll gives up every slot of a holder that does not exist any more.
func (a *Admission) releaseAll(holder string) {
	a.mu.Lock()
	for _, lease := range a.slots.leases {
		if holderOf(lease) == holder {
			a.ended[holdOf(lease)] = struct{}{}
		}
	}
	a.mu.Unlock()
	a.poke()
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
		st.oldest = a.now().Sub(a.images[item.ID].since)
	}
	return st
}

func holderIdentity(image *v1alpha1.VMDiskImage) string {
	return v1alpha1.SlotHolder(client.ObjectKeyFromObject(image), image.UID)
}

func waitsSince(image *v1alpha1.VMDiskImage) time.Time {
	if image.Status.QueuedAt != nil {
		return image.Status.QueuedAt.Time
	}
	return image.CreationTimestamp.Time
}
