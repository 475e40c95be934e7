package fault

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelotech/open-terrain/e2e/fault/lab"
)

// kinds counts plans by their kind.
type kinds map[lab.Kind]int

func kindsOf(plans []lab.Plan) kinds {
	counts := kinds{}
	for _, plan := range plans {
		counts[plan.Kind]++
	}
	return counts
}

func (k kinds) sum() int {
	n := 0
	for _, count := range k {
		n += count
	}
	return n
}

func (k kinds) add(more kinds) {
	for kind, count := range more {
		k[kind] += count
	}
}

// sorted by how far they reach, and by name.
func (k kinds) sorted() []lab.Kind {
	return slices.SortedFunc(maps.Keys(k), func(a, b lab.Kind) int {
		return strings.Compare(string(a.Reach)+a.Name, string(b.Reach)+b.Name)
	})
}

// tally counts the plans of stories: those that are tried, those that OT_PLANS=distinct would try, and all.
type tally struct{ tried, distinct, all kinds }

func (t tally) add(more tally) {
	t.tried.add(more.tried)
	t.distinct.add(more.distinct)
	t.all.add(more.all)
}

// String tells which plans of a story are about to be tried.
func (t tally) String() string {
	var parts []string
	for _, kind := range t.tried.sorted() {
		parts = append(parts, fmt.Sprintf("%s %d of %d", kind.Name, t.tried[kind], t.all[kind]))
	}
	return fmt.Sprintf("%d of %d plans: %s", t.tried.sum(), t.all.sum(), strings.Join(parts, ", "))
}
