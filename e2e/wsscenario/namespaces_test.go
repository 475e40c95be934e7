package wsscenario

import (
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sharedNamespace has two workspaces with entries of the same names, and things of somebody else.
func sharedNamespace(t *testing.T, w *world) {
	namespace, farm := w.namespace(t), w.namespace(t)
	i := w.synced(t, farm, "golden")
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "somebodys"}}
	require.NoError(t, w.client.Create(t.Context(), foreign))
	first := w.create(t, workspace(within(namespace), machine("database", i), w.container("web")))
	second := w.create(t, workspace(within(namespace), machine("database", i), w.container("web")))
	w.becomesReady(t, first)
	w.becomesReady(t, second)
	assert.False(t, first.Status.Namespace.Owned)
	assert.Equal(t, namespace, first.Status.Namespace.Name)
	kept := map[client.Object]client.ObjectKey{}
	for _, o := range children(second) {
		w.isThere(t, o)
		assert.True(t, metav1.IsControlledBy(o, second), "%T %s", o, o.GetName())
		kept[o] = client.ObjectKeyFromObject(o)
	}
	w.reachable(t, second, "web")
	w.remove(t, first)
	for o := range kept {
		uid := o.GetUID()
		w.isThere(t, o)
		assert.Equal(t, uid, o.GetUID(), "%T %s", o, o.GetName())
	}
	w.becomesReady(t, second)
	w.remove(t, second)
	w.isThere(t, foreign)
}

// namespaceMissing is waited for, and not made.
func namespaceMissing(t *testing.T, w *world) {
	namespace := workspace().Name + "-target"
	ws := w.create(t, workspace(within(namespace), w.container("web")))
	w.await(t, ws, "told", func(ws *v1alpha1.Workspace) bool {
		return reasonOf(ws, v1alpha1.ConditionNamespaceReady) == v1alpha1.WorkspaceNamespaceMissing && containsAll(ws.Status.Message, namespace)
	})
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{labelTest: "story"}}}
	time.Sleep(w.settled / 3)
	w.isNotThere(t, o)
	require.NoError(t, w.client.Create(t.Context(), o))
	t.Cleanup(func() { _ = w.client.Delete(t.Context(), o) })
	w.becomesReady(t, ws)
	w.remove(t, ws)
	require.NoError(t, w.client.Delete(t.Context(), o))
}

// namespaceTaken: the name of the workspace's own namespace is somebody's.
func namespaceTaken(t *testing.T, w *world) {
	ws := workspace(w.container("web"))
	foreign := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.WorkspaceNamespace(ws.Name), Labels: map[string]string{labelTest: "story"}}}
	require.NoError(t, w.client.Create(t.Context(), foreign))
	w.create(t, ws)
	w.await(t, ws, "told", func(ws *v1alpha1.Workspace) bool {
		return reasonOf(ws, v1alpha1.ConditionNamespaceReady) == v1alpha1.WorkspaceNamespaceTaken && containsAll(ws.Status.Message, foreign.Name)
	})
	assert.NotEqual(t, v1alpha1.WorkspaceReady, ws.Status.Phase)
	time.Sleep(w.settled / 3)
	w.untouched(t, foreign)
	w.isNotThere(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: foreign.Name, Name: "web"}})
	require.NoError(t, w.client.Delete(t.Context(), foreign.DeepCopy()))
	w.gone(t, foreign)
	w.becomesReady(t, ws)
	w.remove(t, ws)
}

// namespaceTakenAndDeleted: what was never the workspace's does not go with it.
func namespaceTakenAndDeleted(t *testing.T, w *world) {
	ws := workspace(w.container("web"))
	foreign := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.WorkspaceNamespace(ws.Name), Labels: map[string]string{labelTest: "story"}}}
	require.NoError(t, w.client.Create(t.Context(), foreign))
	w.create(t, ws)
	w.await(t, ws, "told", func(ws *v1alpha1.Workspace) bool {
		return reasonOf(ws, v1alpha1.ConditionNamespaceReady) == v1alpha1.WorkspaceNamespaceTaken
	})
	require.NoError(t, w.client.Delete(t.Context(), ws.DeepCopy()))
	w.gone(t, ws.DeepCopy())
	w.untouched(t, foreign)
	require.NoError(t, w.client.Delete(t.Context(), foreign))
}

// untouched says that the operator has not written an object, nor made it its own.
func (w *world) untouched(t *testing.T, o client.Object) {
	t.Helper()
	uid := o.GetUID()
	w.isThere(t, o)
	assert.Equal(t, uid, o.GetUID())
	assert.Nil(t, o.GetDeletionTimestamp())
	assert.Empty(t, o.GetOwnerReferences())
	for _, field := range o.GetManagedFields() {
		assert.NotEqual(t, "workspace-operator", field.Manager)
	}
}

