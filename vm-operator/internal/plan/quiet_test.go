package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
)

// What is over in a moment is not told; what lasts is, when the operator wakes.
func TestQuietWaits(t *testing.T) {
	wait := func(d time.Duration) func(*world) { return func(w *world) { w.passes(d) } }
	for name, tc := range map[string]struct {
		cloning, starting time.Duration
		told              []string
	}{
		"clone and start at once":                        {0, 0, []string{"The guest is running"}},
		"a clone and a start of two seconds each":        {2 * time.Second, 2 * time.Second, []string{"The guest is running"}},
		"a clone that lasts":                             {10 * time.Second, 0, []string{"The disk is being cloned", "The guest is running"}},
		"a start that lasts, after a clone that did not": {0, 10 * time.Second, []string{"KubeVirt starts the guest", "The guest is running"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t.Fatalf)
			for _, step := range []func(*world){(*world).imageComes, (*world).imageReady, (*world).claims} {
				step(w)
			}
			w.settle()
			for _, step := range []func(*world){(*world).clones, wait(tc.cloning), (*world).cloned, (*world).starts, wait(tc.starting), (*world).runs} {
				step(w)
				w.settle()
			}
			assert.Equal(t, v1alpha1.VirtualMachineReady, w.vm.Status.Phase)
			var told []string
			for line := range strings.Lines(w.transcript()) {
				if _, text, is := strings.Cut(line, " status "); is {
					told = append(told, text)
				}
			}
			if assert.Len(t, told, len(tc.told), w.transcript()) {
				for i := range told {
					assert.Contains(t, told[i], tc.told[i])
				}
			}
		})
	}
}
