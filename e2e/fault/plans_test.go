package fault

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/pelotech/open-terrain/e2e/fault/lab"
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

// everything says that all plans are to run.
func everything() bool { return os.Getenv("OT_PLANS") == "all" }

// choose some of the plans, or all of them.
func choose(t *testing.T, plans []lab.Plan) []lab.Plan {
	t.Helper()
	if chosen, ok := given(t); ok {
		return []lab.Plan{chosen}
	}
	number := sample
	switch text := os.Getenv("OT_PLANS"); text {
	case "":
	case "all":
		return plans
	default:
		var err error
		number, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	random := rand.New(rand.NewPCG(seed(t), 0)) //nolint:gosec // plans, no secrets
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
			var all []lab.Plan
			for _, plans := range enumerate {
				// One more than the reference: the number of writes may differ by what happened to come first.
				all = append(all, plans(story.Name, len(reference.Writes)+1)...)
			}
			runAll(t, r, reference, choose(t, all), len(all))
		})
	}
}

func runAll(t *testing.T, r *lab.Runner, reference lab.Result, plans []lab.Plan, all int) {
	t.Helper()
	line := row{story: r.Story.Name, writes: len(reference.Writes), of: all}
	for _, plan := range plans {
		result, err := r.Run(t, plan)
		line.add(result, err)
		if !assert.NoError(t, err) {
			// The world may be broken now, but a story's own namespace is new each time.
			if line.red > 2 || !everything() {
				break
			}
		}
	}
	if err := r.Close(t); !assert.NoError(t, err) {
		line.red++
	}
	report(t, line)
}
