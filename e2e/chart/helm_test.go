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

// TestHelm goes through the life of the releases with Helm itself, which asks the cluster for its APIs.
func TestHelm(t *testing.T) {
	cluster, err := harness.Start(t.Context(), harness.Options{CRDs: []string{}, Controllers: []string{}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	scheme := harness.NewScheme()
	require.NoError(t, apiextensionsv1.AddToScheme(scheme))
	c, err := client.New(cluster.Config, client.Options{Scheme: scheme})
	require.NoError(t, err)

	t.Run("disk-sync-operator", func(t *testing.T) { lifeOfDiskSync(t, releaseOf(t, cluster, c, DiskSync)) })
	t.Run("vm-operator", func(t *testing.T) { lifeOfVM(t, releaseOf(t, cluster, c, VM)) })
	t.Run("workspace-operator", func(t *testing.T) { lifeOfWorkspace(t, releaseOf(t, cluster, c, Workspace)) })
}

// release is a chart in a cluster.
type release struct {
	// helm runs helm in the chart's namespace; the chart's folder is dir.
	helm func(args ...string)
	dir  string
	// get reads an object of the chart's namespace, and global one that is in none.
	get, global func(name string, object client.Object) error
}

func releaseOf(t *testing.T, cluster *harness.Cluster, c client.Client, chart Chart) release {
	t.Helper()
	root, err := harness.Root()
	require.NoError(t, err)
	return release{
		helm: func(args ...string) {
			t.Helper()
			args = append([]string{"helm", "--kubeconfig", cluster.Kubeconfig, "--namespace", chart.Namespace}, args...)
			out, err := exec.CommandContext(t.Context(), filepath.Join(root, "scripts", "tool.sh"), args...).CombinedOutput()
			require.NoError(t, err, "%s", out)
		},
		dir: filepath.Join(root, "charts", chart.Name),
		get: func(name string, object client.Object) error {
			return c.Get(t.Context(), client.ObjectKey{Namespace: chart.Namespace, Name: name}, object)
		},
		global: func(name string, object client.Object) error {
			return c.Get(t.Context(), client.ObjectKey{Name: name}, object)
		},
	}
}

func lifeOfDiskSync(t *testing.T, r release) {
	r.helm("install", operator, r.dir, "--create-namespace", "--wait=hookOnly")
	var policy corev1.ConfigMap
	require.NoError(t, r.get("sync-operator-policy", &policy))
	assert.Empty(t, policy.Data)
	require.NoError(t, r.get(operator, &appsv1.Deployment{}))
	require.NoError(t, r.global("vmdiskimages.pelotech.ot", &apiextensionsv1.CustomResourceDefinition{}))
	require.NoError(t, r.global(operator+"-import-once", &admissionv1.MutatingAdmissionPolicy{}), "auto finds the API")

	r.helm("upgrade", operator, r.dir, "--set", "policy.concurrency=8,importOnce.enabled=false", "--wait=hookOnly")
	require.NoError(t, r.get("sync-operator-policy", &policy))
	assert.Equal(t, map[string]string{"concurrency": "8"}, policy.Data)
	assert.True(t, apierrors.IsNotFound(r.global(operator+"-import-once", &admissionv1.MutatingAdmissionPolicy{})))

	r.helm("uninstall", operator, "--wait=hookOnly")
	assert.True(t, apierrors.IsNotFound(r.get(operator, &appsv1.Deployment{})))
	require.NoError(t, r.global("vmdiskimages.pelotech.ot", &apiextensionsv1.CustomResourceDefinition{}), "kept, and the images with it")

	r.helm("install", operator, r.dir, "--wait=hookOnly")
	require.NoError(t, r.get(operator, &appsv1.Deployment{}), "a release takes back the definitions that it left")
}

func lifeOfVM(t *testing.T, r release) {
	const definition, policy = "virtualmachines.pelotech.ot", "vm-operator-author-check"
	r.helm("install", VM.Name, r.dir, "--create-namespace", "--wait=hookOnly")
	require.NoError(t, r.get(VM.Name, &appsv1.Deployment{}))
	require.NoError(t, r.global(definition, &apiextensionsv1.CustomResourceDefinition{}))
	require.NoError(t, r.global(policy, &admissionv1.ValidatingAdmissionPolicyBinding{}))

	r.helm("upgrade", VM.Name, r.dir, "--set", "authorCheck.enabled=false", "--wait=hookOnly")
	assert.True(t, apierrors.IsNotFound(r.global(policy, &admissionv1.ValidatingAdmissionPolicyBinding{})))

	r.helm("uninstall", VM.Name, "--wait=hookOnly")
	assert.True(t, apierrors.IsNotFound(r.get(VM.Name, &appsv1.Deployment{})))
	require.NoError(t, r.global(definition, &apiextensionsv1.CustomResourceDefinition{}), "kept, and the virtual machines with it")

	r.helm("install", VM.Name, r.dir, "--wait=hookOnly")
	require.NoError(t, r.global(policy, &admissionv1.ValidatingAdmissionPolicyBinding{}), "a release takes back the definition that it left")
}

// lifeOfWorkspace follows the others: the policy's namespace is that of the disk-sync-operator.
func lifeOfWorkspace(t *testing.T, r release) {
	const definition, policy = "workspaces.pelotech.ot", "workspace-operator-namespace-guard"
	r.helm("install", Workspace.Name, r.dir, "--create-namespace", "--wait=hookOnly")
	require.NoError(t, r.get(Workspace.Name, &appsv1.Deployment{}))
	require.NoError(t, r.global(definition, &apiextensionsv1.CustomResourceDefinition{}))
	require.NoError(t, r.global(policy, &admissionv1.ValidatingAdmissionPolicyBinding{}))

	r.helm("upgrade", Workspace.Name, r.dir, "--set", "namespaceGuard.enabled=false", "--wait=hookOnly")
	assert.True(t, apierrors.IsNotFound(r.global(policy, &admissionv1.ValidatingAdmissionPolicyBinding{})))

	r.helm("uninstall", Workspace.Name, "--wait=hookOnly")
	assert.True(t, apierrors.IsNotFound(r.get(Workspace.Name, &appsv1.Deployment{})))
	require.NoError(t, r.global(definition, &apiextensionsv1.CustomResourceDefinition{}), "kept, and the workspaces with it")

	r.helm("install", Workspace.Name, r.dir, "--wait=hookOnly")
	require.NoError(t, r.global(policy, &admissionv1.ValidatingAdmissionPolicyBinding{}), "a release takes back the definition that it left")
}