// nameTaken: objects of somebody else have the names of children.
func nameTaken(t *testing.T, w *world) {
	namespace, farm := w.namespace(t), w.namespace(t)
	ws := workspace(within(namespace), machine("database", w.synced(t, farm, "golden")), w.container("web"))
	labels := map[string]string{"somebody": "else"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.WorkspaceChild(ws, "web")},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "other", Image: w.runs}}}},
		},
	}
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.WorkspacePolicyName(ws)}}
	policy.Spec.PodSelector.MatchLabels = labels
	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.WorkspaceChild(ws, "database")}}
	vm.Spec.VMDiskImageRef.Name = "nosuch"
	for _, foreign := range []client.Object{policy, deployment, vm} {
		require.NoError(t, w.client.Create(t.Context(), foreign))
	}
	w.create(t, ws)
	for _, foreign := range []client.Object{policy, deployment, vm} {
		w.await(t, ws, "told", func(ws *v1alpha1.Workspace) bool {
			return reasonOf(ws, v1alpha1.ConditionReady) == v1alpha1.WorkspaceNameTaken && ws.Status.Phase != v1alpha1.WorkspaceReady
		})
		time.Sleep(w.settled / 3)
		w.untouched(t, foreign)
		require.NoError(t, w.client.Delete(t.Context(), foreign))
		w.gone(t, foreign)
	}
	w.becomesReady(t, ws)
	w.remove(t, ws)
}

// foreignGoesNot: a workspace that is deleted leaves alone what has the names of its children.
func foreignGoesNot(t *testing.T, w *world) {
	namespace := w.namespace(t)
	ws := workspace(within(namespace), w.container("web"))
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.WorkspaceChild(ws, "web")}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}},
	}
	require.NoError(t, w.client.Create(t.Context(), service))
	w.create(t, ws)
	w.await(t, ws, "told", func(ws *v1alpha1.Workspace) bool {
		return reasonOf(ws, v1alpha1.ConditionReady) == v1alpha1.WorkspaceNameTaken
	})
	w.remove(t, ws)
	w.untouched(t, service)
}

// notIsolated has no policy, and gets one when it is to be isolated.
func notIsolated(t *testing.T, w *world) {
	ws := w.create(t, workspace(w.container("web"), func(ws *v1alpha1.Workspace) {
		ws.Spec.Network = &v1alpha1.WorkspaceNetwork{Isolate: new(false)}
	}))
	w.becomesReady(t, ws)
	assert.Equal(t, v1alpha1.WorkspaceNotIsolated, reasonOf(ws, v1alpha1.ConditionNetworkIsolated))
	assert.Equal(t, metav1.ConditionFalse, ws.Status.Isolated)
	policies := &networkingv1.NetworkPolicyList{}
	require.NoError(t, w.client.List(t.Context(), policies, client.InNamespace(ws.ChildNamespace())))
	assert.Empty(t, policies.Items)
	w.change(t, ws, func(ws *v1alpha1.Workspace) { ws.Spec.Network.Isolate = new(true) })
	w.becomesReady(t, ws)
	assert.Equal(t, v1alpha1.WorkspaceIsolated, reasonOf(ws, v1alpha1.ConditionNetworkIsolated))
	w.isThere(t, children(ws)[0])
	w.change(t, ws, func(ws *v1alpha1.Workspace) { ws.Spec.Network.Isolate = new(false) })
	w.becomesReady(t, ws)
	w.gone(t, children(ws)[0])
}

// secondaryNetworks are outside of every policy, and the workspace says so.
func secondaryNetworks(t *testing.T, w *world) {
	namespace, farm := w.namespace(t), w.namespace(t)
	network := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "spec": map[string]any{"config": `{"cniVersion":"0.3.1","type":"bridge"}`},
	}}
	network.SetNamespace(namespace)
	network.SetName("lan")
	require.NoError(t, w.client.Create(t.Context(), network))
	onLAN := func(s *v1alpha1.WorkspaceVirtualMachineSpec) {
		s.Interfaces = []v1alpha1.VirtualMachineInterface{{Network: "lan", IPAddress: "10.10.0.161/24"}}
	}
	ws := w.create(t, workspace(within(namespace), machine("database", w.synced(t, farm, "golden"), onLAN)))
	w.becomesReady(t, ws)
	assert.Equal(t, v1alpha1.WorkspaceSecondaryNetworks, reasonOf(ws, v1alpha1.ConditionNetworkIsolated))
	assert.Equal(t, metav1.ConditionFalse, ws.Status.Isolated)
	assert.Contains(t, says(ws), "lan")
	assert.Contains(t, says(ws), "database")
}
