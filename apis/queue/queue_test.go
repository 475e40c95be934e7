package queue_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pelotech/open-terrain/apis/queue"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestOrder(t *testing.T) {
	cases := map[string]struct {
		items []queue.Item
		want  []string
	}{
		"the lower ticket goes first": {
			items: []queue.Item{{ID: "late", Ticket: 9}, {ID: "early", Ticket: 1}, {ID: "middle", Ticket: 5}},
			want:  []string{"early", "middle", "late"},
		},
		"equal tickets go by ID": {
			items: []queue.Item{{ID: "b", Ticket: 1}, {ID: "c", Ticket: 1}, {ID: "a", Ticket: 1}},
			want:  []string{"a", "b", "c"},
		},
		"an item that is put again has its new ticket only": {
			items: []queue.Item{{ID: "a", Ticket: 1}, {ID: "b", Ticket: 2}, {ID: "a", Ticket: 3}},
			want:  []string{"b", "a"},
		},
		"an item may move to the front": {
			items: []queue.Item{{ID: "a", Ticket: 5}, {ID: "b", Ticket: 2}, {ID: "a", Ticket: 1}},
			want:  []string{"a", "b"},
		},
		"tickets may be negative": {
			items: []queue.Item{{ID: "a", Ticket: 0}, {ID: "b", Ticket: -1}},
			want:  []string{"b", "a"},
		},
		"nobody waits": {},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var q queue.Queue
			for _, item := range c.items {
				q.Put(item)
			}
			assert.Equal(t, c.want, drain(&q))
		})
	}
}

func TestZeroQueueIsEmpty(t *testing.T) {
	var q queue.Queue
	_, ok := q.Pop()
	assert.False(t, ok)
	_, ok = q.Next()
	assert.False(t, ok)
	assert.False(t, q.Has("a"))
	assert.False(t, q.Remove("a"))
	assert.Zero(t, q.Len())
}

func TestNextLeavesTheItem(t *testing.T) {
	var q queue.Queue
	q.Put(queue.Item{ID: "a", Ticket: 1})
	item, ok := q.Next()
	require.True(t, ok)
	assert.Equal(t, queue.Item{ID: "a", Ticket: 1}, item)
	assert.True(t, q.Has("a"))
}

func TestPosition(t *testing.T) {
	items := []queue.Item{{ID: "c", Ticket: 3}, {ID: "a", Ticket: 1}, {ID: "b", Ticket: 1}}
	for id, want := range map[string]int{"a": 1, "b": 2, "c": 3, "nobody": 0} {
		assert.Equal(t, want, queue.Position(items, id), id)
	}
	assert.Zero(t, queue.Position(nil, "a"))
}

// model is the queue's law in the plainest words: a map, sorted when asked.
type model map[string]int64

func (m model) sorted() []queue.Item {
	var items []queue.Item
	for id, ticket := range m {
		items = append(items, queue.Item{ID: id, Ticket: ticket})
	}
	slices.SortFunc(items, queue.Compare)
	return items
}

// op is one step on the queue and on the model. It says what differs, or nothing.
func (m model) op(q *queue.Queue, kind byte, id string, ticket int64) string {
	sorted := m.sorted()
	switch kind % 4 {
	case 0, 1:
		q.Put(queue.Item{ID: id, Ticket: ticket})
		m[id] = ticket
	case 2:
		_, waits := m[id]
		if q.Remove(id) != waits {
			return fmt.Sprintf("Remove(%s) is not %v", id, waits)
		}
		delete(m, id)
	case 3:
		item, ok := q.Pop()
		if ok != (len(sorted) > 0) {
			return "Pop and Len differ"
		}
		if ok && item != sorted[0] {
			return fmt.Sprintf("Pop gave %v, not %v", item, sorted[0])
		}
		delete(m, item.ID)
	}
	return m.differs(q, id)
}

func (m model) differs(q *queue.Queue, id string) string {
	sorted := m.sorted()
	if q.Len() != len(m) {
		return fmt.Sprintf("Len is %d, not %d", q.Len(), len(m))
	}
	if _, waits := m[id]; q.Has(id) != waits {
		return fmt.Sprintf("Has(%s) is not %v", id, waits)
	}
	next, ok := q.Next()
	if ok != (len(sorted) > 0) || (ok && next != sorted[0]) {
		return fmt.Sprintf("Next is %v, %v", next, ok)
	}
	if position := queue.Position(sorted, next.ID); ok && position != 1 {
		return fmt.Sprintf("the first has position %d", position)
	}
	return ""
}

func TestQueueIsASortedMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue.Queue
		m := model{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			kind, id := rapid.Byte().Draw(t, "kind"), fmt.Sprint(rapid.IntRange(0, 20).Draw(t, "id"))
			ticket := rapid.Int64Range(-2, 10).Draw(t, "ticket")
			if what := m.op(&q, kind, id, ticket); what != "" {
				t.Fatal(what)
			}
		}
		var want []string
		for _, item := range m.sorted() {
			want = append(want, item.ID)
		}
		if got := drain(&q); !slices.Equal(got, want) {
			t.Fatalf("drained %v, not %v", got, want)
		}
	})
}

func TestCompareIsATotalOrder(t *testing.T) {
	item := rapid.Custom(func(t *rapid.T) queue.Item {
		return queue.Item{ID: rapid.StringN(0, 2, 4).Draw(t, "id"), Ticket: rapid.Int64().Draw(t, "ticket")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := item.Draw(t, "a"), item.Draw(t, "b"), item.Draw(t, "c")
		if queue.Compare(a, b) != -queue.Compare(b, a) {
			t.Fatal("not antisymmetric")
		}
		if (queue.Compare(a, b) == 0) != (a == b) {
			t.Fatal("two items share a place")
		}
		if queue.Compare(a, b) < 0 && queue.Compare(b, c) < 0 && queue.Compare(a, c) >= 0 {
			t.Fatal("not transitive")
		}
	})
}

// FuzzQueue reads each three bytes as a step: what, who, which ticket.
func FuzzQueue(f *testing.F) {
	f.Add([]byte{0, 1, 9, 0, 2, 3, 3, 0, 0, 3, 0, 0})
	f.Add([]byte{0, 1, 1, 0, 1, 5, 0, 2, 3, 2, 1, 0, 3, 0, 0})
	f.Add([]byte{2, 0, 0, 3, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		var q queue.Queue
		m := model{}
		for i := 0; i+2 < len(data) && i < 3*300; i += 3 {
			if what := m.op(&q, data[i], fmt.Sprint(data[i+1]%32), int64(int8(data[i+2]))); what != "" {
				t.Fatal(what)
			}
		}
	})
}

func BenchmarkPutPop(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var q queue.Queue
			ids := make([]string, n)
			for i := range ids {
				ids[i] = fmt.Sprintf("namespace/image-%d/uid", i)
				q.Put(queue.Item{ID: ids[i], Ticket: int64(i)})
			}
			b.ReportAllocs()
			ticket := int64(n)
			for b.Loop() { // the first goes to the tail: the queue keeps its length
				item, _ := q.Pop()
				q.Put(queue.Item{ID: item.ID, Ticket: ticket})
				ticket++
			}
		})
	}
}

func drain(q *queue.Queue) []string {
	var ids []string
	for {
		item, ok := q.Pop()
		if !ok {
			return ids
		}
		ids = append(ids, item.ID)
	}
}
