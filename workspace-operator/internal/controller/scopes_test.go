package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestLenientMapper(t *testing.T) {
	served := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	inner := meta.NewDefaultRESTMapper(nil)
	inner.Add(served, meta.RESTScopeNamespace)
	mapper := &lenientMapper{RESTMapper: inner}
	machine := schema.GroupKind{Group: "pelotech.ot", Kind: "VirtualMachine"}

	mapping, err := mapper.RESTMapping(served.GroupKind(), "v1")
	require.NoError(t, err)
	assert.Equal(t, "pods", mapping.Resource.Resource, "what is served is answered by the API server")
	mapping, err = mapper.RESTMapping(machine, "v1alpha1")
	require.NoError(t, err)
	assert.Equal(t, meta.RESTScopeNameNamespace, mapping.Scope.Name())
	mapping, err = mapper.RESTMapping(schema.GroupKind{Group: "pelotech.ot", Kind: "Workspace"}, "v1alpha1")
	require.NoError(t, err)
	assert.Equal(t, meta.RESTScopeNameRoot, mapping.Scope.Name())
	_, err = mapper.RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Other"}, "v1")
	assert.True(t, meta.IsNoMatchError(err), "what is not needed is not made up")

	mapper.strict.Store(true)
	_, err = mapper.RESTMapping(machine, "v1alpha1")
	assert.True(t, meta.IsNoMatchError(err), "a list of it would fail")
}
