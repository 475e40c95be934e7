package faultproxy_test

import (
	"path/filepath"
	"testing"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/faultproxy"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func serializer() runtime.NegotiatedSerializer { return scheme.Codecs.WithoutConversion() }

func TestInFrontOfARealAPIServer(t *testing.T) {
	cluster, err := harness.Start(t.Context(), harness.Options{CRDs: []string{}, Controllers: []string{}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	proxy, err := faultproxy.Start(faultproxy.Options{Config: cluster.Config, Rules: []faultproxy.Rule{
		{Resource: "leases", Nth: 2, When: faultproxy.After},
	}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, proxy.Close()) })

	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, proxy.WriteKubeconfig(kubeconfig))
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	c, err := client.NewWithWatch(config, client.Options{Scheme: harness.NewScheme()})
	require.NoError(t, err)

	watching, err := c.Watch(t.Context(), &coordinationv1.LeaseList{}, client.InNamespace("default"))
	require.NoError(t, err)
	t.Cleanup(watching.Stop)

	require.NoError(t, c.Create(t.Context(), lease(0)))
	assert.Equal(t, otv1alpha1.SlotName(0), next(t, watching), "a watch streams")
	require.Error(t, c.Create(t.Context(), lease(1)), "the answer is lost")
	assert.Equal(t, otv1alpha1.SlotName(1), next(t, watching), "but the lease is there")

	requests := proxy.Requests()
	require.Len(t, requests, 2)
	assert.Equal(t, otv1alpha1.SlotName(0), requests[0].Name, "the name is found in protobuf")
	assert.Equal(t, 201, requests[0].Code)
	assert.Equal(t, 0, requests[1].Code)
	assert.True(t, requests[1].Applied)
}

func lease(i int) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: otv1alpha1.SlotName(i)}}
}

func next(t *testing.T, watching watch.Interface) string {
	t.Helper()
	select {
	case event := <-watching.ResultChan():
		added, ok := event.Object.(*coordinationv1.Lease)
		require.True(t, ok, "%v", event)
		return added.Name
	case <-time.After(10 * time.Second):
		require.Fail(t, "the watch says nothing")
		return ""
	}
}
