package wsscenario

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deletedIn has a workspace deleted in one of its states: nothing is left, and the images are as they were.
func deletedIn(state func(*testing.T, *world, *v1alpha1.Workspace), how func(w *world) func(*v1alpha1.WorkspaceContainer), held bool) story {
	return func(t *testing.T, w *world) {
		farm := w.namespace(t)
		i := image(farm, "golden")
		if held {
			w.held(i)
			w.createImage(t, i)
		} else {
			w.synced(t, farm, "golden")
		}
		ws := w.create(t, workspace(machine("database", i), w.container("web", how(w))))
		state(t, w, ws)
		w.remove(t, ws)
		w.counts(t, i, 0)
	}
}

func asItIs(*world) func(*v1alpha1.WorkspaceContainer) {
	return func(*v1alpha1.WorkspaceContainer) {}
}

func deletions() map[string]story {
	broken := func(*world) func(*v1alpha1.WorkspaceContainer) { return cannotBePulled }
	return map[string]story{
		"a workspace that is deleted at once leaves nothing": deletedIn(func(*testing.T, *world, *v1alpha1.Workspace) {}, asItIs, false),
		"one that waits for an image leaves nothing": deletedIn(func(t *testing.T, w *world, ws *v1alpha1.Workspace) {
			t.Helper()
			w.waits(t, ws, v1alpha1.WorkspaceImagePending)
		}, asItIs, true),
		"one that has failed leaves nothing": deletedIn(func(t *testing.T, w *world, ws *v1alpha1.Workspace) {
			t.Helper()
			w.fails(t, ws, v1alpha1.WorkspaceImagePullFailed)
		}, broken, false),
		"one whose namespace is being made leaves nothing": deletedIn(func(t *testing.T, w *world, ws *v1alpha1.Workspace) {
			t.Helper()
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ws.ChildNamespace()}}
			w.eventually(t, namespace, "is there", func() bool { return true })
		}, asItIs, false),
	}
}

// ends notes the revision in which each object of a kind is gone.
type ends struct {
	mu sync.Mutex
	at map[string]int
}

func (w *world) ends(t *testing.T, list client.ObjectList, namespace string) *ends {
	t.Helper()
	changes, err := w.client.Watch(context.Background(), list, client.InNamespace(namespace))
	require.NoError(t, err)
	t.Cleanup(changes.Stop)
	e := &ends{at: map[string]int{}}
	go func() {
		for event := range changes.ResultChan() {
			o, is := event.Object.(client.Object)
			if !is || event.Type != watch.Deleted {
				continue
			}
			number, err := strconv.Atoi(o.GetResourceVersion())
			if err == nil {
				e.mu.Lock()
				e.at[o.GetName()] = number
				e.mu.Unlock()
			}
		}
	}()
	return e
}

func (e *ends) all() map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.at)
}

// policyLast: what is isolated is gone before its policy is.
func policyLast(t *testing.T, w *world) {
	farm := w.namespace(t)
	ws := w.create(t, workspace(machine("database", w.synced(t, farm, "golden")), w.container("web", replicas(3))))
	w.becomesReady(t, ws)
	pods, policies := w.ends(t, &corev1.PodList{}, ws.ChildNamespace()), w.ends(t, &networkingv1.NetworkPolicyList{}, ws.ChildNamespace())
	machines, deployments := w.ends(t, &v1alpha1.VirtualMachineList{}, ws.ChildNamespace()), w.ends(t, &appsv1.DeploymentList{}, ws.ChildNamespace())
	w.remove(t, ws)
	require.Eventually(t, func() bool { return len(policies.all()) > 0 && len(pods.all()) == 4 }, w.patience, w.poll)
	policy, is := policies.all()[v1alpha1.WorkspacePolicyName(ws)]
	require.True(t, is)
	for _, former := range []*ends{pods, machines, deployments} {
		for name, at := range former.all() {
			assert.Less(t, at, policy, name)
		}
	}
}

