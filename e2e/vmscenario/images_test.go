package vmscenario

import (
	"slices"
	"strings"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func containsAll(text string, words ...string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

// grants the use of an image to namespaces with a label.
func grants(label string) func(*v1alpha1.VMDiskImage) {
	return func(i *v1alpha1.VMDiskImage) {
		i.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{
			From: v1alpha1.NamespacesFromSelector, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": label}},
		}
	}
}

func imageMissing(t *testing.T, w *world) {
	namespace := w.namespace(t)
	i := image(namespace, "golden")
	vm := w.create(t, machine(namespace, "early", i))
	w.waits(t, vm, v1alpha1.ReasonImageMissing, namespace+"/golden", "no vmDiskImageTemplate")
	require.NotNil(t, vm.Status.Deadline, "it does not wait for ever")
	w.createImage(t, i)
	w.runs(t, vm)
	assert.Nil(t, vm.Status.Deadline)
	w.counts(t, i, 1, namespace+"/early")
	w.told(t, vm, map[string]int{"Ready": 1})
}

func templateMakesTheImage(t *testing.T, w *world) {
	namespace, farm := w.namespace(t), w.namespace(t)
	i := image(farm, "golden")
	template := func(vm *v1alpha1.VirtualMachine) { vm.Spec.VMDiskImageTemplate = i.Spec.DeepCopy() }
	first, second := w.create(t, machine(namespace, "first", i, template)), w.create(t, machine(namespace, "second", i, template))
	w.runs(t, first)
	w.runs(t, second)
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(i), i))
	assert.Empty(t, i.OwnerReferences, "it is nobody's")
	assert.Contains(t, []string{namespace + "/first", namespace + "/second"}, i.Annotations[v1alpha1.AnnotationRequestedBy])
	assert.True(t, i.Admits(namespace, map[string]string{"kubernetes.io/metadata.name": namespace}))
	assert.False(t, i.Admits("somebody-else", map[string]string{"kubernetes.io/metadata.name": "somebody-else"}))
	w.counts(t, i, 2, namespace+"/first", namespace+"/second")
	for _, vm := range []*v1alpha1.VirtualMachine{first, second} {
		assert.Nil(t, meta.FindStatusCondition(vm.Status.Conditions, v1alpha1.ConditionImageMismatch))
		require.NoError(t, w.client.Delete(t.Context(), vm))
	}
	w.counts(t, i, 0)
	w.isThere(t, i)
}

func imageMismatch(t *testing.T, w *world) {
	namespace := w.namespace(t)
	i := w.synced(t, namespace, "golden")
	before := i.Generation
	vm := w.create(t, machine(namespace, "web", i, func(vm *v1alpha1.VirtualMachine) {
		vm.Spec.VMDiskImageTemplate = i.Spec.DeepCopy()
		vm.Spec.VMDiskImageTemplate.DiskSize = resource.MustParse("48Mi")
	}))
	w.runs(t, vm)
	c := meta.FindStatusCondition(vm.Status.Conditions, v1alpha1.ConditionImageMismatch)
	require.NotNil(t, c)
	assert.Equal(t, "The image is used as it is; it differs from vmDiskImageTemplate in diskSize", c.Message)
	w.isThere(t, i)
	assert.Equal(t, before, i.Generation, "nobody has changed it")
	w.told(t, vm, map[string]int{"Ready": 1, "ImageMismatch": 1})
}

// grantAndRevocation: who runs goes on, who comes later waits.
func grantAndRevocation(t *testing.T, w *world) {
	namespace, farm := w.namespace(t), w.namespace(t)
	i := w.synced(t, farm, "golden")
	vm := w.create(t, machine(namespace, "web", i))
	w.waits(t, vm, v1alpha1.ReasonImageNotAllowed, farm+"/golden", namespace)
	w.counts(t, i, 0)
	w.changeImage(t, i, grants(namespace))
	w.runs(t, vm)
	w.counts(t, i, 1, namespace+"/web")
	first := w.instanceOf(t, vm)

	w.changeImage(t, i, func(i *v1alpha1.VMDiskImage) { i.Spec.AllowedNamespaces = nil })
	w.await(t, vm, "told", func(vm *v1alpha1.VirtualMachine) bool {
		return reasonOf(vm, v1alpha1.ConditionImageReady) == v1alpha1.ReasonImageNotAllowed
	})
	w.runs(t, vm)
	assert.Equal(t, first.UID, w.instanceOf(t, vm).UID)
	w.counts(t, i, 0)
	late := w.create(t, machine(namespace, "late", i))
	w.waits(t, late, v1alpha1.ReasonImageNotAllowed)
	assert.True(t, client.IgnoreNotFound(w.client.Get(t.Context(), childOf(late), &cdiv1.DataVolume{})) == nil)
	w.changeImage(t, i, grants(namespace))
	w.runs(t, late)
	w.counts(t, i, 2)
}

