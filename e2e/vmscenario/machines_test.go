package vmscenario

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
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
	for name, operator := range map[string]*harness.Operator{"disk-sync-operator": w.disks, "vm-operator": w.machines} {
		select {
		case <-operator.Done():
			t.Logf("the %s has ended: %v", name, operator.Wait())
		default:
		}
	}
	for _, args := range [][]string{
		{"get", "otvm,vm,vmi,vmdi,dv,pvc,pods,events", "-n", namespace, "-o", "wide"},
		{"get", "otvm,vmdi,dv,vm", "-n", namespace, "-o", "yaml", "--show-managed-fields=false"},
	} {
		out, err := w.cluster.Kubectl(context.Background(), "", args...)
		t.Logf("kubectl %s\n%s%v", strings.Join(args, " "), out, err)
	}
}

// image is a blank one: it needs no download, and a guest without an operating system runs as well.
func image(namespace, name string, mods ...func(*v1alpha1.VMDiskImage)) *v1alpha1.VMDiskImage {
	i := &v1alpha1.VMDiskImage{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.VMDiskImageSpec{SourceType: v1alpha1.SourceBlank, DiskSize: resource.MustParse("32Mi")},
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
func (w *world) counts(t *testing.T, i *v1alpha1.VMDiskImage, count int32, users ...string) {
	t.Helper()
	w.awaitImage(t, i, fmt.Sprintf("used by %d", count), func(i *v1alpha1.VMDiskImage) bool {
		references := i.Status.References
		return references != nil && references.Count == count || references == nil && count == 0
	})
	if users != nil {
		assert.Equal(t, users, i.Status.References.Sample)
	}
}

// machine is one that uses an image, in any namespace.
func machine(namespace, name string, i *v1alpha1.VMDiskImage, mods ...func(*v1alpha1.VirtualMachine)) *v1alpha1.VirtualMachine {
	vm := &v1alpha1.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.VirtualMachineSpec{
			VMDiskImageRef: v1alpha1.VMDiskImageReference{Name: i.Name},
			MachineSpec: v1alpha1.MachineSpec{
				Resources: v1alpha1.VirtualMachineResources{CPU: new(resource.MustParse("100m")), Memory: new(resource.MustParse("64Mi"))},
			},
		},
	}
	if i.Namespace != namespace {
		vm.Spec.VMDiskImageRef.Namespace = i.Namespace
	}
	for _, mod := range mods {
		mod(vm)
	}
	return vm
}

func strategy(s v1alpha1.RunStrategy) func(*v1alpha1.VirtualMachine) {
	return func(vm *v1alpha1.VirtualMachine) { vm.Spec.RunStrategy = s }
}

func (w *world) create(t *testing.T, vm *v1alpha1.VirtualMachine) *v1alpha1.VirtualMachine {
	t.Helper()
	require.NoError(t, w.client.Create(t.Context(), vm))
	return vm
}

// change writes a change of the spec.
func (w *world) change(t *testing.T, vm *v1alpha1.VirtualMachine, mods ...func(*v1alpha1.VirtualMachine)) {
	t.Helper()
	before := vm.DeepCopy()
	for _, mod := range mods {
		mod(vm)
	}
	require.NoError(t, w.client.Patch(t.Context(), vm, client.MergeFrom(before)))
}

// await returns when the virtual machine, with the spec that it has, is as it should be, or says what it is instead.
func (w *world) await(t *testing.T, vm *v1alpha1.VirtualMachine, what string, holds func(*v1alpha1.VirtualMachine) bool) {
	t.Helper()
	deadline := time.Now().Add(w.patience)
	for {
		require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(vm), vm))
		if vm.Status.ObservedGeneration == vm.Generation && holds(vm) {
			return
		}
		require.True(t, time.Now().Before(deadline), "%s is not %s but %s: %s\n%s", vm.Name, what, vm.Status.Phase, vm.Status.Message, says(vm))
		time.Sleep(w.poll)
	}
}

