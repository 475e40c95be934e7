package drift_test

import (
	"testing"

	"github.com/pelotech/open-terrain/apis/drift"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &o))
	return o
}

func TestDrift(t *testing.T) {
	for name, c := range map[string]struct {
		want, live string
		paths      []string
	}{
		"the same":                         {"a: {b: 1}", "a: {b: 1}", nil},
		"another value":                    {"a: {b: x}", "a: {b: y}", []string{"a.b"}},
		"missing":                          {"a: {b: x, c: y}", "a: {b: x}", []string{"a.c"}},
		"all missing":                      {"a: {b: x}", "{}", []string{"a"}},
		"a map instead of a text":          {"a: x", "a: {b: 1}", []string{"a"}},
		"fields of others":                 {"a: {b: x}", "a: {b: x, c: y}\nd: z", nil},
		"fields of others in a list":       {"a: [{b: x}]", "a: [{b: x, c: y}]", nil},
		"another one in the list":          {"a: [{b: x}]", "a: [{b: x}, {b: y}]", []string{"a"}},
		"one less in the list":             {"a: [{b: x}, {b: y}]", "a: [{b: x}]", []string{"a"}},
		"another order":                    {"a: [{b: x}, {b: y}]", "a: [{b: y}, {b: x}]", []string{"a[0].b", "a[1].b"}},
		"an empty list is no list":         {"a: []", "{}", nil},
		"a quantity in other words":        {"memory: {guest: 1.5Gi}", "memory: {guest: 1536Mi}", nil},
		"another quantity":                 {"memory: {guest: 1.5Gi}", "memory: {guest: 2Gi}", []string{"memory.guest"}},
		"of a container's, too":            {"limits: {cpu: '1', ephemeral-storage: 1Gi}", "limits: {cpu: 1000m, ephemeral-storage: 1024Mi}", nil},
		"no quantity any more":             {"memory: {guest: 1.5Gi}", "memory: {guest: lots}", []string{"memory.guest"}},
		"a text that looks like one":       {"hostname: '1e3'", "hostname: '1000'", []string{"hostname"}},
		"a zero that was dropped":          {"cpu: {cores: 0}", "cpu: {}", nil},
		"a false that is missing":          {"autoattachPodInterface: false", "{}", []string{"autoattachPodInterface"}},
		"an empty map that is missing":     {"masquerade: {}", "{}", []string{"masquerade"}},
		"a number of another type":         {"cores: 2", "cores: 2.0", nil},
		"another number":                   {"cores: 2", "cores: 3", []string{"cores"}},
		"an owner besides":                 {"metadata: {ownerReferences: [{uid: a, name: n}]}", "metadata: {ownerReferences: [{uid: b}, {uid: a, name: n}]}", nil},
		"no owner":                         {"metadata: {ownerReferences: [{uid: a, name: n}]}", "metadata: {}", []string{"metadata.ownerReferences"}},
		"an owner who does not control it": {"metadata: {ownerReferences: [{uid: a, controller: true}]}", "metadata: {ownerReferences: [{uid: a}]}", []string{"metadata.ownerReferences.controller"}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.paths, drift.Of(object(t, c.want), object(t, c.live)))
		})
	}
}

// A field that is no longer wanted is still there, as if it were somebody else's. The seal tells.
func TestSeal(t *testing.T) {
	machine := func(text string) *unstructured.Unstructured {
		return drift.Sealed(&unstructured.Unstructured{Object: object(t, text)})
	}
	seal := func(text string) string { return machine(text).GetAnnotations()[v1alpha1.AnnotationAppliedFields] }
	const base = "spec: {a: [{x: 1}], b: {}}"
	assert.Len(t, seal(base), 8)
	assert.Equal(t, seal(base), seal("spec: {a: [{x: 2}], b: {}}"), "values are compared by themselves")
	for name, other := range map[string]string{
		"a field more": "spec: {a: [{x: 1, y: 1}], b: {}}", "a field less": "spec: {a: [{x: 1}]}",
		"an annotation": "{metadata: {annotations: {v: '1'}}, spec: {a: [{x: 1}], b: {}}}",
	} {
		assert.NotEqual(t, seal(base), seal(other), name)
	}
	plain := &unstructured.Unstructured{Object: object(t, base)}
	drift.Sealed(plain)
	assert.Empty(t, plain.GetAnnotations(), "it is a copy")
	before := machine("{metadata: {annotations: {v: '1'}}, spec: {a: 1}}")
	assert.Equal(t, []string{"metadata.annotations." + v1alpha1.AnnotationAppliedFields}, drift.Of(machine("spec: {a: 1}").Object, before.Object))
}
