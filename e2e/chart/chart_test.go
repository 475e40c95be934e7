package chart

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// allOn are the values of testdata/<chart>.yaml, which sets everything that the chart knows.
func allOn(t *testing.T, chart Chart) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", chart.Name+".yaml"))
	require.NoError(t, err)
	var top map[string]any
	require.NoError(t, yaml.Unmarshal(raw, &top))
	values := make([]string, 0, len(top))
	for key, value := range top {
		encoded, err := yaml.Marshal(value)
		require.NoError(t, err)
		asJSON, err := yaml.YAMLToJSON(encoded)
		require.NoError(t, err)
		values = append(values, key+"="+string(asJSON))
	}
	return values
}

func render(t *testing.T, values ...string) []*unstructured.Unstructured {
	t.Helper()
	return renderOf(t, DiskSync, values...)
}

func renderOf(t *testing.T, chart Chart, values ...string) []*unstructured.Unstructured {
	t.Helper()
	manifests, err := chart.Render(t.Context(), values...)
	require.NoError(t, err)
	objects, err := Objects(manifests)
	require.NoError(t, err)
	return objects
}

// find decodes the one object of a kind into typed; false when there is none.
func find(t *testing.T, objects []*unstructured.Unstructured, kind string, typed any) bool {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() == kind {
			if typed != nil {
				require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true))
			}
			return true
		}
	}
	return false
}

func TestSchemaRefuses(t *testing.T) {
	for name, test := range map[string]struct{ value, want string }{
		"the tag latest":                       {`image.tag="latest"`, "image/tag"},
		"a digest that is none":                {`image.digest="sha256:1234"`, "image/digest"},
		"a key that does not exist":            {`replicaCount=1`, "replicaCount"},
		"a policy key that does not exist":     {`policy={"concurency":2}`, "concurency"},
		"a policy number below 0":              {`policy={"concurrency":-1}`, "policy/concurrency"},
		"a policy duration without a unit":     {`policy={"retryBackoffDuration":"5"}`, "policy/retryBackoffDuration"},
		"a source without a scheme":            {`policy={"allowedSources":["images.example.com"]}`, "policy/allowedSources"},
		"a size that is none":                  {`policy={"defaultDiskSize":"big"}`, "policy/defaultDiskSize"},
		"a word for a switch":                  {`importOnce.enabled="yes"`, "importOnce/enabled"},
		"less time to stop than it takes":      {`terminationGracePeriodSeconds=10`, "terminationGracePeriodSeconds"},
		"a privileged port, as user 65532 has": {`metrics.port=80`, "metrics/port"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Render(t.Context(), test.value)
			assert.ErrorContains(t, err, test.want)
		})
	}
}

func TestRendering(t *testing.T) {
	t.Run("the policy has only what is set, and what the operator knows", func(t *testing.T) {
		var unset, all corev1.ConfigMap
		require.True(t, find(t, render(t), "ConfigMap", &unset))
		assert.Empty(t, unset.Data)

		require.True(t, find(t, render(t, allOn(t, DiskSync)...), "ConfigMap", &all))
		parsed, errs := policy.Parse(all.Data)
		assert.Empty(t, errs)
		assert.Empty(t, policy.Unknown(all.Data))
		assert.Equal(t, 8, parsed.Concurrency)
		assert.Len(t, parsed.AllowedSources, 2)
	})
	t.Run("without the operator there is nothing of its pods, but all that it needs", func(t *testing.T) {
		objects := render(t, WithoutOperator)
		for _, kind := range []string{"Deployment", "PodDisruptionBudget", "Service", "NetworkPolicy"} {
			assert.False(t, find(t, objects, kind, nil), kind)
		}
		for _, kind := range []string{"ConfigMap", "ServiceAccount", "ClusterRole", "Role", "PriorityClass", "CustomResourceDefinition"} {
			assert.True(t, find(t, objects, kind, nil), kind)
		}
	})
	t.Run("one replica has no disruption budget", func(t *testing.T) {
		assert.False(t, find(t, render(t, "replicas=1"), "PodDisruptionBudget", nil))
	})
	t.Run("the definitions are kept by default, and left out on demand", func(t *testing.T) {
		for _, object := range render(t) {
			if object.GetKind() == "CustomResourceDefinition" {
				assert.Equal(t, "keep", object.GetAnnotations()["helm.sh/resource-policy"], object.GetName())
			}
		}
		assert.False(t, find(t, render(t, "crds.install=false"), "CustomResourceDefinition", nil))
	})
	t.Run("the admission policy is left out where the API is not known to be there", func(t *testing.T) {
		assert.False(t, find(t, render(t), "MutatingAdmissionPolicy", nil))
		assert.True(t, find(t, render(t, WithImportOnce), "MutatingAdmissionPolicy", nil))
	})
}

