package harness_test

import (
	"context"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func start(t *testing.T, options harness.Options) *harness.Cluster {
	t.Helper()
	began := time.Now()
	cluster, err := harness.Start(t.Context(), options)
	require.NoError(t, err)
	t.Logf("started in %s", time.Since(began).Round(10*time.Millisecond))
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	return cluster
}

func TestControlPlane(t *testing.T) {
	cluster := start(t, harness.Options{Audit: true})
	c, err := cluster.Client("harness-test")
	require.NoError(t, err)

	for name, check := range map[string]func(*testing.T, *harness.Cluster, client.Client){
		"a namespace goes away with all that is in it":  namespaceIsDeleted,
		"an object whose owner is deleted is collected": ownedObjectIsCollected,
	} {
		t.Run(name, func(t *testing.T) { check(t, cluster, c) })
	}
}

func namespaceIsDeleted(t *testing.T, _ *harness.Cluster, c client.Client) {
	ctx := t.Context()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "doomed-"}}
	require.NoError(t, c.Create(ctx, namespace))
	claim := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "inside"}}
	require.NoError(t, c.Create(ctx, claim))
	require.NoError(t, c.Delete(ctx, namespace))
	gone(t, c, namespace)
	gone(t, c, claim)
}

func ownedObjectIsCollected(t *testing.T, _ *harness.Cluster, c client.Client) {
	ctx := t.Context()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner"}}
	require.NoError(t, c.Create(ctx, owner))
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "owned",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}},
	}}
	require.NoError(t, c.Create(ctx, owned))
	require.NoError(t, c.Delete(ctx, owner))
	gone(t, c, owned)
}

func gone(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	began := time.Now()
	require.EventuallyWithT(t, func(collect *assert.CollectT) {
		err := c.Get(context.Background(), client.ObjectKeyFromObject(object), object)
		assert.True(collect, apierrors.IsNotFound(err), "%T %s is still there", object, object.GetName())
	}, 20*time.Second, 50*time.Millisecond)
	t.Logf("%T gone after %s", object, time.Since(began).Round(time.Millisecond))
}
