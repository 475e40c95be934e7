package chart

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/pelotech/open-terrain/apis/apitest"
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestSchemaOfWorkspaceOperatorRefuses(t *testing.T) {
	for name, test := range map[string]struct{ value, want string }{
		"the tag latest":                    {`image.tag="latest"`, "image/tag"},
		"a key that does not exist":         {`replicaCount=1`, "replicaCount"},
		"a key of the other operator":       {`policy={"concurrency":2}`, "policy"},
		"a word for a switch":               {`authorCheck.enabled="yes"`, "authorCheck/enabled"},
		"a word for the other switch":       {`namespaceGuard.enabled="no"`, "namespaceGuard/enabled"},
		"a word for the third switch":       {`childrenGuard.enabled=1`, "childrenGuard/enabled"},
		"a namespace that cannot be":        {`imageNamespace="VM_Images"`, "imageNamespace"},
		"no namespace for the policy":       {`policyNamespace=""`, "policyNamespace"},
		"a level that Pod Security has not": {`podSecurity="lax"`, "podSecurity"},
		"a DNS without labels":              {`dns.labels=""`, "dns/labels"},
		"a name for an address":             {`dns.cidrs=["node-local-dns"]`, "dns/cidrs/0"},
		"an address without a prefix":       {`metadataCIDRs=["10.0.0.1"]`, "metadataCIDRs/0"},
		"less time to stop than it takes":   {`terminationGracePeriodSeconds=10`, "terminationGracePeriodSeconds"},
		"a negative number of replicas":     {`replicas=-1`, "replicas"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Workspace.Render(t.Context(), test.value)
			assert.ErrorContains(t, err, test.want)
		})
	}
}

func TestRenderingOfWorkspaceOperator(t *testing.T) {
	t.Run("without the operator there is nothing of its pods, but all that it needs", func(t *testing.T) {
		objects := renderOf(t, Workspace, WithoutOperator)
		for _, kind := range []string{"Deployment", "PodDisruptionBudget", "Service", "NetworkPolicy"} {
			assert.False(t, find(t, objects, kind, nil), kind)
		}
		for _, kind := range []string{"ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding", "CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
			assert.True(t, find(t, objects, kind, nil), kind)
		}
	})
	t.Run("it brings the definition of Workspace alone, kept by default, and left out on demand", func(t *testing.T) {
		var names []string
		for _, object := range renderOf(t, Workspace) {
			if object.GetKind() == "CustomResourceDefinition" {
				names = append(names, object.GetName())
				assert.Equal(t, "keep", object.GetAnnotations()["helm.sh/resource-policy"])
			}
		}
		assert.Equal(t, []string{"workspaces.pelotech.ot"}, names)
		assert.False(t, find(t, renderOf(t, Workspace, "crds.install=false"), "CustomResourceDefinition", nil))
	})
	t.Run("without author check and guards there is no policy", func(t *testing.T) {
		objects := renderOf(t, Workspace, "authorCheck.enabled=false", "namespaceGuard.enabled=false", "childrenGuard.enabled=false")
		assert.False(t, find(t, objects, "ValidatingAdmissionPolicy", nil))
		assert.False(t, find(t, objects, "ValidatingAdmissionPolicyBinding", nil))
	})
	t.Run("everything is named after the release, or as it is told", func(t *testing.T) {
		for _, object := range renderOf(t, Workspace) {
			if object.GetKind() != "CustomResourceDefinition" {
				assert.True(t, strings.HasPrefix(object.GetName(), "workspace-operator"), "%s %s", object.GetKind(), object.GetName())
			}
		}
		var deployment appsv1.Deployment
		require.True(t, find(t, renderOf(t, Workspace, allOn(t, Workspace)...), "Deployment", &deployment))
		assert.Equal(t, "ot-ws", deployment.Name)
		assert.Equal(t, "ot-ws-account", deployment.Spec.Template.Spec.ServiceAccountName)
		assert.Contains(t, deployment.Spec.Template.Spec.Containers[0].Args, "--dns-labels=app=dns,tier=node")
	})
}

func TestWorkspaceOperatorKnowsTheFlagsOfItsDeployment(t *testing.T) {
	path, err := harness.BuildOperator(t.Context(), Workspace.Name)
	require.NoError(t, err)
	// flag exits with 0 for -help.
	usage, err := exec.CommandContext(t.Context(), path, "-help").CombinedOutput()
	require.NoError(t, err)

	var deployment appsv1.Deployment
	require.True(t, find(t, renderOf(t, Workspace, allOn(t, Workspace)...), "Deployment", &deployment))
	for _, arg := range deployment.Spec.Template.Spec.Containers[0].Args {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		assert.Regexp(t, `(?m)^  -`+name+`( |$)`, string(usage), arg)
	}
}

