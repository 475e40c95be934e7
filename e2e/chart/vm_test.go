package chart

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestSchemaOfVMOperatorRefuses(t *testing.T) {
	for name, test := range map[string]struct{ value, want string }{
		"the tag latest":                     {`image.tag="latest"`, "image/tag"},
		"a digest that is none":              {`image.digest="sha256:1234"`, "image/digest"},
		"a key that does not exist":          {`replicaCount=1`, "replicaCount"},
		"a key of the other operator":        {`policy={"concurrency":2}`, "policy"},
		"a word for a switch":                {`authorCheck.enabled="yes"`, "authorCheck/enabled"},
		"a switch that does not exist":       {`authorCheck.mode="audit"`, "authorCheck"},
		"a namespace that cannot be":         {`passwordSecrets={"namespaces":["Lab_A"]}`, "passwordSecrets/namespaces"},
		"less time to stop than it takes":    {`terminationGracePeriodSeconds=10`, "terminationGracePeriodSeconds"},
		"a privileged port, as no user has":  {`metrics.port=80`, "metrics/port"},
		"a negative number of replicas":      {`replicas=-1`, "replicas"},
		"resources that Kubernetes has none": {`resources={"request":{}}`, "resources"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := VM.Render(t.Context(), test.value)
			assert.ErrorContains(t, err, test.want)
		})
	}
}

func TestRenderingOfVMOperator(t *testing.T) {
	t.Run("without the operator there is nothing of its pods, but all that it needs", func(t *testing.T) {
		objects := renderOf(t, VM, WithoutOperator)
		for _, kind := range []string{"Deployment", "PodDisruptionBudget", "Service", "NetworkPolicy"} {
			assert.False(t, find(t, objects, kind, nil), kind)
		}
		for _, kind := range []string{"ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding", "CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
			assert.True(t, find(t, objects, kind, nil), kind)
		}
	})
	t.Run("one replica has no disruption budget", func(t *testing.T) {
		assert.True(t, find(t, renderOf(t, VM), "PodDisruptionBudget", nil))
		assert.False(t, find(t, renderOf(t, VM, "replicas=1"), "PodDisruptionBudget", nil))
	})
	t.Run("it brings the definition of VirtualMachine alone, kept by default, and left out on demand", func(t *testing.T) {
		var names []string
		for _, object := range renderOf(t, VM) {
			if object.GetKind() == "CustomResourceDefinition" {
				names = append(names, object.GetName())
				assert.Equal(t, "keep", object.GetAnnotations()["helm.sh/resource-policy"])
			}
		}
		assert.Equal(t, []string{"virtualmachines.pelotech.ot"}, names, "the others are the disk-sync-operator's")
		assert.False(t, find(t, renderOf(t, VM, "crds.install=false"), "CustomResourceDefinition", nil))
	})
	t.Run("without the author check there is no policy", func(t *testing.T) {
		objects := renderOf(t, VM, "authorCheck.enabled=false")
		assert.False(t, find(t, objects, "ValidatingAdmissionPolicy", nil))
		assert.False(t, find(t, objects, "ValidatingAdmissionPolicyBinding", nil))
	})
	t.Run("everything is named after the release, or as it is told", func(t *testing.T) {
		for _, object := range renderOf(t, VM) {
			if object.GetKind() != "CustomResourceDefinition" {
				assert.True(t, strings.HasPrefix(object.GetName(), "vm-operator"), "%s %s", object.GetKind(), object.GetName())
			}
		}
		var deployment appsv1.Deployment
		require.True(t, find(t, renderOf(t, VM, allOn(t, VM)...), "Deployment", &deployment))
		assert.Equal(t, "ot-vm", deployment.Name)
		assert.Equal(t, "ot-vm-account", deployment.Spec.Template.Spec.ServiceAccountName)
		assert.Contains(t, deployment.Spec.Template.Spec.Containers[0].Image, "@sha256:")
	})
}

func TestVMOperatorKnowsTheFlagsOfItsDeployment(t *testing.T) {
	path, err := harness.BuildOperator(t.Context(), VM.Name)
	require.NoError(t, err)
	// flag exits with 0 for -help.
	usage, err := exec.CommandContext(t.Context(), path, "-help").CombinedOutput()
	require.NoError(t, err)

	var deployment appsv1.Deployment
	require.True(t, find(t, renderOf(t, VM, allOn(t, VM)...), "Deployment", &deployment))
	for _, arg := range deployment.Spec.Template.Spec.Containers[0].Args {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		assert.Regexp(t, `(?m)^  -`+name+`( |$)`, string(usage), arg)
	}
}

// Secrets are written, and read nowhere but where a namespace lets the operator do so.
func TestVMOperatorReadsNoSecrets(t *testing.T) {
	bindings := func(objects []*unstructured.Unstructured) (namespaces []string) {
		for _, object := range objects {
			var binding rbacv1.RoleBinding
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &binding))
			if object.GetKind() == "RoleBinding" && binding.RoleRef.Kind == "ClusterRole" {
				assert.Equal(t, "vm-operator-password-reader", binding.RoleRef.Name)
				assert.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Name: "vm-operator", Namespace: VM.Namespace}}, binding.Subjects)
				namespaces = append(namespaces, binding.Namespace)
			}
		}
		return namespaces
	}
	objects := renderOf(t, VM)
	rights := map[string][]string{}
	for _, object := range objects {
		if object.GetKind() != "ClusterRole" && object.GetKind() != "Role" {
			continue
		}
		var role rbacv1.ClusterRole
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role))
		for _, rule := range role.Rules {
			assert.NotContains(t, rule.Resources, "*")
			if slices.Contains(rule.Resources, "secrets") {
				rights[role.Name] = append(rights[role.Name], rule.Verbs...)
			}
		}
	}
	assert.Equal(t, map[string][]string{"vm-operator": {"create", "patch"}, "vm-operator-password-reader": {"get"}}, rights)
	assert.Empty(t, bindings(objects), "the other is bound nowhere")
	assert.Equal(t, []string{"lab-a", "lab-b"}, bindings(renderOf(t, VM, `passwordSecrets={"namespaces":["lab-a","lab-b"]}`)))
}
