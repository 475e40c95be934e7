package vmfault

import (
	"encoding/json"
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/e2e/fault/lab"
	"github.com/pelotech/open-terrain/e2e/faultproxy"
	"github.com/stretchr/testify/require"
)

// How many plans of how many stories run, unless OT_PLANS says another number of plans, "distinct", or "all".
const (
	sample          = 1
	sampleOfStories = 6
)

// stale is how long watches are silent.
const stale = 400 * time.Millisecond

// faults are the ways in which one write can go wrong.
var faults = []lab.Fault{
	{Kind: lab.Kind{Name: "killed before", Reach: lab.Each}, Rule: faultproxy.Rule{When: faultproxy.SeverBefore}},
	{Kind: lab.Kind{Name: "killed after", Reach: lab.Each}, Rule: faultproxy.Rule{When: faultproxy.Sever}},
	{Kind: lab.Kind{Name: "answer lost", Reach: lab.Each}, Rule: faultproxy.Rule{When: faultproxy.After}},
	{Kind: lab.Kind{Name: "500, though done", Reach: lab.Alike}, Rule: faultproxy.Rule{When: faultproxy.After, Code: 500}},
	{Kind: lab.Kind{Name: "409", Reach: lab.Each}, Rule: faultproxy.Rule{When: faultproxy.Before, Code: 409}},
	{Kind: lab.Kind{Name: "429", Reach: lab.Alike}, Rule: faultproxy.Rule{When: faultproxy.Before, Code: 429}},
	{Kind: lab.Kind{Name: "500", Reach: lab.Alike}, Rule: faultproxy.Rule{When: faultproxy.Before, Code: 500}},
}

// watched are the resources whose watches fall silent after a write.
var watched = []string{
	"vmdiskimages", "virtualmachines", "datavolumes", "persistentvolumeclaims",
	"virtualmachines.kubevirt.io", "virtualmachineinstances.kubevirt.io",
}

// enumerate all plans of a story with that many writes, in an order that is always the same.
func enumerate(story string, writes int) []lab.Plan {
	var plans []lab.Plan
	add := func(n int, kind lab.Kind, rule faultproxy.Rule) {
		rule.Nth = n
		plans = append(plans, lab.Plan{Story: story, Lives: [][]faultproxy.Rule{{rule}}, Kind: kind})
	}
	for n := 1; n <= writes; n++ {
		for _, fault := range faults {
			add(n, fault.Kind, fault.Rule)
		}
		for _, resource := range watched {
			for _, when := range []faultproxy.When{faultproxy.Stale, faultproxy.Relist} {
				kind := lab.Kind{Name: string(when) + " " + resource, Reach: lab.Some}
				add(n, kind, faultproxy.Rule{When: when, Watch: resource, Delay: stale})
			}
		}
	}
	return plans
}

// linger is how long after a fault its consequences may come: the wait that the operator was told.
func linger(p lab.Plan) time.Duration {
	for _, rules := range p.Lives {
		for _, rule := range rules {
			if rule.Code == 429 {
				return 1300 * time.Millisecond
			}
		}
	}
	return 0
}

// seed of the samples: OT_SEED, or one that is always the same. make fault gives the time.
func seed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(1)
	if text := os.Getenv("OT_SEED"); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		seed = given
	}
	t.Logf("OT_SEED=%d", seed)
	return seed
}

// choose some of the plans, or all of them.
func choose(t *testing.T, plans []lab.Plan, writes []faultproxy.Request) []lab.Plan {
	t.Helper()
	if chosen, ok := given(t); ok {
		return []lab.Plan{chosen}
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(plans[0].Story))              // to memory
	random := rand.New(rand.NewPCG(seed(t), hash.Sum64())) //nolint:gosec // plans, no secrets
	number := sample
	switch text := os.Getenv("OT_PLANS"); text {
	case "":
	case "all":
		return plans
	case "distinct":
		return lab.Distinct(plans, writes, random)
	default:
		var err error
		number, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	random.Shuffle(len(plans), func(i, j int) { plans[i], plans[j] = plans[j], plans[i] })
	return plans[:min(number, len(plans))]
}

// given is the plan of OT_PLAN.
func given(t *testing.T) (lab.Plan, bool) {
	t.Helper()
	text := os.Getenv("OT_PLAN")
	if text == "" {
		return lab.Plan{}, false
	}
	var plan lab.Plan
	require.NoError(t, json.Unmarshal([]byte(text), &plan))
	return plan, true
}

// sampled are the stories that are told: that of OT_PLAN; all with OT_PLANS, or where go test -run names some; else a sample.
func sampled(t *testing.T, stories []Story) []Story {
	t.Helper()
	plan, one := given(t)
	if one {
		return slices.DeleteFunc(stories, func(story Story) bool { return story.Name != plan.Story })
	}
	if os.Getenv("OT_PLANS") != "" || strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		return stories
	}
	random := rand.New(rand.NewPCG(seed(t), 0)) //nolint:gosec // stories, no secrets
	random.Shuffle(len(stories), func(i, j int) { stories[i], stories[j] = stories[j], stories[i] })
	return stories[:sampleOfStories]
}
