package fault

import (
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/pelotech/open-terrain/e2e/fault/lab"
	"github.com/pelotech/open-terrain/e2e/faultproxy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sample is how many plans of a story run, unless OT_PLANS says another number, or "all".
const sample = 1

// seed of the samples and the random histories: OT_SEED, or one that is always the same. make fault gives the time.
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

// What OT_PLANS may be besides a number.
const (
	distinct = "distinct" // what may show something of its own: see lab.Distinct
	all      = "all"      // every fault at every write
)

// thorough says that this is the campaign, and no sample.
func thorough() bool { return os.Getenv("OT_PLANS") == all || os.Getenv("OT_PLANS") == distinct }

// choose some of the plans of a story whose reference has made these writes, or all of them.
func choose(t *testing.T, plans []lab.Plan, writes []faultproxy.Request, random *rand.Rand) []lab.Plan {
	t.Helper()
	if chosen, ok := given(t); ok {
		return []lab.Plan{chosen}
	}
	number := sample
	switch text := os.Getenv("OT_PLANS"); text {
	case "":
	case all:
		return plans
	case distinct:
		return lab.Distinct(plans, writes, random)
	default:
		var err error
		number, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	random.Shuffle(len(plans), func(i, j int) { plans[i], plans[j] = plans[j], plans[i] })
	return plans[:min(number, len(plans))]
}

// random choices for a story: others for each, so that not all get the same kind of fault.
func random(t *testing.T, story string) *rand.Rand {
	t.Helper()
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(story))                    // to memory
	return rand.New(rand.NewPCG(seed(t), hash.Sum64())) //nolint:gosec // plans, no secrets
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

// wanted leaves out the stories that the plan of OT_PLAN is not about.
func wanted(t *testing.T, story lab.Story) bool {
	t.Helper()
	plan, one := given(t)
	return !one || plan.Story == story.Name
}

// tell each story without a fault, for reference, and then with the plans that enumerate makes for its number of writes.
func tell(t *testing.T, w *lab.World, stories []lab.Story, enumerate ...func(string, int) []lab.Plan) {
	t.Helper()
	for _, story := range stories {
		if !wanted(t, story) {
			continue
		}
		t.Run(story.Name, func(t *testing.T) {
			r := &lab.Runner{World: w, Story: story}
			reference, err := r.Run(t, lab.Plan{Story: story.Name})
			require.NoError(t, err)
			var plans []lab.Plan
			for _, more := range enumerate {
				// One more than the reference: the number of writes may differ by what happened to come first.
				plans = append(plans, more(story.Name, len(reference.Writes)+1)...)
			}
			random := random(t, story.Name)
			chosen := choose(t, slices.Clone(plans), reference.Writes, random)
			counts := tally{tried: kindsOf(chosen), distinct: kindsOf(lab.Distinct(plans, reference.Writes, random)), all: kindsOf(plans)}
			t.Logf("%s: %s", story.Name, counts)
			runAll(t, r, reference, chosen, counts)
		})
	}
}

func runAll(t *testing.T, r *lab.Runner, reference lab.Result, plans []lab.Plan, counts tally) {
	t.Helper()
	line := row{story: r.Story.Name, writes: len(reference.Writes), of: counts.all.sum(), tally: counts}
	for _, plan := range plans {
		result, err := r.Run(t, plan)
		line.add(result, err)
		if !assert.NoError(t, err) {
			// The world may be broken now, but a story's own namespace is new each time.
			if line.red > 2 || !thorough() {
				break
			}
		}
	}
	if err := r.Close(t); !assert.NoError(t, err) {
		line.red++
	}
	report(t, line)
}
