package vmfault

import (
	"testing"
	"time"

	"github.com/pelotech/open-terrain/e2e/fault/lab"
	"github.com/pelotech/open-terrain/e2e/sim/cdi"
	"github.com/pelotech/open-terrain/e2e/sim/kubevirt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// TestMachines has one write of each story go wrong, in each way.
func TestMachines(t *testing.T) {
	w := lab.Start(t, lab.Options{
		Behaviour: behaviour, Instant: ptr.To(30 * time.Millisecond), Policy: lab.BasePolicy(), Settings: lab.Settings(),
		KubeVirt: &kubevirt.Options{Workers: 8, Backoff: 50 * time.Millisecond},
	})
	for _, story := range sampled(t, stories()) {
		t.Run(story.Name, func(t *testing.T) { tell(t, w, story) })
	}
}

// behaviour of CDI: a clone for a virtual machine that is called slow never ends.
func behaviour(dv *cdiv1.DataVolume) cdi.Behaviour {
	if isSlow(dv) {
		return cdi.Behaviour{StopAt: cdiv1.CloneScheduled}
	}
	return lab.Behaviour(dv)
}

// tell a story without a fault, for reference, and then with plans.
func tell(t *testing.T, w *lab.World, story Story) {
	t.Helper()
	r := &runner{world: w, story: story}
	reference, err := r.run(t, lab.Plan{Story: story.Name})
	require.NoError(t, err)
	// One more than the reference: the number of writes may differ by what happened to come first.
	plans := enumerate(story.Name, len(reference.writes)+1)
	line := row{story: story.Name, writes: len(reference.writes), of: len(plans)}
	for _, plan := range choose(t, plans, reference.writes) {
		result, err := r.run(t, plan)
		line.add(result, err)
		if !assert.NoError(t, err) && line.red > 2 {
			break
		}
	}
	if err := r.close(t); !assert.NoError(t, err) {
		line.red++
	}
	report(t, line)
}