// Nothing is asked for that is not needed: no wildcard, no Secret, and of ConfigMaps and Leases only those of two namespaces.
func TestRightsOfWorkspaceOperator(t *testing.T) {
	where := map[string][]string{}
	for _, object := range renderOf(t, Workspace) {
		if object.GetKind() != "ClusterRole" && object.GetKind() != "Role" {
			continue
		}
		var role rbacv1.ClusterRole
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role))
		for _, rule := range role.Rules {
			for _, all := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs} {
				assert.NotContains(t, all, "*", role.Name)
			}
			for _, resource := range rule.Resources {
				where[resource] = append(where[resource], object.GetNamespace())
			}
			if object.GetNamespace() == "sync-operator" {
				assert.Equal(t, []string{otv1alpha1.PolicyConfigMapName}, rule.ResourceNames)
				assert.Equal(t, []string{"get", "list", "watch"}, rule.Verbs)
			}
		}
	}
	assert.Empty(t, where["secrets"])
	assert.Empty(t, where["roles"])
	assert.Equal(t, []string{"sync-operator"}, where["configmaps"])
	assert.Equal(t, []string{Workspace.Namespace}, where["leases"])
}

// TestGuards lets the operator's own ServiceAccount try what its rights would allow.
func TestGuards(t *testing.T) {
	own, err := harness.OwnCRDs()
	require.NoError(t, err)
	cluster, err := harness.Start(t.Context(), harness.Options{CRDs: []string{own}, Controllers: []string{}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	c, err := cluster.Client("chart-test")
	require.NoError(t, err)
	require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}), "where the policy is")
	require.NoError(t, Workspace.Install(t.Context(), c, WithoutOperator))
	operator := person{name: "system:serviceaccount:" + Workspace.Namespace + ":" + Workspace.Name}.client(t, cluster)
	require.EventuallyWithT(t, func(ct *assert.CollectT) {
		err := operator.Create(t.Context(), spaceNamespace("await", ""), client.DryRunAll)
		assert.ErrorContains(ct, err, "namespace-guard")
		assert.ErrorContains(ct, operator.Create(t.Context(), childService("default", "await", ""), client.DryRunAll), "children-guard")
	}, activeTimeout, activePoll)

	for name, check := range map[string]func(*testing.T, client.Client, client.Client){
		"namespaces that it makes":    guardedCreations,
		"namespaces that it deletes":  guardedDeletions,
		"namespaces that it changes":  guardedChanges,
		"namespaces that others make": othersMakeNamespaces,
		"children that it makes":      guardedChildren,
		"what others have made":       guardedFromOthers,
	} {
		t.Run(name, func(t *testing.T) { check(t, c, operator) })
	}
}

// spaceNamespace is the namespace of a workspace of that UID; with none it is nobody's.
func spaceNamespace(name string, uid types.UID) *corev1.Namespace {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if uid != "" {
		namespace.Labels = map[string]string{otv1alpha1.LabelWorkspaceUID: string(uid)}
		namespace.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: otv1alpha1.SchemeGroupVersion.String(), Kind: "Workspace", Name: "w", UID: uid, Controller: new(true),
		}}
	}
	return namespace
}

func guardedCreations(t *testing.T, _, operator client.Client) {
	require.NoError(t, operator.Create(t.Context(), spaceNamespace("ws-made", "u-1")))
	for name, change := range map[string]func(*corev1.Namespace){
		"nobody's":                 func(n *corev1.Namespace) { n.OwnerReferences = nil },
		"of another kind's":        func(n *corev1.Namespace) { n.OwnerReferences[0].Kind = "VirtualMachine" },
		"of a kind of another API": func(n *corev1.Namespace) { n.OwnerReferences[0].APIVersion = "kubeflow.org/v1" },
		"not controlled":           func(n *corev1.Namespace) { n.OwnerReferences[0].Controller = nil },
		"without the label":        func(n *corev1.Namespace) { n.Labels = nil },
		"with another's label":     func(n *corev1.Namespace) { n.Labels[otv1alpha1.LabelWorkspaceUID] = "u-2" },
		"of another name":          func(n *corev1.Namespace) { n.Name = "kube-extra" },
	} {
		t.Run(name, func(t *testing.T) {
			namespace := spaceNamespace("ws-other", "u-1")
			change(namespace)
			err := operator.Create(t.Context(), namespace)
			assert.True(t, apierrors.IsForbidden(err), "%v", err)
			assert.ErrorContains(t, err, "pelotech.ot/namespace-guard")
		})
	}
}

