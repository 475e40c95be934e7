// Package queue is the law of the global queues: who is next, which slots may be taken, and who stands where.
// It is pure, and needs only the standard library.
//
// Order. An item carries a ticket, a number that was fixed when it entered; lower goes first, and the ID breaks
// ties, so that the order is total. An item that re-enters gets a new ticket: it goes to the tail.
//
// Slots. There are slots 0, 1, 2, ... of which limit may be held at once. Slot i may be taken only when
//
//	i + |{held j : j > i}| < limit
//
// that is, as if every slot below i were held. Whoever takes slots by compare-and-swap under this rule never lets
// more than limit be held, even when several do it at once and each looks at an older state than the real one.
// Proof: slots that were held before the limit was lowered only become free, so every view contains those still
// held; call them M. Let i be the highest slot that was taken under the rule and is held now. Those above i are in
// M, hence were in the view that i was taken with, and those below are at most i: together at most
// i + 1 + |M above i| <= limit. (A view from before a lowering of the limit is as good as the limit that it dates from:
// the highest limit since then holds.) And whenever fewer than limit are held, the lowest free slot may be taken, so that
// nobody waits in vain.
package queue

import (
	"container/heap"
	"strings"
)

// Item waits in a Queue.
type Item struct {
	// ID identifies the item, and breaks ties between equal tickets.
	ID string
	// Ticket orders the items: lower goes first.
	Ticket int64
}

// Compare orders items: negative when a goes before b.
func Compare(a, b Item) int {
	switch {
	case a.Ticket < b.Ticket:
		return -1
	case a.Ticket > b.Ticket:
		return 1
	}
	return strings.Compare(a.ID, b.ID)
}

// Position is the place of the item in the order, from 1, or 0 when it is not among the items.
// It takes O(len(items)) and wants no order.
func Position(items []Item, id string) int {
	for _, own := range items {
		if own.ID != id {
			continue
		}
		position := 1
		for _, other := range items {
			if Compare(other, own) < 0 {
				position++
			}
		}
		return position
	}
	return 0
}

// Queue holds waiting items in order. Each change takes O(log n). The zero value is empty and ready for use; it is
// not safe for concurrent use.
type Queue struct {
	items order
}

// Len is the number of waiting items.
func (q *Queue) Len() int { return len(q.items.list) }

// Has says whether the item waits.
func (q *Queue) Has(id string) bool {
	_, waits := q.items.index[id]
	return waits
}

// Put adds the item, or gives it another ticket.
func (q *Queue) Put(item Item) {
	if i, waits := q.items.index[item.ID]; waits {
		q.items.list[i].Ticket = item.Ticket
		heap.Fix(&q.items, i)
		return
	}
	heap.Push(&q.items, item)
}

// Remove takes the item out, and says whether it waited.
func (q *Queue) Remove(id string) bool {
	i, waits := q.items.index[id]
	if waits {
		heap.Remove(&q.items, i)
	}
	return waits
}

// Next is the first item, and whether there is one.
func (q *Queue) Next() (Item, bool) {
	if len(q.items.list) == 0 {
		return Item{}, false
	}
	return q.items.list[0], true
}

// Pop takes the first item out, and says whether there was one.
func (q *Queue) Pop() (Item, bool) {
	if len(q.items.list) == 0 {
		return Item{}, false
	}
	first := q.items.list[0]
	heap.Pop(&q.items)
	return first, true
}

// order is a binary heap that knows where each item stands.
type order struct {
	list  []Item
	index map[string]int
}

func (o *order) Len() int           { return len(o.list) }
func (o *order) Less(i, j int) bool { return Compare(o.list[i], o.list[j]) < 0 }
func (o *order) Swap(i, j int) {
	o.list[i], o.list[j] = o.list[j], o.list[i]
	o.index[o.list[i].ID], o.index[o.list[j].ID] = i, j
}

func (o *order) Push(x any) {
	if o.index == nil {
		o.index = map[string]int{}
	}
	item := x.(Item)
	o.index[item.ID] = len(o.list)
	o.list = append(o.list, item)
}

// Pop takes out the last. Nobody wants it back, and an Item in an interface costs an allocation.
func (o *order) Pop() any {
	last := len(o.list) - 1
	delete(o.index, o.list[last].ID)
	o.list[last] = Item{}
	o.list = o.list[:last]
	return nil
}
