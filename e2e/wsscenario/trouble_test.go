package wsscenario

import (
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/sim/kubevirt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cannotBePulled is an image that no registry has. The stories' nodes know it by its name.
func cannotBePulled(c *v1alpha1.WorkspaceContainer) { c.Image = "localhost:1/no-such-image:1" }

func crashes(c *v1alpha1.WorkspaceContainer) { c.Command = []string{"/bin/false"} }

func memory(size string) func(*v1alpha1.WorkspaceContainer) {
	return func(c *v1alpha1.WorkspaceContainer) { c.Resources.Requests.Memory = new(resource.MustParse(size)) }
}

// failsAndRecovers has a container that fails the workspace, and leaves by itself when the spec is right.
func failsAndRecovers(how func(*v1alpha1.WorkspaceContainer), reason v1alpha1.WorkspaceReason, words ...string) story {
	return func(t *testing.T, w *world) {
		ws := w.create(t, workspace(w.container("good"), w.container("api-server", how)))
		w.fails(t, ws, reason, append(words, `container "api-server"`)...)
		assert.Equal(t, reason, reasonOf(ws, v1alpha1.ConditionContainersReady), says(ws))
		w.await(t, ws, "ready but for one", func(ws *v1alpha1.Workspace) bool { return ws.Status.Containers == "1/2" })
		at := ws.Status.ResourceStatus.Containers[1]
		assert.Equal(t, v1alpha1.WorkspaceContainerFailed, at.Status)
		assert.True(t, containsAll(at.Message, words...), at.Message)
		assert.Equal(t, v1alpha1.WorkspaceContainerReady, ws.Status.ResourceStatus.Containers[0].Status)
		for began := time.Now(); time.Since(began) < 3*w.debounce; time.Sleep(w.poll) {
			w.isThere(t, ws)
			require.Equal(t, v1alpha1.WorkspaceFailed, ws.Status.Phase, "it stays so, though the pods change all the time")
		}
		w.told(t, ws, map[string]int{string(reason): 1})
		w.change(t, ws, w.container("api-server"))
		w.becomesReady(t, ws)
		assert.Nil(t, ws.Status.TroubledSince)
		w.remove(t, ws)
	}
}

// quota of a namespace, at work.
func (w *world) quota(t *testing.T, namespace string, hard corev1.ResourceList) *corev1.ResourceQuota {
	t.Helper()
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tight"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	require.NoError(t, w.client.Create(t.Context(), q))
	w.eventually(t, q, "is at work", func() bool { return len(q.Status.Hard) == len(hard) })
	return q
}

// quotaRefuses is told of pods, by their ReplicaSet alone, and of a child itself; what frees the quota frees the workspace.
func quotaRefuses(what corev1.ResourceName, words ...string) story {
	return func(t *testing.T, w *world) {
		namespace := w.namespace(t)
		q := w.quota(t, namespace, corev1.ResourceList{what: resource.MustParse("0")})
		ws := w.create(t, workspace(within(namespace), w.container("api-server")))
		w.fails(t, ws, v1alpha1.WorkspaceQuotaExceeded, append(words, "exceeded quota: tight")...)
		require.NoError(t, w.client.Delete(t.Context(), q))
		w.becomesReady(t, ws)
		w.remove(t, ws)
	}
}

func machineFails(t *testing.T, w *world) {
	farm := w.namespace(t)
	bad := w.createImage(t, image(farm, "bad", w.missing))
	ws := w.create(t, workspace(machine("good", w.synced(t, farm, "golden")), machine("database-vm", bad), w.container("web")))
	w.fails(t, ws, v1alpha1.WorkspaceVirtualMachineFailed, `virtual machine "database-vm"`, "SourceNotFound")
	assert.Equal(t, v1alpha1.PhaseFailed, ws.Status.ResourceStatus.VirtualMachines[1].DiskImagePhase)
	w.await(t, ws, "ready but for one", func(ws *v1alpha1.Workspace) bool {
		return ws.Status.VirtualMachines == "1/2" && ws.Status.Containers == "1/1"
	})
	before := bad.DeepCopy()
	bad.Spec.SourceType, bad.Spec.URL = v1alpha1.SourceBlank, ""
	require.NoError(t, w.client.Patch(t.Context(), bad, client.MergeFrom(before)))
	w.becomesReady(t, ws)
	w.told(t, ws, map[string]int{string(v1alpha1.WorkspaceVirtualMachineFailed): 1, "Ready": 1})
}

// worstFirst: what has failed is told before what waits.
func worstFirst(t *testing.T, w *world) {
	farm := w.namespace(t)
	slow := w.createImage(t, image(farm, "slow", w.held))
	ws := w.create(t, workspace(machine("slow", slow), w.container("web", cannotBePulled)))
	w.fails(t, ws, v1alpha1.WorkspaceImagePullFailed, `container "web"`)
	w.change(t, ws, w.container("web"))
	w.waits(t, ws, v1alpha1.WorkspaceImagePending, `virtual machine "slow"`)
	w.letGo(slow)
	w.becomesReady(t, ws)
}

// imageTakesItsTime: what a workspace waits for while an image is synced does not count towards its timeout.
func imageTakesItsTime(t *testing.T, w *world) {
	farm := w.namespace(t)
	slow := w.createImage(t, image(farm, "slow", w.held))
	ws := w.create(t, workspace(machine("database", slow), timeout(30*time.Second)))
	w.waits(t, ws, v1alpha1.WorkspaceImagePending, `virtual machine "database"`)
	assert.Nil(t, ws.Status.Deadline, "the image has its own time")
	w.letGo(slow)
	w.becomesReady(t, ws)
	assert.Nil(t, ws.Status.Deadline)
}

func timesOut(t *testing.T, w *world) {
	farm := w.namespace(t)
	ws := workspace(machine("database", w.synced(t, farm, "golden")), timeout(3*time.Second))
	w.behave.guest(t, ws, "database", kubevirt.Behaviour{NeverRuns: true})
	w.create(t, ws)
	w.fails(t, ws, v1alpha1.WorkspaceProvisioningTimedOut, `virtual machine "database"`)
	assert.True(t, meta.IsStatusConditionTrue(ws.Status.Conditions, v1alpha1.ConditionAdmitted), says(ws))
	w.behave.guest(t, ws, "database", kubevirt.Behaviour{})
	w.becomesReady(t, ws)
}

// guestCrashes after the workspace was Ready: it fails, and comes back, without a place in the queue.
func guestCrashes(t *testing.T, w *world) {
	farm := w.namespace(t)
	ws := w.create(t, workspace(machine("database", w.synced(t, farm, "golden"))))
	w.becomesReady(t, ws)
	since := ws.Status.ProvisionedAt
	w.behave.guest(t, ws, "database", kubevirt.Behaviour{CrashLoop: true})
	_, err := w.cluster.Kubectl(t.Context(), "", "delete", "vmi/database", "-n", ws.ChildNamespace(), "--wait=false")
	require.NoError(t, err)
	w.fails(t, ws, v1alpha1.WorkspaceVirtualMachineFailed, `virtual machine "database"`)
	w.behave.guest(t, ws, "database", kubevirt.Behaviour{})
	w.becomesReady(t, ws)
	assert.Equal(t, since.UTC(), ws.Status.ProvisionedAt.UTC())
}
