package wsscenario

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namespace makes one for a story and lets it go, with all that is in it, when the story is over.
func (w *world) namespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "ot-e2e-", Labels: map[string]string{labelTest: "story"}}}
	require.NoError(t, w.client.Create(t.Context(), namespace))
	t.Cleanup(func() {
		if t.Failed() {
			w.show(t, namespace.Name)
		}
		assert.NoError(t, client.IgnoreNotFound(w.client.Delete(context.Background(), namespace)))
	})
	return namespace.Name
}

// show prints what there is of a story that has failed.
func (w *world) show(t *testing.T, namespace string) {
	t.Helper()
	for _, args := range [][]string{
		{"get", "otvm,vmdi,dv,deploy,rs,pods,svc,netpol,quota,events", "-n", namespace, "-o", "wide"},
		{"get", "otvm,deploy,netpol", "-n", namespace, "-o", "yaml"},
	} {
		out, err := w.cluster.Kubectl(context.Background(), "", args...)
		t.Logf("kubectl %s\n%s%v", strings.Join(args, " "), out, err)
	}
}

// image is a blank one that every namespace may use: it needs no download, and a guest without an operating system runs as well.
func image(namespace, name string, mods ...func(*v1alpha1.VMDiskImage)) *v1alpha1.VMDiskImage {
	i := &v1alpha1.VMDiskImage{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.VMDiskImageSpec{
			SourceType: v1alpha1.SourceBlank, DiskSize: resource.MustParse("32Mi"),
			AllowedNamespaces: &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll},
		},
	}
	for _, mod := range mods {
		mod(i)
	}
	return i
}

// held is an image that is not sent before the gate of its name is opened: see letGo.
func (w *world) held(i *v1alpha1.VMDiskImage) {
	file := i.Namespace + "-" + i.Name + ".qcow2"
	w.web.Add(file, w.disk.Bytes)
	i.Spec.SourceType, i.Spec.URL = v1alpha1.SourceHTTP, w.web.URL("/gate/"+i.Namespace+"-"+i.Name+"/"+file)
}

// missing is an image that its server does not have.
func (w *world) missing(i *v1alpha1.VMDiskImage) {
	i.Spec.SourceType, i.Spec.URL = v1alpha1.SourceHTTP, w.web.URL("/status/404/"+i.Namespace+".qcow2")
}

func (w *world) letGo(i *v1alpha1.VMDiskImage) { w.web.Open(i.Namespace + "-" + i.Name) }

func (w *world) createImage(t *testing.T, i *v1alpha1.VMDiskImage) *v1alpha1.VMDiskImage {
	t.Helper()
	require.NoError(t, w.client.Create(t.Context(), i))
	return i
}

// synced is an image that is there.
func (w *world) synced(t *testing.T, namespace, name string, mods ...func(*v1alpha1.VMDiskImage)) *v1alpha1.VMDiskImage {
	t.Helper()
	i := w.createImage(t, image(namespace, name, mods...))
	w.awaitImage(t, i, "synced", (*v1alpha1.VMDiskImage).IsReady)
	return i
}

func (w *world) awaitImage(t *testing.T, i *v1alpha1.VMDiskImage, what string, holds func(*v1alpha1.VMDiskImage) bool) {
	t.Helper()
	deadline := time.Now().Add(w.patience)
	for {
		require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(i), i))
		if holds(i) {
			return
		}
		require.True(t, time.Now().Before(deadline), "the image %s is not %s but %s: %s", i.Name, what, i.Status.Phase, i.Status.Message)
		time.Sleep(w.poll)
	}
}

// counts waits until the image says that so many use it.
func (w *world) counts(t *testing.T, i *v1alpha1.VMDiskImage, count int32) {
	t.Helper()
	w.awaitImage(t, i, fmt.Sprintf("used by %d", count), func(i *v1alpha1.VMDiskImage) bool {
		references := i.Status.References
		return references != nil && references.Count == count || references == nil && count == 0
	})
}

type mod = func(*v1alpha1.Workspace)

// workspace of a name that no other story has.
func workspace(mods ...mod) *v1alpha1.Workspace {
	ws := &v1alpha1.Workspace{}
	random := make([]byte, 4)
	for i := range random {
		random[i] = byte(rand.UintN(256)) //nolint:gosec // a name
	}
	ws.Name, ws.Labels = "e2e-"+hex.EncodeToString(random), map[string]string{labelTest: "story"}
	for _, mod := range mods {
		mod(ws)
	}
	return ws
}

