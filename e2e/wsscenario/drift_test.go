package wsscenario

import (
	"strconv"
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// eventually reads an object until it is as it should be.
func (w *world) eventually(t *testing.T, o client.Object, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		return w.client.Get(t.Context(), client.ObjectKeyFromObject(o), o) == nil && holds()
	}, w.patience, w.poll, "%T %s: %s", o, o.GetName(), what)
}

// meddle changes an object, as somebody does who may.
func (w *world) meddle(t *testing.T, o client.Object, change func()) {
	t.Helper()
	w.isThere(t, o)
	before, is := o.DeepCopyObject().(client.Object)
	require.True(t, is)
	change()
	require.NoError(t, w.client.Patch(t.Context(), o, client.MergeFrom(before)))
}

// drift: what somebody has changed or deleted of a workspace is put right.
func drift(t *testing.T, w *world) {
	farm := w.namespace(t)
	ws := w.create(t, workspace(machine("database", w.synced(t, farm, "golden")), w.container("web")))
	w.becomesReady(t, ws)
	for _, o := range children(ws) {
		if _, is := o.(*corev1.Namespace); is {
			continue
		}
		w.isThere(t, o)
		former := o.GetUID()
		require.NoError(t, w.client.Delete(t.Context(), o))
		w.eventually(t, o, "is made again", func() bool { return o.GetUID() != former })
		w.becomesReady(t, ws)
	}

	policy := &networkingv1.NetworkPolicy{}
	policy.Namespace, policy.Name = ws.ChildNamespace(), v1alpha1.WorkspacePolicyName(ws)
	w.meddle(t, policy, func() { policy.Spec.Ingress = append(policy.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{}) })
	w.eventually(t, policy, "lets nobody in", func() bool { return len(policy.Spec.Ingress) == 1 })
	w.meddle(t, policy, func() { policy.Spec.PolicyTypes = policy.Spec.PolicyTypes[:1] })
	w.eventually(t, policy, "is about both directions", func() bool { return len(policy.Spec.PolicyTypes) == 2 })

	web := w.deployment(t, ws, "web")
	w.meddle(t, web, func() {
		web.Spec.Replicas, web.Spec.Template.Spec.Containers[0].Image = new(int32(3)), "somebody.test/else:1"
	})
	w.eventually(t, web, "is as it was", func() bool { return *web.Spec.Replicas == 1 && web.Spec.Template.Spec.Containers[0].Image == w.runs })

	service := &corev1.Service{}
	service.Namespace, service.Name = ws.ChildNamespace(), "web"
	w.meddle(t, service, func() { service.Spec.Ports[0].Port, service.Spec.Selector = 81, map[string]string{"app": "other"} })
	w.eventually(t, service, "is as it was", func() bool { return service.Spec.Ports[0].Port == 8080 && service.Spec.Selector["app"] == "" })

	vm := w.virtualMachine(t, ws, "database")
	w.meddle(t, vm, func() { vm.Spec.Resources.Memory = new(resource.MustParse("96Mi")) })
	w.eventually(t, vm, "is as it was", func() bool { return vm.Spec.Resources.Memory.String() == "64Mi" })

	namespace := &corev1.Namespace{}
	namespace.Name = ws.ChildNamespace()
	const level = "pod-security.kubernetes.io/enforce"
	w.isThere(t, namespace)
	asked := namespace.Labels[level]
	assert.NotEmpty(t, asked)
	w.meddle(t, namespace, func() { namespace.Labels[level] = "privileged" })
	w.eventually(t, namespace, "is as strict as it was", func() bool { return namespace.Labels[level] == asked })
	w.becomesReady(t, ws)
	w.remove(t, ws)
}

// policyFirst: an operator that finds neither the policy nor what it isolates makes the policy first.
func policyFirst(t *testing.T, w *world) {
	farm := w.namespace(t)
	ws := w.create(t, workspace(machine("database", w.synced(t, farm, "golden")), w.container("web")))
	w.becomesReady(t, ws)
	w.workspaces.Kill()
	for _, o := range children(ws) {
		if _, is := o.(*corev1.Namespace); !is {
			w.isThere(t, o)
			require.NoError(t, w.client.Delete(t.Context(), o.DeepCopyObject().(client.Object))) //nolint:forcetypeassert // a copy of one
			w.gone(t, o)
		}
	}
	w.startWorkspaces(t)
	w.awaitReady(t)
	w.eventually(t, ws, "is provisioned again", func() bool {
		return ws.Status.Phase != v1alpha1.WorkspaceReady || w.virtualMachineIsThere(t, ws, "database")
	})
	w.becomesReady(t, ws)
	policy := &networkingv1.NetworkPolicy{}
	policy.Namespace, policy.Name = ws.ChildNamespace(), v1alpha1.WorkspacePolicyName(ws)
	w.isThere(t, policy)
	for _, o := range []client.Object{w.virtualMachine(t, ws, "database"), w.deployment(t, ws, "web")} {
		assert.Less(t, revision(t, policy), revision(t, o), "%T: it is not written before its policy", o)
	}
}

func (w *world) virtualMachineIsThere(t *testing.T, ws *v1alpha1.Workspace, entry string) bool {
	t.Helper()
	return w.client.Get(t.Context(), child(ws, entry), &v1alpha1.VirtualMachine{}) == nil
}

// revision of etcd that an object was last written in.
func revision(t *testing.T, o client.Object) int {
	t.Helper()
	number, err := strconv.Atoi(o.GetResourceVersion())
	require.NoError(t, err)
	return number
}
