package wsscenario

import (
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func replicas(n int32) func(*v1alpha1.WorkspaceContainer) {
	return func(c *v1alpha1.WorkspaceContainer) { c.Replicas = new(n) }
}

func env(name, value string) func(*v1alpha1.WorkspaceContainer) {
	return func(c *v1alpha1.WorkspaceContainer) {
		c.Env = append(c.Env, v1alpha1.WorkspaceEnvVar{Name: name, Value: value})
	}
}

// entries come, change, are renamed and go; the others are not touched.
func entries(t *testing.T, w *world) {
	farm := w.namespace(t)
	i := w.synced(t, farm, "golden")
	ws := w.create(t, workspace(machine("database", i), w.container("web")))
	w.becomesReady(t, ws)
	database, web := w.virtualMachine(t, ws, "database"), w.deployment(t, ws, "web")

	w.change(t, ws, machine("analytics", i), w.container("cache"))
	w.becomesReady(t, ws)
	assert.Equal(t, "2/2", ws.Status.VirtualMachines)
	assert.Equal(t, "2/2", ws.Status.Containers)
	w.counts(t, i, 2)

	w.change(t, ws, w.container("web", replicas(2), env("GREETING", "hello")))
	w.becomesReady(t, ws)
	now := w.deployment(t, ws, "web")
	assert.Equal(t, web.UID, now.UID)
	assert.EqualValues(t, 2, now.Status.AvailableReplicas)
	assert.Equal(t, []corev1.EnvVar{{Name: "GREETING", Value: "hello"}}, now.Spec.Template.Spec.Containers[0].Env)
	w.change(t, ws, w.container("web"))
	w.becomesReady(t, ws)
	assert.Empty(t, w.deployment(t, ws, "web").Spec.Template.Spec.Containers[0].Env)

	former := children(ws)
	w.change(t, ws, without("cache"), w.container("store"), without("analytics"))
	w.becomesReady(t, ws)
	for _, o := range former {
		if o.GetName() == "cache" || o.GetName() == "analytics" {
			w.gone(t, o)
		}
	}
	w.deployment(t, ws, "store")
	w.counts(t, i, 1)
	assert.Equal(t, database.UID, w.virtualMachine(t, ws, "database").UID)
	assert.Equal(t, web.UID, w.deployment(t, ws, "web").UID)

	w.change(t, ws, w.container("web", func(c *v1alpha1.WorkspaceContainer) { c.Ports = nil }))
	w.becomesReady(t, ws)
	w.gone(t, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ws.ChildNamespace(), Name: "web"}})
	assert.Empty(t, w.deployment(t, ws, "web").Spec.Template.Spec.Containers[0].Ports, "what it was created with is taken away, too")
	w.remove(t, ws)
}

// anotherImage makes the virtual machine anew: its disk is another one.
func anotherImage(t *testing.T, w *world) {
	farm := w.namespace(t)
	before, after := w.synced(t, farm, "before"), w.createImage(t, image(farm, "after", w.held))
	ws := w.create(t, workspace(machine("database", before), w.container("web")))
	w.becomesReady(t, ws)
	former, web := w.virtualMachine(t, ws, "database"), w.deployment(t, ws, "web")
	w.change(t, ws, machine("database", after))
	w.waits(t, ws, v1alpha1.WorkspaceImagePending, `virtual machine "database"`)
	assert.NotEqual(t, former.UID, w.virtualMachine(t, ws, "database").UID)
	w.letGo(after)
	w.becomesReady(t, ws)
	assert.Equal(t, "after", w.virtualMachine(t, ws, "database").Spec.VMDiskImageRef.Name)
	assert.Equal(t, web.UID, w.deployment(t, ws, "web").UID)
	w.counts(t, before, 0)
}

// swapped: a name that was a container's is a virtual machine's now, and the other way round.
func swapped(t *testing.T, w *world) {
	farm := w.namespace(t)
	i := w.synced(t, farm, "golden")
	ws := w.create(t, workspace(machine("left", i), w.container("right")))
	w.becomesReady(t, ws)
	w.change(t, ws, without("left"), without("right"), machine("right", i), w.container("left"))
	w.becomesReady(t, ws)
	w.virtualMachine(t, ws, "right")
	w.deployment(t, ws, "left")
	w.gone(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ws.ChildNamespace(), Name: "right"}})
	w.gone(t, &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: ws.ChildNamespace(), Name: "left"}})
	w.counts(t, i, 1)
	require.Equal(t, "1/1", ws.Status.Containers)
}
