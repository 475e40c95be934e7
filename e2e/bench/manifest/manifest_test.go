package manifest_test

import (
	"testing"

	"github.com/pelotech/open-terrain/e2e/bench/manifest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// aService as the API server has it: with what it filled in.
func aService() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{
			"name": "web", "namespace": "lab", "uid": "a", "labels": map[string]any{"ours": "yes", "another": "yes"}, "finalizers": []any{"ours", "another"},
		},
		"spec": map[string]any{
			"clusterIP": "10.0.0.1", "type": "ClusterIP", "selector": map[string]any{"app": "web"},
			"ports": []any{
				map[string]any{"name": "other", "port": int64(81), "protocol": "TCP"},
				map[string]any{"name": "http", "port": int64(80), "protocol": "TCP", "nodePort": int64(30000)},
			},
		},
	}}
	object.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "another", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:type":{}}}`)},
		{Manager: "operator", Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`)},
		{Manager: "operator", FieldsV1: metav1.NewFieldsV1(`{
			"f:metadata":{"f:labels":{"f:ours":{}},"f:finalizers":{".":{},"v:\"ours\"":{}}},
			"f:spec":{"f:selector":{},"f:ports":{".":{},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}
		}`)},
	})
	return object
}

func TestOf(t *testing.T) {
	applied, err := manifest.Of(aService(), "operator")
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{
			"name": "web", "namespace": "lab", "labels": map[string]any{"ours": "yes"}, "finalizers": []any{"ours"},
		},
		"spec": map[string]any{
			"selector": map[string]any{"app": "web"}, "ports": []any{map[string]any{"name": "http", "port": int64(80)}},
		},
	}, applied.Object)

	_, err = manifest.Of(aService(), "nobody")
	require.ErrorContains(t, err, "nobody")
}

func TestFiles(t *testing.T) {
	files := manifest.Files{Dir: t.TempDir(), Load: "load"}
	want := []*unstructured.Unstructured{aService(), aService()}
	require.NoError(t, files.Write(want))
	got, err := manifest.Read(files.Plain())
	require.NoError(t, err)
	assert.Equal(t, want, got)
	assert.FileExists(t, files.Chart()+"/Chart.yaml")
}
