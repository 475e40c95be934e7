// Package campaign breaks the operator's world in many ways, and demands that the invariants hold.
//
// By default a seeded sample of the plans runs. Environment:
//
//	OT_PLANS=all|N      every plan of each story, or N of them
//	OT_SEED=S           the sample of a former run, which printed its seed
//	OT_PLAN=JSON        one plan, as a failed run printed it
//	OT_FENCE_IMAGES=N   how many images the fence must let pass
//	OT_LOGS=FOLDER      keeps the logs of all processes
package campaign

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/e2e/invariant/lab"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sample is how many plans of a story run, unless OT_PLANS says another number, or "all".
const sample = 12

// seed of the samples: OT_SEED, or the time.
func seed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("OT_SEED"); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		seed = given
	}
	t.Logf("OT_SEED=%d", seed)
	return seed
}

// choose some of the plans, or all of them.
func choose(t *testing.T, plans []lab.Plan) []lab.Plan {
	t.Helper()
	if text := os.Getenv("OT_PLAN"); text != "" {
		var plan lab.Plan
		require.NoError(t, json.Unmarshal([]byte(text), &plan))
		if plan.Story != plans[0].Story {
			return nil
		}
		return []lab.Plan{plan}
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

// oneFault has one write of an image's life go wrong: the operator is killed before or after it, its answer is lost, or
// the API server refuses it once.
func oneFault(t *testing.T, w *lab.World) {
	for _, story := range lab.Stories() {
		t.Run(story.Name, func(t *testing.T) {
			r := &lab.Runner{World: w, Story: story}
			reference, err := r.Run(t, lab.Plan{Story: story.Name})
			require.NoError(t, err)
			// One more than the reference: the number of writes may differ by what happened to come first.
			all := lab.Plans(story.Name, len(reference.Writes)+1)
			t.Logf("%d writes, %d plans", len(reference.Writes), len(all))
			runAll(t, r, choose(t, all))
		})
	}
}

func runAll(t *testing.T, r *lab.Runner, plans []lab.Plan) {
	t.Helper()
	var took time.Duration
	ran, struck, lives := 0, 0, 0
	for _, plan := range plans {
		result, err := r.Run(t, plan)
		assert.NoError(t, err)
		ran++
		took, struck, lives = took+result.Took, struck+result.Struck, lives+result.Lives
		if t.Failed() {
			break
		}
	}
	t.Logf("%d plans ran, %d faults struck, %d processes, %s a plan", ran, struck, lives-ran+1, (took / time.Duration(max(1, ran))).Round(time.Millisecond))
}
