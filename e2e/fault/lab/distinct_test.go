package lab

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pelotech/open-terrain/e2e/faultproxy"
	"github.com/stretchr/testify/assert"
)

func TestDistinctLeavesOneOfWhatIsAlike(t *testing.T) {
	writes := []faultproxy.Request{
		{Verb: "patch", Resource: "vmdiskimages", Subresource: "status"},
		{Verb: "create", Resource: "datavolumes"},
		{Verb: "patch", Resource: "vmdiskimages", Subresource: "status"},
		{Verb: "create", Resource: "datavolumes"},
	}
	const one = 1 // more than the reference had
	all := slices.Concat(Single("story", len(writes)+one), Watches("story", len(writes)+one), Double("story", len(writes)+one))
	counts := map[string]int{}
	for _, plan := range Distinct(all, writes, random(1)) {
		counts[plan.Kind.Name]++
	}
	assert.Equal(t, map[string]int{
		"killed before": 5, "killed after": 5, "answer lost": 5, "409": 5,
		"500, though done": 3, "500": 3, "429": 3, "hangs, breaks": 3, "hangs, breaks, though done": 3,
		"500 in a row": some, "409 in a row": some, "answers lost in a row": some,
		"watch silent": some, "watch expired": some, "killed twice": some,
	}, counts)
}

func TestDistinctIsTheSameForOneSeed(t *testing.T) {
	all := Single("story", 9)
	assert.Equal(t, Distinct(all, nil, random(1)), Distinct(all, nil, random(1)))
	assert.NotEqual(t, Distinct(all, nil, random(1)), Distinct(all, nil, random(2)))
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }
