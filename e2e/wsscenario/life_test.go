package wsscenario

import (
	"context"
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// children are the objects that a workspace has for its entries, and its policy.
func children(ws *v1alpha1.Workspace) []client.Object {
	at := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: ws.ChildNamespace(), Name: name}
	}
	all := []client.Object{&networkingv1.NetworkPolicy{ObjectMeta: at(v1alpha1.WorkspacePolicyName(ws))}}
	if ws.OwnsNamespace() {
		all = append(all, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ws.ChildNamespace()}})
	}
	for _, entry := range ws.Spec.VirtualMachines {
		all = append(all, &v1alpha1.VirtualMachine{ObjectMeta: at(v1alpha1.WorkspaceChild(ws, entry.Name))})
	}
	for _, entry := range ws.Spec.Containers {
		all = append(all, &appsv1.Deployment{ObjectMeta: at(v1alpha1.WorkspaceChild(ws, entry.Name))})
		if len(entry.Ports) > 0 {
			all = append(all, &corev1.Service{ObjectMeta: at(v1alpha1.WorkspaceChild(ws, entry.Name))})
		}
	}
	return all
}

// nothingLeft looks for what a workspace that is gone may have left, in the whole cluster.
func (w *world) nothingLeft(t *testing.T, ws *v1alpha1.Workspace) {
	t.Helper()
	lists := []client.ObjectList{
		&corev1.NamespaceList{}, &v1alpha1.VirtualMachineList{}, &virtv1.VirtualMachineList{}, &virtv1.VirtualMachineInstanceList{},
		&appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}, &corev1.PodList{}, &corev1.ServiceList{}, &networkingv1.NetworkPolicyList{},
	}
	for _, list := range lists {
		require.NoError(t, w.client.List(t.Context(), list, client.MatchingLabels{v1alpha1.LabelWorkspaceUID: string(ws.UID)}))
		assert.Zero(t, meta.LenList(list), "%T", list)
	}
	if ws.OwnsNamespace() {
		w.isNotThere(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ws.ChildNamespace()}})
		return
	}
	w.isThere(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ws.ChildNamespace()}})
}

// remove a workspace, and look for what it has left.
func (w *world) remove(t *testing.T, ws *v1alpha1.Workspace) {
	t.Helper()
	require.NoError(t, w.client.Delete(t.Context(), ws.DeepCopy()))
	w.gone(t, ws.DeepCopy())
	w.nothingLeft(t, ws)
}

func runsAndGoes(t *testing.T, w *world) {
	farm := w.namespace(t)
	first, second := w.synced(t, farm, "database"), w.synced(t, farm, "analytics")
	ws := w.create(t, workspace(machine("database-vm", first), machine("analytics-vm", second), w.container("api-server")))
	w.becomesReady(t, ws)
	_, err := w.cluster.Kubectl(t.Context(), "", "wait", "--for=condition=Ready", "otws/"+ws.Name, "--timeout=10s")
	require.NoError(t, err)
	out, err := w.cluster.Kubectl(t.Context(), "", "get", "otws", ws.Name)
	require.NoError(t, err)
	assert.Regexp(t, ws.Name+` +Ready +2/2 +1/1 +True `, out)
	for _, kind := range []string{
		v1alpha1.ConditionAdmitted, v1alpha1.ConditionNamespaceReady, v1alpha1.ConditionVirtualMachinesReady, v1alpha1.ConditionContainersReady,
		v1alpha1.ConditionNetworkIsolated, v1alpha1.ConditionReady,
	} {
		assert.True(t, meta.IsStatusConditionTrue(ws.Status.Conditions, kind), "%s\n%s", kind, says(ws))
	}
	for _, vm := range ws.Status.ResourceStatus.VirtualMachines {
		assert.Equal(t, v1alpha1.VirtualMachineReady, vm.Phase, vm.Name)
		assert.Equal(t, v1alpha1.PhaseSucceeded, vm.DiskImagePhase, vm.Name)
	}
	assert.Equal(t, v1alpha1.WorkspaceContainerReady, ws.Status.ResourceStatus.Containers[0].Status)
	assert.NotNil(t, ws.Status.ProvisionedAt)
	assert.Contains(t, ws.Finalizers, v1alpha1.FinalizerWorkspace)
	for _, o := range children(ws) {
		w.isThere(t, o)
		assert.True(t, metav1.IsControlledBy(o, ws), "%T %s", o, o.GetName())
		assert.Equal(t, string(ws.UID), o.GetLabels()[v1alpha1.LabelWorkspaceUID], "%T %s", o, o.GetName())
	}
	w.reachable(t, ws, "api-server")
	w.reachable(t, ws, "database-vm")
	w.pods(t, ws, 3)
	w.counts(t, first, 1)
	w.told(t, ws, map[string]int{"Ready": 1})

	w.remove(t, ws)
	for _, i := range []*v1alpha1.VMDiskImage{first, second} {
		w.counts(t, i, 0)
		w.isThere(t, i)
	}
}

