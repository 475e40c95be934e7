package wsscenario

import (
	"fmt"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// limit is how many workspaces may be provisioned at once, for the rest of the story.
func (w *world) limit(t *testing.T, n int) {
	t.Helper()
	w.policy(t, map[string]string{policy.KeyWorkspaceConcurrency: fmt.Sprint(n)})
}

// queued at a place, with nothing made for it.
func (w *world) queued(t *testing.T, ws *v1alpha1.Workspace, position int32) {
	t.Helper()
	w.await(t, ws, fmt.Sprint("at ", position), func(ws *v1alpha1.Workspace) bool {
		return ws.Status.Phase == v1alpha1.WorkspaceProvisioning && ws.Status.Queue != nil && ws.Status.Queue.Position == position &&
			reasonOf(ws, v1alpha1.ConditionAdmitted) == v1alpha1.WorkspaceQueued && containsAll(ws.Status.Message, fmt.Sprint(position))
	})
	assert.Equal(t, v1alpha1.WorkspaceQueued, reasonOf(ws, v1alpha1.ConditionReady))
	assert.Equal(t, "InProgress", kstatus(ws))
	assert.Nil(t, ws.Status.AdmittedAt)
	w.isNotThere(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ws.ChildNamespace()}})
}

func (w *world) admitted(t *testing.T, ws *v1alpha1.Workspace) {
	t.Helper()
	w.await(t, ws, "admitted", func(ws *v1alpha1.Workspace) bool {
		return meta.IsStatusConditionTrue(ws.Status.Conditions, v1alpha1.ConditionAdmitted) && ws.Status.Queue == nil
	})
}

// queue of workspaces under a limit that is raised and lowered: in the order of their creation.
func queue(t *testing.T, w *world) {
	w.limit(t, 1)
	t.Cleanup(func() { w.policy(t, nil) })
	farm := w.namespace(t)
	slow := w.createImage(t, image(farm, "slow", w.held))
	var all []*v1alpha1.Workspace
	for range 4 {
		all = append(all, w.create(t, workspace(machine("database", slow))))
		if len(all) == 1 {
			w.admitted(t, all[0])
		}
	}
	for i, ws := range all[1:] {
		w.queued(t, ws, int32(i+1)) //nolint:gosec // 3 at most
	}
	w.limit(t, 2)
	w.admitted(t, all[1])
	w.queued(t, all[2], 1) // the last one has moved, too, and is told when that makes a difference

	w.remove(t, all[2])
	w.queued(t, all[3], 1)
	w.limit(t, 1)
	w.waits(t, all[1], v1alpha1.WorkspaceImagePending, `virtual machine "database"`)
	w.remove(t, all[0])
	time.Sleep(w.settled / 3)
	w.queued(t, all[3], 1)

	w.letGo(slow)
	w.becomesReady(t, all[1])
	w.becomesReady(t, all[3])
}

// failedFrees: a workspace that has failed does not keep the others waiting, and what is lost later is repaired without a place.
func failedFrees(t *testing.T, w *world) {
	w.limit(t, 1)
	t.Cleanup(func() { w.policy(t, nil) })
	farm := w.namespace(t)
	slow := w.createImage(t, image(farm, "slow", w.held))
	bad := w.create(t, workspace(w.container("web", cannotBePulled)))
	w.admitted(t, bad)
	good := w.create(t, workspace(machine("database", slow)))
	w.fails(t, bad, v1alpha1.WorkspaceImagePullFailed)
	w.admitted(t, good)
	w.waits(t, good, v1alpha1.WorkspaceImagePending)
	w.change(t, bad, w.container("web"))
	w.becomesReady(t, bad) // though the only place is taken
	web := w.deployment(t, bad, "web")
	former := web.UID
	assert.NoError(t, w.client.Delete(t.Context(), web))
	w.eventually(t, web, "is made again", func() bool { return web.UID != former })
	w.becomesReady(t, bad)
	w.letGo(slow)
	w.becomesReady(t, good)
}

// badPolicy keeps the last good one.
func badPolicy(t *testing.T, w *world) {
	w.limit(t, 1)
	t.Cleanup(func() { w.policy(t, nil) })
	farm := w.namespace(t)
	slow := w.createImage(t, image(farm, "slow", w.held))
	first := w.create(t, workspace(machine("database", slow)))
	w.admitted(t, first)
	w.policy(t, map[string]string{policy.KeyWorkspaceConcurrency: "many"})
	second := w.create(t, workspace(machine("database", slow)))
	time.Sleep(w.settled / 3)
	w.queued(t, second, 1)
	w.letGo(slow)
	w.becomesReady(t, first)
	w.becomesReady(t, second)
}

// imagesQueue has two images of a workspace wait for others: the workspace says which, and where in the queue.
func imagesQueue(t *testing.T, w *world) {
	w.policy(t, map[string]string{policy.KeyConcurrency: "1"})
	t.Cleanup(func() { w.policy(t, nil) })
	farm := w.namespace(t)
	first := w.createImage(t, image(farm, "first", w.held))
	w.awaitImage(t, first, "syncing", func(i *v1alpha1.VMDiskImage) bool { return i.Status.Phase == v1alpha1.PhaseSyncing })
	database, analytics := w.createImage(t, image(farm, "database")), image(farm, "analytics")
	w.awaitImage(t, database, "queued", func(i *v1alpha1.VMDiskImage) bool { return i.Status.Phase == v1alpha1.PhaseQueued })
	w.createImage(t, analytics)
	ws := w.create(t, workspace(machine("database-vm", database), machine("analytics-vm", analytics), w.container("api-server")))
	w.waits(t, ws, v1alpha1.WorkspaceImagePending, `virtual machine "`, "is Queued", "ahead when it was queued")
	w.await(t, ws, "ready but for the images", func(ws *v1alpha1.Workspace) bool {
		return ws.Status.Containers == "1/1" && ws.Status.VirtualMachines == "0/2"
	})
	for _, vm := range ws.Status.ResourceStatus.VirtualMachines {
		assert.Equal(t, v1alpha1.PhaseQueued, vm.DiskImagePhase, vm.Name)
		assert.Contains(t, vm.Message, "ahead when it was queued", vm.Name)
	}
	assert.Nil(t, ws.Status.Deadline, "the images have their own time")
	w.letGo(first)
	w.becomesReady(t, ws)
}
