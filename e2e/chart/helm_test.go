package chart

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestHelm goes through the life of a release with Helm itself, which asks the cluster for its APIs.
func TestHelm(t *testing.T) {
	ctx := t.Context()
	cluster, err := harness.Start(ctx, harness.Options{CRDs: []string{}, Controllers: []string{}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	scheme := harness.NewScheme()
	require.NoError(t, apiextensionsv1.AddToScheme(scheme))
	c, err := client.New(cluster.Config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	root, err := harness.Root()
	require.NoError(t, err)
	helm := func(args ...string) {
		t.Helper()
		args = append([]string{"helm", "--kubeconfig", cluster.Kubeconfig, "--namespace", Namespace}, args...)
		out, err := exec.CommandContext(ctx, filepath.Join(root, "scripts", "tool.sh"), args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	get := func(name string, object client.Object) error {
		return c.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: name}, object)
	}
	global := func(name string, object client.Object) error { return c.Get(ctx, client.ObjectKey{Name: name}, object) }
	dir := filepath.Join(root, "charts", operator)

	helm("install", operator, dir, "--create-namespace", "--wait=hookOnly")
	var policy corev1.ConfigMap
	require.NoError(t, get("sync-operator-policy", &policy))
	assert.Empty(t, policy.Data)
	require.NoError(t, get(operator, &appsv1.Deployment{}))
	require.NoError(t, global("vmdiskimages.pelotech.ot", &apiextensionsv1.CustomResourceDefinition{}))
	require.NoError(t, global(operator+"-import-once", &admissionv1.MutatingAdmissionPolicy{}), "auto finds the API")

	helm("upgrade", operator, dir, "--set", "policy.concurrency=8,importOnce.enabled=false", "--wait=hookOnly")
	require.NoError(t, get("sync-operator-policy", &policy))
	assert.Equal(t, map[string]string{"concurrency": "8"}, policy.Data)
	assert.True(t, apierrors.IsNotFound(global(operator+"-import-once", &admissionv1.MutatingAdmissionPolicy{})))

	helm("uninstall", operator, "--wait=hookOnly")
	assert.True(t, apierrors.IsNotFound(get(operator, &appsv1.Deployment{})))
	require.NoError(t, global("vmdiskimages.pelotech.ot", &apiextensionsv1.CustomResourceDefinition{}), "kept, and the images with it")

	helm("install", operator, dir, "--wait=hookOnly")
	require.NoError(t, get(operator, &appsv1.Deployment{}), "a release takes back the definitions that it left")
}
