package vmscenario

import (
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// children are all that a virtual machine has, by its name and by its child's.
func children(vm *v1alpha1.VirtualMachine) []client.Object {
	child := metav1.ObjectMeta{Namespace: vm.Namespace, Name: v1alpha1.VirtualMachineChild(vm)}
	own := metav1.ObjectMeta{Namespace: vm.Namespace, Name: vm.Name}
	return []client.Object{
		&cdiv1.DataVolume{ObjectMeta: child}, &corev1.Secret{ObjectMeta: child}, &corev1.PersistentVolumeClaim{ObjectMeta: child},
		&virtv1.VirtualMachine{ObjectMeta: own}, &virtv1.VirtualMachineInstance{ObjectMeta: own},
	}
}

func runsAndGoes(t *testing.T, w *world) {
	namespace := w.namespace(t)
	i := w.synced(t, namespace, "golden")
	vm := w.create(t, machine(namespace, "web", i))
	w.runs(t, vm)
	_, err := w.cluster.Kubectl(t.Context(), "", "wait", "--for=condition=Ready", "otvm/web", "-n", namespace, "--timeout=10s")
	require.NoError(t, err)
	for _, kind := range []string{v1alpha1.ConditionImageReady, v1alpha1.ConditionDiskReady, v1alpha1.ConditionVirtualMachineReady, v1alpha1.ConditionReady} {
		assert.True(t, meta.IsStatusConditionTrue(vm.Status.Conditions, kind), "%s\n%s", kind, says(vm))
	}
	assert.True(t, meta.IsStatusConditionFalse(vm.Status.Conditions, v1alpha1.ConditionStalled))
	w.counts(t, i, 1, namespace+"/web")
	assert.Contains(t, i.Finalizers, v1alpha1.FinalizerProtection)
	for _, child := range children(vm) {
		w.isThere(t, child)
	}
	dv := w.diskOf(t, vm)
	assert.True(t, metav1.IsControlledBy(dv, vm))
	assert.Contains(t, dv.Finalizers, v1alpha1.FinalizerDisk)
	assert.Equal(t, i.Status.Artifact.Snapshot, dv.Spec.Source.Snapshot.Name)
	assert.Equal(t, dv.UID, vm.Status.Disk.UID)
	assert.Equal(t, i.Status.Artifact.Revision, vm.Status.Disk.Revision)
	assert.NotEmpty(t, vm.Status.Addresses, "that of its pod")
	w.told(t, vm, map[string]int{"Ready": 1})
	_, err = w.cluster.Kubectl(t.Context(), "", "delete", "vmdi/golden", "-n", namespace)
	assert.ErrorContains(t, err, "1 virtual machine uses this image ("+namespace+"/web)")

	require.NoError(t, w.client.Delete(t.Context(), vm))
	for _, child := range append(children(vm), vm) {
		w.gone(t, child)
	}
	w.counts(t, i, 0)
	_, err = w.cluster.Kubectl(t.Context(), "", "delete", "vmdi/golden", "-n", namespace)
	require.NoError(t, err)
}

func stoppedAndStarted(t *testing.T, w *world) {
	namespace := w.namespace(t)
	vm := w.create(t, machine(namespace, "web", w.synced(t, namespace, "golden"), strategy(v1alpha1.RunHalted)))
	w.becomes(t, vm, v1alpha1.VirtualMachineReady, v1alpha1.ReasonNotStarted)
	assert.Nil(t, w.instanceOf(t, vm))
	w.change(t, vm, strategy(v1alpha1.RunAlways))
	w.runs(t, vm)
	first := w.instanceOf(t, vm)
	w.change(t, vm, strategy(v1alpha1.RunHalted))
	w.becomes(t, vm, v1alpha1.VirtualMachineReady, v1alpha1.ReasonNotStarted)
	w.gone(t, first.DeepCopy()) // the guest has ended; KubeVirt still tidies up
	w.change(t, vm, strategy(v1alpha1.RunAlways))
	w.runs(t, vm)
	assert.NotEqual(t, first.UID, w.instanceOf(t, vm).UID)
	assert.Equal(t, vm.Status.Disk.UID, w.diskOf(t, vm).UID)
}

func ignoreOnDeploy(t *testing.T, w *world) {
	namespace := w.namespace(t)
	vm := w.create(t, machine(namespace, "web", w.synced(t, namespace, "golden"), func(vm *v1alpha1.VirtualMachine) { vm.Spec.IgnoreOnDeploy = true }))
	w.becomes(t, vm, v1alpha1.VirtualMachineReady, v1alpha1.ReasonNotStarted)
	assert.Nil(t, w.instanceOf(t, vm))
	assert.Equal(t, cdiv1.Succeeded, w.diskOf(t, vm).Status.Phase)
	w.change(t, vm, func(vm *v1alpha1.VirtualMachine) { vm.Spec.IgnoreOnDeploy = false })
	w.runs(t, vm)
}

// machineRepaired: what somebody has changed or deleted is put right, and counted as a repair.
func machineRepaired(t *testing.T, w *world) {
	namespace := w.namespace(t)
	vm := w.create(t, machine(namespace, "web", w.synced(t, namespace, "golden"), strategy(v1alpha1.RunHalted)))
	w.becomes(t, vm, v1alpha1.VirtualMachineReady, v1alpha1.ReasonNotStarted)
	guest := w.guestOf(t, vm)
	drifted := guest.DeepCopy()
	drifted.Spec.Template.Spec.Domain.Memory.Guest = new(resource.MustParse("96Mi"))
	drifted.Spec.RunStrategy = new(virtv1.RunStrategyAlways)
	require.NoError(t, w.client.Patch(t.Context(), drifted, client.MergeFrom(guest)))
	require.Eventually(t, func() bool {
		now := w.guestOf(t, vm)
		return now.Spec.Template.Spec.Domain.Memory.Guest.String() == "64Mi" && *now.Spec.RunStrategy == virtv1.RunStrategyHalted
	}, w.patience, w.poll)

	secret := &corev1.Secret{}
	require.NoError(t, w.client.Get(t.Context(), childOf(vm), secret))
	require.NoError(t, w.client.Delete(t.Context(), secret)) // which nobody misses until the machine is made again
	time.Sleep(w.debounce)                                   // it was applied a moment ago
	former := guest.UID
	require.NoError(t, w.client.Delete(t.Context(), guest))
	require.Eventually(t, func() bool {
		return w.client.Get(t.Context(), client.ObjectKeyFromObject(guest), guest) == nil && guest.UID != former
	}, w.patience, w.poll)
	require.NoError(t, w.client.Get(t.Context(), childOf(vm), secret), "it is there before the machine is")
	w.becomes(t, vm, v1alpha1.VirtualMachineReady, v1alpha1.ReasonNotStarted)
	assert.Equal(t, vm.Status.Disk.UID, w.diskOf(t, vm).UID)
}

func memoryChanged(t *testing.T, w *world) {
	namespace := w.namespace(t)
	vm := w.create(t, machine(namespace, "web", w.synced(t, namespace, "golden")))
	w.runs(t, vm)
	first := w.instanceOf(t, vm)
	w.change(t, vm, func(vm *v1alpha1.VirtualMachine) { vm.Spec.Resources.Memory = new(resource.MustParse("96Mi")) })
	w.await(t, vm, "to be restarted", func(vm *v1alpha1.VirtualMachine) bool {
		return meta.IsStatusConditionTrue(vm.Status.Conditions, v1alpha1.ConditionRestartRequired)
	})
	w.runs(t, vm)
	time.Sleep(w.settled)
	assert.Equal(t, first.UID, w.instanceOf(t, vm).UID, "nobody has restarted it")
	w.told(t, vm, map[string]int{"Ready": 1, "RestartRequired": 1})

	w.change(t, vm, func(vm *v1alpha1.VirtualMachine) { vm.Spec.Resources.Memory = new(resource.MustParse("64Mi")) })
	w.await(t, vm, "current again", func(vm *v1alpha1.VirtualMachine) bool {
		return meta.FindStatusCondition(vm.Status.Conditions, v1alpha1.ConditionRestartRequired) == nil
	})
}

func usersChanged(t *testing.T, w *world) {
	namespace := w.namespace(t)
	vm := w.create(t, machine(namespace, "web", w.synced(t, namespace, "golden"), func(vm *v1alpha1.VirtualMachine) {
		vm.Spec.Users = []v1alpha1.VirtualMachineUser{{Name: "demo user", PlainTextPasswd: "first"}}
	}))
	w.runs(t, vm)
	assert.Equal(t, []v1alpha1.VirtualMachineUserStatus{{Name: "demo user", Login: "demo-user"}}, vm.Status.Users)
	first, secret := w.instanceOf(t, vm), &corev1.Secret{}
	require.NoError(t, w.client.Get(t.Context(), childOf(vm), secret))
	assert.Contains(t, string(secret.Data["userdata"]), "demo-user")
	w.change(t, vm, func(vm *v1alpha1.VirtualMachine) {
		vm.Spec.Users = append(vm.Spec.Users, v1alpha1.VirtualMachineUser{Name: "second", SSHAuthorizedKeys: []string{"ssh-ed25519 AAAA"}})
	})
	w.runs(t, vm)
	require.Eventually(t, func() bool {
		require.NoError(t, w.client.Get(t.Context(), childOf(vm), secret))
		return len(secret.Data["userdata"]) > 0 && assert.ObjectsAreEqual(true, containsAll(string(secret.Data["userdata"]), "demo-user", "second", "ssh-ed25519 AAAA"))
	}, w.patience, w.poll)
	assert.Equal(t, first.UID, w.instanceOf(t, vm).UID)
}

func foreignMachine(t *testing.T, w *world) {
	namespace := w.namespace(t)
	i := w.synced(t, namespace, "golden")
	halted := virtv1.RunStrategyHalted
	foreign := &virtv1.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: virtv1.VirtualMachineSpec{RunStrategy: &halted, Template: &virtv1.VirtualMachineInstanceTemplateSpec{Spec: virtv1.VirtualMachineInstanceSpec{
			Domain: virtv1.DomainSpec{Memory: &virtv1.Memory{Guest: new(resource.MustParse("64Mi"))}},
		}}},
	}
	require.NoError(t, w.client.Create(t.Context(), foreign))
	vm := w.create(t, machine(namespace, "web", i))
	w.becomes(t, vm, v1alpha1.VirtualMachineFailed, v1alpha1.ReasonNameTaken)
	now := w.guestOf(t, vm)
	assert.Equal(t, foreign.UID, now.UID)
	assert.Empty(t, now.OwnerReferences)
	for _, field := range now.ManagedFields {
		assert.NotEqual(t, "vm-operator", field.Manager)
	}
	require.NoError(t, w.client.Delete(t.Context(), now))
	w.runs(t, vm)
}

func recreated(t *testing.T, w *world) {
	namespace := w.namespace(t)
	i := w.synced(t, namespace, "golden")
	first := w.create(t, machine(namespace, "web", i))
	w.runs(t, first)
	require.NoError(t, w.client.Delete(t.Context(), first.DeepCopy()))
	w.gone(t, first.DeepCopy())
	second := w.create(t, machine(namespace, "web", i))
	w.runs(t, second)
	assert.NotEqual(t, first.Status.Disk.DataVolume, second.Status.Disk.DataVolume)
	assert.True(t, metav1.IsControlledBy(w.guestOf(t, second), second))
	for _, child := range children(first)[:3] {
		w.gone(t, child)
	}
	w.counts(t, i, 1, namespace+"/web")
}

func namespaceGoes(t *testing.T, w *world) {
	namespace := w.namespace(t)
	i := w.synced(t, namespace, "golden")
	vm := w.create(t, machine(namespace, "web", i))
	w.runs(t, vm)
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	require.NoError(t, w.client.Delete(t.Context(), o))
	w.gone(t, o)
}