func (w *world) changeImage(t *testing.T, i *v1alpha1.VMDiskImage, mods ...func(*v1alpha1.VMDiskImage)) {
	t.Helper()
	before := i.DeepCopy()
	for _, mod := range mods {
		mod(i)
	}
	require.NoError(t, w.client.Patch(t.Context(), i, client.MergeFrom(before)))
}

// waitsInTheQueue and says its place in it.
func waitsInTheQueue(t *testing.T, w *world) {
	w.policy(t, map[string]string{policy.KeyConcurrency: "1"})
	t.Cleanup(func() { w.policy(t, nil) })
	namespace := w.namespace(t)
	first := w.createImage(t, image(namespace, "first", w.held))
	w.awaitImage(t, first, "syncing", func(i *v1alpha1.VMDiskImage) bool { return i.Status.Phase == v1alpha1.PhaseSyncing })
	second, third := w.createImage(t, image(namespace, "second")), image(namespace, "third")
	w.awaitImage(t, second, "queued", func(i *v1alpha1.VMDiskImage) bool { return i.Status.Phase == v1alpha1.PhaseQueued })
	vm := w.create(t, machine(namespace, "web", third))
	w.waits(t, vm, v1alpha1.ReasonImageMissing)
	w.createImage(t, third)
	w.awaitImage(t, third, "queued", func(i *v1alpha1.VMDiskImage) bool {
		return i.Status.Phase == v1alpha1.PhaseQueued && i.Status.Message != ""
	})
	w.waits(t, vm, v1alpha1.ReasonImageNotReady, "is Queued", third.Status.Message)
	assert.Equal(t, v1alpha1.PhaseQueued, vm.Status.Image.Phase)
	assert.Nil(t, vm.Status.Deadline, "the image has its own time")
	w.counts(t, third, 1, namespace+"/web")
	w.letGo(first)
	w.runs(t, vm)
	assert.Equal(t, v1alpha1.PhaseSucceeded, vm.Status.Image.Phase)
}

// imageLostAndHealed loses snapshot and volume, so that the image has to be synced again.
func imageLostAndHealed(t *testing.T, w *world) {
	namespace := w.namespace(t)
	i := w.synced(t, namespace, "golden")
	old := w.create(t, machine(namespace, "old", i))
	w.runs(t, old)
	first := w.instanceOf(t, old)
	for _, child := range []client.Object{&snapshotv1.VolumeSnapshot{}, &cdiv1.DataVolume{}} {
		child.SetNamespace(namespace)
		child.SetName(i.Status.Artifact.DataVolume)
		require.NoError(t, w.client.Delete(t.Context(), child))
	}
	vm := w.create(t, machine(namespace, "web", i))
	w.runs(t, vm)
	w.runs(t, old)
	assert.Equal(t, first.UID, w.instanceOf(t, old).UID)
	w.counts(t, i, 2, namespace+"/old", namespace+"/web")
}

func imageFailedAndRepaired(t *testing.T, w *world) {
	namespace := w.namespace(t)
	i := w.createImage(t, image(namespace, "golden", func(i *v1alpha1.VMDiskImage) {
		i.Spec.SourceType, i.Spec.URL = v1alpha1.SourceHTTP, w.web.URL("/status/404/"+namespace+".qcow2")
	}))
	vm := w.create(t, machine(namespace, "web", i))
	w.becomes(t, vm, v1alpha1.VirtualMachineFailed, v1alpha1.ReasonImageFailed)
	assert.Contains(t, vm.Status.Message, "SourceNotFound")
	w.isThere(t, i)
	w.changeImage(t, i, func(i *v1alpha1.VMDiskImage) { i.Spec.SourceType, i.Spec.URL = v1alpha1.SourceBlank, "" })
	w.runs(t, vm)
	w.told(t, vm, map[string]int{"ImageFailed": 1, "Ready": 1})
}

func provisioningTimeout(t *testing.T, w *world) {
	namespace := w.namespace(t)
	i := image(namespace, "golden")
	vm := w.create(t, machine(namespace, "web", i, func(vm *v1alpha1.VirtualMachine) {
		vm.Spec.ProvisioningTimeout = &metav1.Duration{Duration: 3 * time.Second}
	}))
	w.becomes(t, vm, v1alpha1.VirtualMachineFailed, v1alpha1.ReasonProvisioningTimeout)
	assert.Contains(t, vm.Status.Message, "There is no image")
	assert.False(t, time.Now().Before(vm.Status.Deadline.Time))
	w.change(t, vm, func(vm *v1alpha1.VirtualMachine) {
		vm.Spec.ProvisioningTimeout = &metav1.Duration{Duration: w.patience}
	})
	w.createImage(t, i)
	w.runs(t, vm)
}