// machine adds a virtual machine of an image, or changes the one of that name.
func machine(name string, i *v1alpha1.VMDiskImage, mods ...func(*v1alpha1.WorkspaceVirtualMachineSpec)) mod {
	return func(ws *v1alpha1.Workspace) {
		entry := v1alpha1.WorkspaceVirtualMachine{Name: name}
		entry.Spec.VMDiskImageRef = &v1alpha1.VMDiskImageReference{Namespace: i.Namespace, Name: i.Name}
		entry.Spec.Resources = v1alpha1.VirtualMachineResources{CPU: new(resource.MustParse("100m")), Memory: new(resource.MustParse("64Mi"))}
		for _, mod := range mods {
			mod(&entry.Spec)
		}
		at := slices.IndexFunc(ws.Spec.VirtualMachines, func(e v1alpha1.WorkspaceVirtualMachine) bool { return e.Name == name })
		if at < 0 {
			ws.Spec.VirtualMachines = append(ws.Spec.VirtualMachines, entry)
			return
		}
		ws.Spec.VirtualMachines[at] = entry
	}
}

// container adds one with a port, or changes the one of that name.
func (w *world) container(name string, mods ...func(*v1alpha1.WorkspaceContainer)) mod {
	return func(ws *v1alpha1.Workspace) {
		entry := v1alpha1.WorkspaceContainer{Name: name, Image: w.runs, Ports: []v1alpha1.WorkspacePort{{ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}}
		for _, mod := range mods {
			mod(&entry)
		}
		at := slices.IndexFunc(ws.Spec.Containers, func(e v1alpha1.WorkspaceContainer) bool { return e.Name == name })
		if at < 0 {
			ws.Spec.Containers = append(ws.Spec.Containers, entry)
			return
		}
		ws.Spec.Containers[at] = entry
	}
}

// without removes an entry.
func without(name string) mod {
	return func(ws *v1alpha1.Workspace) {
		ws.Spec.VirtualMachines = slices.DeleteFunc(ws.Spec.VirtualMachines, func(e v1alpha1.WorkspaceVirtualMachine) bool { return e.Name == name })
		ws.Spec.Containers = slices.DeleteFunc(ws.Spec.Containers, func(e v1alpha1.WorkspaceContainer) bool { return e.Name == name })
	}
}

func within(namespace string) mod {
	return func(ws *v1alpha1.Workspace) { ws.Spec.TargetNamespace = namespace }
}

func timeout(d time.Duration) mod {
	return func(ws *v1alpha1.Workspace) { ws.Spec.ProvisioningTimeout = &metav1.Duration{Duration: d} }
}

// create a workspace. It is deleted when the story is over, and waited for: nothing may hold it.
func (w *world) create(t *testing.T, ws *v1alpha1.Workspace) *v1alpha1.Workspace {
	t.Helper()
	require.NoError(t, w.client.Create(t.Context(), ws))
	key := ws.DeepCopy()
	t.Cleanup(func() {
		if t.Failed() {
			w.show(t, key.ChildNamespace())
		}
		assert.NoError(t, client.IgnoreNotFound(w.client.Delete(context.Background(), key.DeepCopy())))
		w.gone(t, key.DeepCopy())
	})
	return ws
}

// change writes a change of the spec.
func (w *world) change(t *testing.T, ws *v1alpha1.Workspace, mods ...mod) {
	t.Helper()
	before := ws.DeepCopy()
	for _, mod := range mods {
		mod(ws)
	}
	require.NoError(t, w.client.Patch(t.Context(), ws, client.MergeFrom(before)))
}

// await returns when the workspace, with the spec that it has, is as it should be, or says what it is instead.
func (w *world) await(t *testing.T, ws *v1alpha1.Workspace, what string, holds func(*v1alpha1.Workspace) bool) {
	t.Helper()
	deadline := time.Now().Add(w.patience)
	for {
		require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(ws), ws))
		if ws.Status.ObservedGeneration == ws.Generation && holds(ws) {
			return
		}
		require.True(t, time.Now().Before(deadline), "%s is not %s but %s: %s\n%s", ws.Name, what, ws.Status.Phase, ws.Status.Message, says(ws))
		time.Sleep(w.poll)
	}
}

func (w *world) becomesReady(t *testing.T, ws *v1alpha1.Workspace) {
	t.Helper()
	w.await(t, ws, "Ready", func(ws *v1alpha1.Workspace) bool {
		return ws.Status.Phase == v1alpha1.WorkspaceReady && reasonOf(ws, v1alpha1.ConditionReady) == v1alpha1.WorkspaceAllReady
	})
	assert.Equal(t, "Current", kstatus(ws), says(ws))
}