// pods demands so many pods in the workspace's own namespace, each of them behind its policy: virt-launchers, too.
func (w *world) pods(t *testing.T, ws *v1alpha1.Workspace, count int) {
	t.Helper()
	all, labelled := &corev1.PodList{}, &corev1.PodList{}
	require.NoError(t, w.client.List(t.Context(), all, client.InNamespace(ws.ChildNamespace())))
	require.NoError(t, w.client.List(t.Context(), labelled, client.InNamespace(ws.ChildNamespace()), client.MatchingLabels{v1alpha1.LabelWorkspaceUID: string(ws.UID)}))
	assert.Len(t, all.Items, count)
	assert.Len(t, labelled.Items, count)
}

// reachable says that the Service of a container leads to its pods.
func (w *world) reachable(t *testing.T, ws *v1alpha1.Workspace, entry string) {
	t.Helper()
	at := child(ws, entry)
	require.Eventually(t, func() bool {
		slices := &discoveryv1.EndpointSliceList{}
		require.NoError(t, w.client.List(t.Context(), slices, client.InNamespace(at.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: at.Name}))
		return len(slices.Items) == 1 && len(slices.Items[0].Endpoints) == 1
	}, w.patience, w.poll, "the Service %s has an endpoint", at.Name)
}

// empty has no members, and nothing to wait for.
func empty(t *testing.T, w *world) {
	ws := w.create(t, workspace())
	w.becomesReady(t, ws)
	assert.Equal(t, "0/0", ws.Status.VirtualMachines)
	assert.Equal(t, v1alpha1.WorkspaceNoMembers, reasonOf(ws, v1alpha1.ConditionContainersReady))
	w.isThere(t, children(ws)[0])
	w.change(t, ws, w.container("web", func(c *v1alpha1.WorkspaceContainer) { c.Replicas = new(int32(0)) }))
	w.becomesReady(t, ws)
	w.pods(t, ws, 0)
	w.remove(t, ws)
}

// templateShared: the image that the first workspace's template makes serves the second one, too.
func templateShared(t *testing.T, w *world) {
	farm := w.namespace(t)
	i := image(farm, "golden")
	template := func(s *v1alpha1.WorkspaceVirtualMachineSpec) {
		s.VMDiskImageTemplate = i.Spec.DeepCopy()
		s.VMDiskImageTemplate.AllowedNamespaces = nil
	}
	first := w.create(t, workspace(machine("database", i, template)))
	w.becomesReady(t, first)
	second := w.create(t, workspace(machine("database", i, template)))
	w.becomesReady(t, second)
	w.counts(t, i, 2)
	w.remove(t, first)
	w.becomesReady(t, second)
	w.remove(t, second)
	w.counts(t, i, 0)
	w.isThere(t, i)
}

// lost deletes an image's artifact, as a careless user does.
func (w *world) lost(t *testing.T, i *v1alpha1.VMDiskImage) {
	t.Helper()
	w.isThere(t, i)
	_, err := w.cluster.Kubectl(context.Background(), "", "delete", "--wait=false", "-n", i.Namespace, "volumesnapshot/"+i.Status.Artifact.Snapshot, "dv/"+i.Status.Artifact.DataVolume)
	require.NoError(t, err)
}

// imageLost while a workspace is being provisioned; it is synced again, and the workspace waits for it.
func imageLost(t *testing.T, w *world) {
	farm := w.namespace(t)
	i := w.synced(t, farm, "golden")
	slow := w.createImage(t, image(farm, "slow", w.held))
	ws := w.create(t, workspace(machine("slow", slow)))
	w.waits(t, ws, v1alpha1.WorkspaceImagePending)
	w.lost(t, i)
	w.change(t, ws, machine("web", i))
	w.letGo(slow)
	w.becomesReady(t, ws)
	w.counts(t, i, 1)
	dv := &cdiv1.DataVolumeList{}
	require.NoError(t, w.client.List(t.Context(), dv, client.InNamespace(ws.ChildNamespace())))
	assert.Len(t, dv.Items, 2)
}