// blocked has a finalizer that nobody takes off an object: the workspace names both.
func blocked(object func(t *testing.T, w *world, ws *v1alpha1.Workspace) client.Object) story {
	const finalizer = "example.com/hold"
	return func(t *testing.T, w *world) {
		farm := w.namespace(t)
		ws := w.create(t, workspace(machine("database", w.synced(t, farm, "golden")), w.container("web")))
		w.becomesReady(t, ws)
		o := object(t, w, ws)
		w.meddle(t, o, func() { o.SetFinalizers(append(o.GetFinalizers(), finalizer)) })
		named := o.GetName()
		if metav1.GetControllerOf(o) == nil { // of what is not its own, the namespace tells how much there is, and no names
			named = ws.ChildNamespace()
		}
		require.NoError(t, w.client.Delete(t.Context(), ws.DeepCopy()))
		require.Eventually(t, func() bool {
			if w.client.Get(t.Context(), client.ObjectKeyFromObject(ws), ws) != nil {
				return false
			}
			c := meta.FindStatusCondition(ws.Status.Conditions, v1alpha1.ConditionDeletionBlocked)
			return c != nil && c.Status == metav1.ConditionTrue && containsAll(c.Message, finalizer, named)
		}, w.patience, w.poll, "the finalizer is named")
		assert.Equal(t, "Terminating", kstatus(ws))
		w.isThere(t, ws)
		require.Eventually(t, func() bool { // others write it, too
			w.isThere(t, o)
			before, is := o.DeepCopyObject().(client.Object)
			require.True(t, is)
			var others []string
			for _, f := range o.GetFinalizers() {
				if f != finalizer {
					others = append(others, f)
				}
			}
			o.SetFinalizers(others)
			return w.client.Patch(t.Context(), o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})) == nil
		}, w.patience, w.poll)
		w.gone(t, ws.DeepCopy())
		w.nothingLeft(t, ws)
	}
}

func blockedDeployment(t *testing.T, w *world, ws *v1alpha1.Workspace) client.Object {
	t.Helper()
	return w.deployment(t, ws, "web")
}

func blockedMachine(t *testing.T, w *world, ws *v1alpha1.Workspace) client.Object {
	t.Helper()
	return w.virtualMachine(t, ws, "database")
}

// blockedStranger is something that a user has put into the workspace's own namespace: the namespace names the finalizer.
func blockedStranger(t *testing.T, w *world, ws *v1alpha1.Workspace) client.Object {
	t.Helper()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ws.ChildNamespace(), Name: "somebodys"}}
	require.NoError(t, w.client.Create(t.Context(), o))
	return o
}

// namespaceByHand: somebody deletes the workspace's namespace, and it is made again with all that is in it.
func namespaceByHand(t *testing.T, w *world) {
	farm := w.namespace(t)
	i := w.synced(t, farm, "golden")
	ws := w.create(t, workspace(machine("database", i), w.container("web")))
	w.becomesReady(t, ws)
	first := ws.Status.Namespace.UID
	require.NoError(t, w.client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ws.ChildNamespace()}}))
	w.await(t, ws, "in another namespace", func(ws *v1alpha1.Workspace) bool {
		return ws.Status.Phase == v1alpha1.WorkspaceReady && ws.Status.Namespace.UID != first && ws.Status.Namespace.UID != ""
	})
	w.counts(t, i, 1)
	w.remove(t, ws)
	w.counts(t, i, 0)
}

// deletedWhileNamespaceGoes: both are deleted, and something holds the namespace for a while.
func deletedWhileNamespaceGoes(t *testing.T, w *world) {
	ws := w.create(t, workspace(w.container("web")))
	w.becomesReady(t, ws)
	holds := blockedStranger(t, w, ws)
	w.meddle(t, holds, func() { holds.SetFinalizers([]string{"example.com/hold"}) })
	require.NoError(t, w.client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ws.ChildNamespace()}}))
	w.await(t, ws, "told", func(ws *v1alpha1.Workspace) bool {
		return reasonOf(ws, v1alpha1.ConditionNamespaceReady) == v1alpha1.WorkspaceNamespaceTerminating
	})
	require.NoError(t, w.client.Delete(t.Context(), ws.DeepCopy()))
	time.Sleep(w.debounce)
	w.isThere(t, ws)
	w.meddle(t, holds, func() { holds.SetFinalizers(nil) })
	w.gone(t, ws.DeepCopy())
	w.nothingLeft(t, ws)
}

// targetNamespaceGoes with the workspace's children in it; the workspace waits for it to come back.
func targetNamespaceGoes(t *testing.T, w *world) {
	namespace := w.namespace(t)
	ws := w.create(t, workspace(within(namespace), w.container("web")))
	w.becomesReady(t, ws)
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	require.NoError(t, w.client.Delete(t.Context(), o))
	w.gone(t, o)
	w.await(t, ws, "told", func(ws *v1alpha1.Workspace) bool {
		return reasonOf(ws, v1alpha1.ConditionNamespaceReady) == v1alpha1.WorkspaceNamespaceMissing && ws.Status.Phase != v1alpha1.WorkspaceReady
	})
	require.NoError(t, w.client.Delete(t.Context(), ws.DeepCopy()))
	w.gone(t, ws.DeepCopy())
}