func guardedDeletions(t *testing.T, c, operator client.Client) {
	labelled := spaceNamespace("ws-labelled", "u-3")
	labelled.OwnerReferences = nil
	for _, namespace := range []*corev1.Namespace{spaceNamespace("somebodys", ""), labelled} {
		require.NoError(t, c.Create(t.Context(), namespace))
		assert.ErrorContains(t, operator.Delete(t.Context(), namespace), "namespace-guard", namespace.Name)
	}
	own := spaceNamespace("ws-goes", "u-4")
	require.NoError(t, operator.Create(t.Context(), own))
	require.NoError(t, operator.Delete(t.Context(), own))
}

func guardedChanges(t *testing.T, c, operator client.Client) {
	foreign := spaceNamespace("ws-foreign", "")
	require.NoError(t, c.Create(t.Context(), foreign))
	taken := spaceNamespace(foreign.Name, "u-5")
	patch := client.MergeFrom(foreign)
	assert.ErrorContains(t, operator.Patch(t.Context(), taken, patch), "namespace-guard", "it is not taken over")

	own := spaceNamespace("ws-own", "u-6")
	require.NoError(t, operator.Create(t.Context(), own))
	right := own.DeepCopy()
	right.Labels["pod-security.kubernetes.io/enforce"] = "baseline"
	require.NoError(t, operator.Patch(t.Context(), right, client.MergeFrom(own)))
	given := own.DeepCopy()
	given.OwnerReferences = nil
	assert.ErrorContains(t, operator.Patch(t.Context(), given, client.MergeFrom(own)), "namespace-guard")
}

func othersMakeNamespaces(t *testing.T, c, _ client.Client) {
	namespace := spaceNamespace("anybodys", "")
	require.NoError(t, c.Create(t.Context(), namespace))
	require.NoError(t, c.Delete(t.Context(), namespace))
}

// childService is a child of a workspace of that UID; with none it is nobody's.
func childService(namespace, name string, uid types.UID) *corev1.Service {
	meta := spaceNamespace(name, uid).ObjectMeta
	meta.Namespace = namespace
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: meta, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone},
	}
}

func applied(t *testing.T, object client.Object) runtime.ApplyConfiguration {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	require.NoError(t, err)
	return client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: fields})
}

func guardedChildren(t *testing.T, _, operator client.Client) {
	owner := client.FieldOwner("workspace-operator")
	own := childService("default", "own", "u-7")
	require.NoError(t, operator.Apply(t.Context(), applied(t, own), owner))
	own.Labels["more"] = "labels"
	require.NoError(t, operator.Apply(t.Context(), applied(t, own), owner))
	for name, change := range map[string]func(*corev1.Service){
		"nobody's":             func(s *corev1.Service) { s.OwnerReferences = nil },
		"not controlled":       func(s *corev1.Service) { s.OwnerReferences[0].Controller = nil },
		"with another's label": func(s *corev1.Service) { s.Labels[otv1alpha1.LabelWorkspaceUID] = "u-8" },
	} {
		t.Run(name, func(t *testing.T) {
			other := childService("default", "other", "u-7")
			change(other)
			err := operator.Apply(t.Context(), applied(t, other), owner)
			assert.True(t, apierrors.IsForbidden(err), "%v", err)
			assert.ErrorContains(t, err, "pelotech.ot/children-guard")
		})
	}
	given := childService("default", "own", "u-7")
	given.OwnerReferences[0].UID = "u-8"
	assert.ErrorContains(t, operator.Apply(t.Context(), applied(t, given), owner, client.ForceOwnership), "children-guard", "it is not given away")
	require.NoError(t, operator.Delete(t.Context(), childService("default", "own", "u-7")))
}

func guardedFromOthers(t *testing.T, c, operator client.Client) {
	meta := metav1.ObjectMeta{Namespace: "default", Name: "somebodys"}
	selector := map[string]string{"app": "a"}
	for _, object := range []client.Object{
		childService("default", "somebodys", ""),
		&networkingv1.NetworkPolicy{ObjectMeta: meta},
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: selector}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
			},
		}},
		apitest.VirtualMachine("somebodys", func(vm *otv1alpha1.VirtualMachine) {
			vm.ObjectMeta = meta
		}),
	} {
		require.NoError(t, c.Create(t.Context(), object))
		changed := object.DeepCopyObject().(client.Object)
		changed.SetOwnerReferences(spaceNamespace("", "u-9").OwnerReferences)
		assert.ErrorContains(t, operator.Patch(t.Context(), changed, client.MergeFrom(object)), "children-guard", "%T is not taken over", object)
		assert.ErrorContains(t, operator.Delete(t.Context(), object), "children-guard", "%T is not deleted", object)
	}
}