// TestInstallation applies the charts to an API server, which checks every field of every object strictly.
func TestInstallation(t *testing.T) {
	cluster, err := harness.Start(t.Context(), harness.Options{CRDs: []string{}, Controllers: []string{}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	c, err := cluster.Client("chart-test")
	require.NoError(t, err)

	require.NoError(t, Install(t.Context(), c, allOn(t, DiskSync)...))
	require.NoError(t, Install(t.Context(), c, WithImportOnce))
	// One that lets the operator read its passwords.
	require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lab-a"}}))
	require.NoError(t, VM.Install(t.Context(), c, allOn(t, VM)...))
	require.NoError(t, VM.Install(t.Context(), c))
	// Where the policy is.
	require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "policies"}}))
	require.NoError(t, Workspace.Install(t.Context(), c, allOn(t, Workspace)...))
	require.NoError(t, Workspace.Install(t.Context(), c))

	for name, check := range map[string]func(*testing.T, client.Client){
		"an importer pod of ours runs once":                             importerRunsOnce,
		"other pods are left alone":                                     othersAreLeftAlone,
		"the operators' pods pass the restricted security standard":     podsAreRestricted,
		"the example of a virtual machine is accepted as it is written": exampleIsAccepted,
	} {
		t.Run(name, func(t *testing.T) { check(t, c) })
	}
}

func importerRunsOnce(t *testing.T, c client.Client) {
	pod := importerPod()
	require.NoError(t, c.Create(t.Context(), pod))
	assert.Equal(t, corev1.RestartPolicyNever, pod.Spec.RestartPolicy)
	assert.Zero(t, *pod.Spec.Priority)
}

func othersAreLeftAlone(t *testing.T, c client.Client) {
	for name, change := range map[string]func(*corev1.Pod){
		"an importer pod of somebody else":        func(p *corev1.Pod) { p.Spec.PriorityClassName = "" },
		"a pod of the class that is no importer":  func(p *corev1.Pod) { p.Labels = nil },
		"another pod of CDI, of the class or not": func(p *corev1.Pod) { p.Labels["cdi.kubevirt.io"] = "cdi-upload-server" },
	} {
		t.Run(name, func(t *testing.T) {
			pod := importerPod()
			change(pod)
			require.NoError(t, c.Create(t.Context(), pod))
			assert.Equal(t, corev1.RestartPolicyOnFailure, pod.Spec.RestartPolicy)
		})
	}
}

func podsAreRestricted(t *testing.T, c client.Client) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "restricted", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	require.NoError(t, c.Create(t.Context(), namespace))
	for _, chart := range []Chart{DiskSync, VM, Workspace} {
		t.Run(chart.Name, func(t *testing.T) {
			var deployment appsv1.Deployment
			require.True(t, find(t, renderOf(t, chart), "Deployment", &deployment))
			pod := func() *corev1.Pod {
				return &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, GenerateName: "operator-"},
					Spec:       *deployment.Spec.Template.Spec.DeepCopy(),
				}
			}
			require.NoError(t, c.Create(t.Context(), pod()))

			// The same pod with one thing less is refused: the standard is really enforced here.
			worse := pod()
			worse.Spec.SecurityContext.SeccompProfile = nil
			assert.True(t, apierrors.IsForbidden(c.Create(t.Context(), worse)))
		})
	}
}

// exampleIsAccepted by a strict server, which refuses unknown fields: the proposal's own words.
func exampleIsAccepted(t *testing.T, c client.Client) {
	root, err := harness.Root()
	require.NoError(t, err)
	raw, err := os.ReadFile(filepath.Join(root, "apis", "ot", "v1alpha1", "testdata", "virtualmachine.yaml"))
	require.NoError(t, err)
	objects, err := Objects(raw)
	require.NoError(t, err)
	require.Len(t, objects, 1)
	objects[0].SetNamespace(metav1.NamespaceDefault)
	strict := client.WithFieldValidation(c, metav1.FieldValidationStrict)
	// A definition takes a moment until it is served.
	require.EventuallyWithT(t, func(ct *assert.CollectT) {
		assert.NoError(ct, strict.Create(t.Context(), objects[0].DeepCopy(), client.DryRunAll))
	}, activeTimeout, activePoll)
}