func (w *world) becomes(t *testing.T, vm *v1alpha1.VirtualMachine, phase v1alpha1.VirtualMachinePhase, reason v1alpha1.VirtualMachineReason) {
	t.Helper()
	kind := v1alpha1.ConditionReady
	if phase == v1alpha1.VirtualMachineFailed {
		kind = v1alpha1.ConditionStalled
	}
	w.await(t, vm, fmt.Sprint(phase, " ", reason), func(vm *v1alpha1.VirtualMachine) bool {
		return vm.Status.Phase == phase && reasonOf(vm, kind) == reason
	})
}

func (w *world) runs(t *testing.T, vm *v1alpha1.VirtualMachine) {
	t.Helper()
	w.becomes(t, vm, v1alpha1.VirtualMachineReady, v1alpha1.ReasonRunning)
}

// waits for a Provisioning with that reason, and a message with those words.
func (w *world) waits(t *testing.T, vm *v1alpha1.VirtualMachine, reason v1alpha1.VirtualMachineReason, words ...string) {
	t.Helper()
	w.await(t, vm, fmt.Sprint(reason, words), func(vm *v1alpha1.VirtualMachine) bool {
		missing := func(word string) bool { return !strings.Contains(vm.Status.Message, word) }
		return vm.Status.Phase == v1alpha1.VirtualMachineProvisioning && reasonOf(vm, v1alpha1.ConditionReady) == reason && !slices.ContainsFunc(words, missing)
	})
}

func reasonOf(vm *v1alpha1.VirtualMachine, kind string) v1alpha1.VirtualMachineReason {
	if c := meta.FindStatusCondition(vm.Status.Conditions, kind); c != nil {
		return v1alpha1.VirtualMachineReason(c.Reason)
	}
	return ""
}

// says are the conditions, for an assertion's message.
func says(vm *v1alpha1.VirtualMachine) string {
	var lines []string
	for _, c := range vm.Status.Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// guestOf is KubeVirt's machine.
func (w *world) guestOf(t *testing.T, vm *v1alpha1.VirtualMachine) *virtv1.VirtualMachine {
	t.Helper()
	guest := &virtv1.VirtualMachine{}
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(vm), guest))
	return guest
}

func (w *world) diskOf(t *testing.T, vm *v1alpha1.VirtualMachine) *cdiv1.DataVolume {
	t.Helper()
	dv := &cdiv1.DataVolume{}
	require.NoError(t, w.client.Get(t.Context(), childOf(vm), dv))
	return dv
}

// instanceOf is KubeVirt's instance, or nil.
func (w *world) instanceOf(t require.TestingT, vm *v1alpha1.VirtualMachine) *virtv1.VirtualMachineInstance {
	vmi := &virtv1.VirtualMachineInstance{}
	err := w.client.Get(context.Background(), client.ObjectKeyFromObject(vm), vmi)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return vmi
}

func childOf(vm *v1alpha1.VirtualMachine) client.ObjectKey {
	return client.ObjectKey{Namespace: vm.Namespace, Name: v1alpha1.VirtualMachineChild(vm)}
}

func (w *world) isThere(t *testing.T, o client.Object) {
	t.Helper()
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(o), o), "%T %s", o, o.GetName())
}

func (w *world) gone(t *testing.T, o client.Object) {
	t.Helper()
	require.Eventually(t, func() bool {
		return apierrors.IsNotFound(w.client.Get(context.Background(), client.ObjectKeyFromObject(o), o))
	}, w.patience, w.poll, "%T %s goes", o, o.GetName())
}

// told waits until the events of an object are those, in any order, and no more. Whether it is seen Recovering before it is
// Ready is a matter of moments, and so are the others that are named.
func (w *world) told(t *testing.T, about client.Object, want map[string]int, orNot ...string) {
	t.Helper()
	var last map[string]int
	assert.Eventually(t, func() bool {
		events := &eventsv1.EventList{}
		if w.client.List(t.Context(), events, client.InNamespace(about.GetNamespace())) != nil {
			return false
		}
		last = map[string]int{}
		for _, event := range events.Items {
			if event.Regarding.UID == about.GetUID() && event.Reason != "Recovering" && !slices.Contains(orNot, event.Reason) {
				last[event.Reason]++
				if event.Series != nil {
					last[event.Reason] += int(event.Series.Count) - 1
				}
			}
		}
		return fmt.Sprint(last) == fmt.Sprint(want)
	}, w.patience/4, w.poll, "the events")
	assert.Equal(t, want, last, "the events of %s", about.GetName())
}