// waits for a Provisioning with that reason, and a message with those words.
func (w *world) waits(t *testing.T, ws *v1alpha1.Workspace, reason v1alpha1.WorkspaceReason, words ...string) {
	t.Helper()
	w.await(t, ws, fmt.Sprint("Provisioning ", reason, words), func(ws *v1alpha1.Workspace) bool {
		return ws.Status.Phase == v1alpha1.WorkspaceProvisioning && reasonOf(ws, v1alpha1.ConditionReady) == reason && containsAll(ws.Status.Message, words...)
	})
	assert.Equal(t, "InProgress", kstatus(ws), says(ws))
}

// fails for that reason, with a message with those words. Ready and Stalled tell the same.
func (w *world) fails(t *testing.T, ws *v1alpha1.Workspace, reason v1alpha1.WorkspaceReason, words ...string) {
	t.Helper()
	w.await(t, ws, fmt.Sprint("Failed ", reason, words), func(ws *v1alpha1.Workspace) bool {
		return ws.Status.Phase == v1alpha1.WorkspaceFailed && reasonOf(ws, v1alpha1.ConditionStalled) == reason && containsAll(ws.Status.Message, words...)
	})
	assert.Equal(t, "Failed", kstatus(ws), says(ws))
	assert.True(t, meta.IsStatusConditionFalse(ws.Status.Conditions, v1alpha1.ConditionReady), says(ws))
}

func containsAll(text string, words ...string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

func reasonOf(ws *v1alpha1.Workspace, kind string) v1alpha1.WorkspaceReason {
	if c := meta.FindStatusCondition(ws.Status.Conditions, kind); c != nil {
		return v1alpha1.WorkspaceReason(c.Reason)
	}
	return ""
}

// says are the conditions, for an assertion's message.
func says(ws *v1alpha1.Workspace) string {
	var lines []string
	for _, c := range ws.Status.Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// child is where the objects of an entry are.
func child(ws *v1alpha1.Workspace, entry string) client.ObjectKey {
	return client.ObjectKey{Namespace: ws.ChildNamespace(), Name: v1alpha1.WorkspaceChild(ws, entry)}
}

// virtualMachine is that of an entry.
func (w *world) virtualMachine(t *testing.T, ws *v1alpha1.Workspace, entry string) *v1alpha1.VirtualMachine {
	t.Helper()
	vm := &v1alpha1.VirtualMachine{}
	require.NoError(t, w.client.Get(t.Context(), child(ws, entry), vm))
	return vm
}

// deployment is that of an entry.
func (w *world) deployment(t *testing.T, ws *v1alpha1.Workspace, entry string) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	require.NoError(t, w.client.Get(t.Context(), child(ws, entry), d))
	return d
}

func (w *world) isThere(t *testing.T, o client.Object) {
	t.Helper()
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(o), o), "%T %s", o, o.GetName())
}

func (w *world) isNotThere(t *testing.T, o client.Object) {
	t.Helper()
	assert.True(t, apierrors.IsNotFound(w.client.Get(t.Context(), client.ObjectKeyFromObject(o), o)), "%T %s", o, o.GetName())
}

// gone waits until an object is; one that was made again since counts as gone.
func (w *world) gone(t *testing.T, o client.Object) {
	t.Helper()
	uid := o.GetUID()
	require.Eventually(t, func() bool {
		err := w.client.Get(context.Background(), client.ObjectKeyFromObject(o), o)
		return apierrors.IsNotFound(err) || err == nil && uid != "" && o.GetUID() != uid
	}, w.patience, w.poll, "%T %s goes", o, o.GetName())
}

// told waits until a workspace's events have told each of the reasons as often as that, whatever else they tell.
func (w *world) told(t *testing.T, ws *v1alpha1.Workspace, want map[string]int) {
	t.Helper()
	var last map[string]int
	assert.Eventually(t, func() bool {
		events := &eventsv1.EventList{}
		if w.client.List(t.Context(), events) != nil {
			return false
		}
		last = map[string]int{}
		for _, event := range events.Items {
			if _, wanted := want[event.Reason]; wanted && event.Regarding.UID == ws.UID {
				last[event.Reason]++
				if event.Series != nil {
					last[event.Reason] += int(event.Series.Count) - 1
				}
			}
		}
		return maps.Equal(last, want)
	}, w.patience/4, w.poll, "the events")
	assert.Equal(t, want, last, "the events of %s", ws.Name)
}

// kstatus is what tools that wait for an object make of it: Flux, Argo CD, helm --wait.
func kstatus(ws *v1alpha1.Workspace) string {
	switch {
	case ws.DeletionTimestamp != nil:
		return "Terminating"
	case ws.Status.ObservedGeneration != ws.Generation:
		return "InProgress"
	case meta.IsStatusConditionTrue(ws.Status.Conditions, v1alpha1.ConditionStalled):
		return "Failed"
	case meta.IsStatusConditionTrue(ws.Status.Conditions, v1alpha1.ConditionReady):
		return "Current"
	}
	return "InProgress"
}
