package queue_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pelotech/open-terrain/apis/queue"
	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

const o, x = false, true // free, held

func TestTakeable(t *testing.T) {
	cases := map[string]struct {
		held  []bool
		limit int
		want  []int
	}{
		"none is known yet":                         {nil, 3, []int{0, 1, 2}},
		"all are free":                              {[]bool{o, o, o}, 3, []int{0, 1, 2}},
		"all are held":                              {[]bool{x, x, x}, 3, nil},
		"one is free":                               {[]bool{x, o, x}, 3, []int{1}},
		"the limit was raised":                      {[]bool{x, x}, 4, []int{2, 3}},
		"the limit was lowered under those held":    {[]bool{x, x, x, x}, 2, nil},
		"the limit was lowered, low ones are free":  {[]bool{o, o, o, x}, 2, []int{0}},
		"the limit was lowered, too many are above": {[]bool{o, o, x, x}, 2, nil},
		"a limit of 0 admits nobody":                {[]bool{o, o}, 0, nil},
		"a negative limit admits nobody":            {[]bool{o}, -1, nil},
		"known slots beyond the limit stay free":    {[]bool{x, o, o, o, o}, 2, []int{1}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, queue.Takeable(c.held, c.limit))
		})
	}
}

func TestMayKeep(t *testing.T) {
	cases := map[string]struct {
		held        []bool
		slot, limit int
		want        bool
	}{
		"within the limit":                         {[]bool{x, x}, 1, 2, true},
		"the highest slot of a lowered limit":      {[]bool{x, x, x}, 2, 2, false},
		"a low slot, with too many above":          {[]bool{x, x, x}, 0, 2, false},
		"a low slot, after those above have ended": {[]bool{x, x, o}, 1, 2, true},
		"a limit of 0":                             {[]bool{x}, 0, 0, false},
		"a slot beyond the list":                   {nil, 1, 2, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, queue.MayKeep(c.held, c.slot, c.limit))
		})
	}
}

// slots are the Leases: each has a holder and a version, and every state that there was can be looked at again.
type slots struct {
	now     []lease
	history [][]lease
}

type lease struct{ version, holder int }

func (s *slots) at(i int) lease {
	if i < len(s.now) {
		return s.now[i]
	}
	return lease{}
}

// swap is the compare-and-swap that the API server offers.
func (s *slots) swap(i, version, holder int) bool {
	if s.at(i).version != version {
		return false
	}
	s.now = slices.Clone(s.now)
	for len(s.now) <= i {
		s.now = append(s.now, lease{})
	}
	s.now[i] = lease{version: version + 1, holder: holder}
	s.history = append(s.history, s.now)
	return true
}

func heldOf(leases []lease) []bool {
	held := make([]bool, len(leases))
	for i, l := range leases {
		held[i] = l.holder != 0
	}
	return held
}

func count(leases []lease) (n int) {
	for _, l := range leases {
		if l.holder != 0 {
			n++
		}
	}
	return n
}

// taker is a leader, or one that thinks it is: it looks at an older state, which only ever moves forward.
type taker struct{ view int }

