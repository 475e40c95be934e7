package controller

import (
	"testing"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestUseChanged: an image is looked at again when its use decides something, and is left alone otherwise.
func TestUseChanged(t *testing.T) {
	at := func(s string) *metav1.Time {
		var parsed metav1.Time
		assert.NoError(t, parsed.UnmarshalQueryParameter(s))
		return &parsed
	}
	used := func(count int32, last string, sample ...string) apitest.ImageMod {
		return apitest.Status(func(st *v1alpha1.VMDiskImageStatus) {
			st.References = &v1alpha1.References{Count: count, Sample: sample, LastReferencedAt: at(last)}
		})
	}
	ready := apitest.Condition(v1alpha1.ConditionSynced, metav1.ConditionTrue, v1alpha1.ReasonSynced, *at("2026-01-01T00:00:00Z"))
	protected := func(i *v1alpha1.VMDiskImage) { i.Finalizers = []string{v1alpha1.FinalizerProtection} }
	going := apitest.Deleted(*at("2026-01-01T00:00:00Z"))
	const one, two = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"
	type mods []apitest.ImageMod
	cases := map[string]struct {
		before, after mods
		want          bool
	}{
		"a status write of the operator":            {mods{}, mods{apitest.Attempts(2)}, false},
		"it is claimed":                             {mods{}, mods{used(1, one)}, true},
		"it is claimed before it is in the queue":   {mods{}, mods{used(1, one), apitest.Status(func(st *v1alpha1.VMDiskImageStatus) { st.Conditions = nil })}, false},
		"it is claimed once more":                   {mods{used(1, one)}, mods{used(2, two)}, false},
		"it is released":                            {mods{used(1, one)}, mods{used(0, two)}, true},
		"its last use is another one":               {mods{used(0, one)}, mods{used(0, two)}, true},
		"the finalizer is there":                    {mods{used(1, one)}, mods{used(1, one), protected}, true},
		"the finalizer is gone":                     {mods{used(1, one), protected}, mods{used(1, one)}, true},
		"it is being deleted":                       {mods{used(1, one), protected}, mods{used(1, one), protected, going}, true},
		"another one uses it while it is going":     {mods{used(1, one), protected, going}, mods{used(2, one), protected, going}, true},
		"somebody else writes it while it is going": {mods{used(1, one), protected, going}, mods{used(1, one), protected, going, apitest.Attempts(2)}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			build := func(m mods) *v1alpha1.VMDiskImage {
				return apitest.Image("a", append(mods{ready, apitest.Entered()}, m...)...)
			}
			assert.Equal(t, c.want, useChanged(build(c.before), build(c.after)))
		})
	}
}
