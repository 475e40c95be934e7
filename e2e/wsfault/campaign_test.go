package wsfault

import (
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/pelotech/open-terrain/e2e/fault/lab"
	"github.com/pelotech/open-terrain/e2e/faultproxy"
	"github.com/pelotech/open-terrain/e2e/sim/kubevirt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// How many plans of how many stories run, unless OT_PLANS says another number of plans, "distinct", or "all".
const (
	sample          = 1
	sampleOfStories = 3
)

// TestWorkspaces has one write of each story go wrong, in each way.
func TestWorkspaces(t *testing.T) {
	w := lab.Start(t, lab.Options{
		Instant: new(30 * time.Millisecond), Policy: basePolicy(), Settings: lab.Settings(), Workspaces: true,
		KubeVirt: &kubevirt.Options{Workers: 8, Backoff: 50 * time.Millisecond, Node: true},
	})
	for _, s := range sampled(t, stories()) {
		t.Run(s.name, func(t *testing.T) { tell(t, w, s) })
	}
}

// basePolicy has room for one workspace at a time.
func basePolicy() map[string]string {
	data := lab.BasePolicy()
	data[policy.KeyWorkspaceConcurrency] = "1"
	return data
}

// tell a story without a fault, for reference, and then with plans.
func tell(t *testing.T, w *lab.World, s story) {
	t.Helper()
	r := &runner{world: w, story: s}
	reference, err := r.run(t, lab.Plan{Story: s.name})
	require.NoError(t, err)
	// One more than the reference: the number of writes may differ by what happened to come first.
	plans := enumerate(s.name, len(reference)+1)
	red, struck, began, chosen := 0, 0, time.Now(), choose(t, plans, reference)
	for _, plan := range chosen {
		writes, err := r.run(t, plan)
		struck += hits(writes)
		if !assert.NoError(t, err) {
			if red++; red > 2 {
				break
			}
		}
	}
	each := time.Since(began).Seconds() / float64(max(1, len(chosen)))
	report(t, fmt.Sprintf("%-20s %3d writes, %3d of %3d plans, %3d struck, %.1f s a plan, %d red", s.name, len(reference), len(chosen), len(plans), struck, each, red))
}

func hits(writes []faultproxy.Request) int {
	return len(slices.DeleteFunc(slices.Clone(writes), func(q faultproxy.Request) bool { return q.Rule < 0 }))
}

// report a story: in the test's log, and after whatever OT_TABLE holds.
func report(t *testing.T, line string) {
	t.Helper()
	t.Log(line)
	path := os.Getenv("OT_TABLE")
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer file.Close()
	_, err = fmt.Fprintln(file, line)
	require.NoError(t, err)
}

// watched are the resources whose watches fall silent after a write.
var watched = []string{"workspaces", "namespaces", "networkpolicies", "services", "deployments", "virtualmachines", "pods", "leases"}

// stale is how long watches are silent.
const stale = 400 * time.Millisecond

// enumerate all plans of a story with that many writes, in an order that is always the same.
func enumerate(name string, writes int) []lab.Plan {
	plans := lab.Single(name, writes)
	for n := 1; n <= writes; n++ {
		for _, resource := range watched {
			for _, when := range []faultproxy.When{faultproxy.Stale, faultproxy.Relist} {
				rule := faultproxy.Rule{Nth: n, When: when, Watch: resource, Delay: stale}
				kind := lab.Kind{Name: string(when) + " " + resource, Reach: lab.Some}
				plans = append(plans, lab.Plan{Story: name, Lives: [][]faultproxy.Rule{{rule}}, Kind: kind})
			}
		}
	}
	return append(plans, lab.Double(name, writes)...)
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
func sampled(t *testing.T, stories map[string]story) []story {
	t.Helper()
	all := make([]story, 0, len(stories))
	for _, name := range slices.Sorted(maps.Keys(stories)) {
		s := stories[name]
		s.name = name
		all = append(all, s)
	}
	plan, one := given(t)
	if one {
		return slices.DeleteFunc(all, func(s story) bool { return s.name != plan.Story })
	}
	if os.Getenv("OT_PLANS") != "" || strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		return all
	}
	random := rand.New(rand.NewPCG(seed(t), 0)) //nolint:gosec // stories, no secrets
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:sampleOfStories]
}