// takers simulates n of them. Lowered says whether the limit may fall; then a view is at least as new as the fall, as with
// a cache that has seen the policy change after the Leases of before.
func takers(t *rapid.T, n int, lowered bool) {
	s := &slots{history: [][]lease{nil}}
	all := make([]taker, n)
	limit, holder := rapid.IntRange(0, 6).Draw(t, "limit"), 0
	for range rapid.IntRange(1, 120).Draw(t, "steps") {
		who := &all[rapid.IntRange(0, n-1).Draw(t, "who")]
		before := count(s.now)
		took := false
		switch rapid.SampledFrom([]string{"look", "take", "take all", "release", "hand over", "limit"}).Draw(t, "step") {
		case "look":
			who.view = rapid.IntRange(who.view, len(s.history)-1).Draw(t, "view")
		case "take":
			view := s.history[who.view]
			if free := queue.Takeable(heldOf(view), limit); len(free) > 0 {
				holder++
				i := pick(t, free)
				took = s.swap(i, versionIn(view, i), holder)
			}
		case "take all":
			view := s.history[who.view]
			for _, i := range queue.Takeable(heldOf(view), limit) {
				holder++
				took = s.swap(i, versionIn(view, i), holder) || took
			}
		case "release":
			if i := rapid.IntRange(0, 8).Draw(t, "slot"); s.at(i).holder != 0 {
				s.swap(i, s.at(i).version, 0)
			}
		case "hand over":
			view := s.history[who.view]
			i := rapid.IntRange(0, 8).Draw(t, "slot")
			if i < len(view) && view[i].holder != 0 && queue.MayKeep(heldOf(view), i, limit) {
				holder++
				if s.swap(i, view[i].version, holder) && count(s.now) > limit {
					t.Fatalf("a slot was handed over while %d are held under a limit of %d", count(s.now), limit)
				}
			}
		case "limit":
			next := rapid.IntRange(0, 8).Draw(t, "limit")
			if next < limit && !lowered {
				continue
			}
			if next < limit {
				for i := range all {
					all[i].view = len(s.history) - 1
				}
			}
			limit = next
		}
		after := count(s.now)
		if took && after > limit {
			t.Fatalf("%d are held under a limit of %d: %v", after, limit, s.now)
		}
		if after > limit && after > before {
			t.Fatal("more are held, though it is more than the limit")
		}
		progress(t, s, limit)
	}
}

// progress: whoever sees the present finds the lowest free slot takeable whenever fewer than limit are held.
func progress(t *rapid.T, s *slots, limit int) {
	free := 0
	for s.at(free).holder != 0 {
		free++
	}
	takeable := queue.Takeable(heldOf(s.now), limit)
	if count(s.now) < limit && (len(takeable) == 0 || takeable[0] != free) {
		t.Fatalf("%d of %d are held, and slot %d cannot be taken: %v", count(s.now), limit, free, takeable)
	}
	if count(s.now) >= limit && len(takeable) > 0 {
		t.Fatalf("%d of %d are held, and %v could be taken", count(s.now), limit, takeable)
	}
}

func pick(t *rapid.T, of []int) int { return rapid.SampledFrom(of).Draw(t, "slot") }

func versionIn(view []lease, i int) int {
	if i < len(view) {
		return view[i].version
	}
	return 0
}

func TestTakersWithStaleViews(t *testing.T) {
	for n := 1; n <= 3; n++ {
		for _, lowered := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d takers, limit lowered %v", n, lowered), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) { takers(t, n, lowered) })
			})
		}
	}
}

// A limit that is counted from a stale view would not do: this is the check's own check.
func TestCountingAloneIsNotEnough(t *testing.T) {
	s := &slots{history: [][]lease{nil}}
	for i := range 2 { // two takers, both see nothing held, and each takes another slot under a limit of 1
		if stale := heldOf(s.history[0]); len(stale) < 1 {
			s.swap(i, 0, i+1)
		}
	}
	assert.Equal(t, 2, count(s.now), "both have one")
	assert.NotContains(t, queue.Takeable(nil, 1), 1, "the law lets them meet on slot 0")
}

// A view from before a lowering of the limit is as if the slot had been taken before it: the old limit still holds.
func TestViewOlderThanALowering(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &slots{history: [][]lease{nil}}
		most := 0
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			limit := rapid.IntRange(0, 6).Draw(t, "limit")
			most = max(most, limit)
			view := s.history[rapid.IntRange(0, len(s.history)-1).Draw(t, "view")]
			if free := queue.Takeable(heldOf(view), limit); len(free) > 0 {
				i := pick(t, free)
				s.swap(i, versionIn(view, i), 1)
			}
			if i := rapid.IntRange(0, 8).Draw(t, "slot"); s.at(i).holder != 0 && rapid.Bool().Draw(t, "release") {
				s.swap(i, s.at(i).version, 0)
			}
			if count(s.now) > most {
				t.Fatalf("%d are held, and the limit never was above %d", count(s.now), most)
			}
		}
	})
}
