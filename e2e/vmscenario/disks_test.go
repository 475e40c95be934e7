package vmscenario

import (
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// diskLostWhileStopped loses the DataVolume, and gets another one.
func diskLostWhileStopped(t *testing.T, w *world) {
	namespace := w.namespace(t)
	vm := w.create(t, machine(namespace, "web", w.synced(t, namespace, "golden"), strategy(v1alpha1.RunHalted)))
	w.becomes(t, vm, v1alpha1.VirtualMachineReady, v1alpha1.ReasonNotStarted)
	first := w.diskOf(t, vm)
	require.NoError(t, w.client.Delete(t.Context(), first))
	w.await(t, vm, "given another disk", func(vm *v1alpha1.VirtualMachine) bool {
		return vm.Status.Phase == v1alpha1.VirtualMachineReady && vm.Status.Disk.UID != first.UID && vm.Status.Disk.UID != ""
	})
	require.NotNil(t, vm.Status.Disk.LostAt)
	assert.Equal(t, vm.Status.Disk.UID, w.diskOf(t, vm).UID)
	w.told(t, vm, map[string]int{"Ready": 2, "NotReady": 1, "DiskDeleted": 1, "DiskLost": 1})

	claim := &corev1.PersistentVolumeClaim{}
	require.NoError(t, w.client.Get(t.Context(), childOf(vm), claim))
	require.NoError(t, w.client.Delete(t.Context(), claim))
	w.await(t, vm, "given another claim, which CDI makes by itself", func(vm *v1alpha1.VirtualMachine) bool {
		return vm.Status.Phase == v1alpha1.VirtualMachineReady && vm.Status.Disk.ClaimUID != claim.UID && vm.Status.Disk.ClaimUID != ""
	})
	assert.Equal(t, vm.Status.Disk.UID, w.diskOf(t, vm).UID, "the DataVolume is the same")
	w.told(t, vm, map[string]int{"Ready": 3, "NotReady": 2, "DiskLost": 2}, "DiskDeleted")
	w.change(t, vm, strategy(v1alpha1.RunAlways))
	w.runs(t, vm)
}

func diskDeletedWhileRunning(t *testing.T, w *world) {
	namespace := w.namespace(t)
	vm := w.create(t, machine(namespace, "web", w.synced(t, namespace, "golden")))
	w.runs(t, vm)
	dv := w.diskOf(t, vm)
	require.NoError(t, w.client.Delete(t.Context(), dv.DeepCopy()))
	w.await(t, vm, "told", func(vm *v1alpha1.VirtualMachine) bool {
		return reasonOf(vm, v1alpha1.ConditionDiskReady) == v1alpha1.ReasonDiskDeleted
	})
	w.runs(t, vm)
	assert.Contains(t, vm.Status.Message, "it is kept until the guest stops")
	time.Sleep(w.settled / 3)
	w.isThere(t, dv)
	assert.NotNil(t, dv.DeletionTimestamp)
	claim := &corev1.PersistentVolumeClaim{}
	require.NoError(t, w.client.Get(t.Context(), childOf(vm), claim))
	assert.Nil(t, claim.DeletionTimestamp)

	w.change(t, vm, strategy(v1alpha1.RunHalted))
	w.await(t, vm, "given another disk", func(vm *v1alpha1.VirtualMachine) bool {
		return vm.Status.Phase == v1alpha1.VirtualMachineReady && vm.Status.Disk.UID != dv.UID && vm.Status.Disk.UID != ""
	})
	w.change(t, vm, strategy(v1alpha1.RunAlways))
	w.runs(t, vm)
}

func quota(namespace, name string, hard corev1.ResourceList) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
}

// limited makes a quota and waits until it is at work.
func (w *world) limited(t *testing.T, q *corev1.ResourceQuota) {
	t.Helper()
	require.NoError(t, w.client.Create(t.Context(), q))
	require.Eventually(t, func() bool {
		require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(q), q))
		return len(q.Status.Hard) > 0
	}, w.patience, w.poll)
}

func diskQuota(t *testing.T, w *world) {
	namespace, farm := w.namespace(t), w.namespace(t)
	i := w.synced(t, farm, "golden", grants(namespace))
	none := quota(namespace, "no-claims", corev1.ResourceList{corev1.ResourcePersistentVolumeClaims: resource.MustParse("0")})
	w.limited(t, none)
	vm := w.create(t, machine(namespace, "web", i))
	w.becomes(t, vm, v1alpha1.VirtualMachineFailed, v1alpha1.ReasonQuotaExceeded)
	assert.Contains(t, vm.Status.Message, "exceeded quota")
	assert.Equal(t, v1alpha1.ReasonQuotaExceeded, reasonOf(vm, v1alpha1.ConditionDiskReady))
	require.NoError(t, w.client.Delete(t.Context(), none))
	w.runs(t, vm)
}

func guestQuota(t *testing.T, w *world) {
	namespace, farm := w.namespace(t), w.namespace(t)
	i := w.synced(t, farm, "golden", grants(namespace))
	small := quota(namespace, "little-memory", corev1.ResourceList{corev1.ResourceRequestsMemory: resource.MustParse("128Mi")})
	w.limited(t, small)
	vm := w.create(t, machine(namespace, "web", i, strategy(v1alpha1.RunHalted)))
	w.becomes(t, vm, v1alpha1.VirtualMachineReady, v1alpha1.ReasonNotStarted)
	w.change(t, vm, strategy(v1alpha1.RunAlways))
	w.becomes(t, vm, v1alpha1.VirtualMachineFailed, v1alpha1.ReasonQuotaExceeded)
	assert.Contains(t, vm.Status.Message, "exceeded quota: little-memory")
	assert.NotContains(t, vm.Status.Message, "virt-launcher-", "which is another one each time")
	require.NoError(t, w.client.Delete(t.Context(), small))
	w.runs(t, vm)
}

// diskSizes are those of the claims: a request that is smaller than the image is no reason to fail.
func diskSizes(t *testing.T, w *world) {
	namespace := w.namespace(t)
	i := w.synced(t, namespace, "golden")
	restore := i.Status.Artifact.RestoreSize
	sized := func(size string) func(*v1alpha1.VirtualMachine) {
		return func(vm *v1alpha1.VirtualMachine) {
			vm.Spec.RunStrategy, vm.Spec.Resources.DiskSize = v1alpha1.RunHalted, new(resource.MustParse(size))
		}
	}
	large := resource.NewQuantity(2*restore.Value(), resource.BinarySI)
	small, big := w.create(t, machine(namespace, "small", i, sized("1Mi"))), w.create(t, machine(namespace, "big", i, sized(large.String())))
	for vm, want := range map[*v1alpha1.VirtualMachine]*resource.Quantity{small: restore, big: large} {
		w.becomes(t, vm, v1alpha1.VirtualMachineReady, v1alpha1.ReasonNotStarted)
		claim := &corev1.PersistentVolumeClaim{}
		require.NoError(t, w.client.Get(t.Context(), childOf(vm), claim))
		require.NotNil(t, vm.Status.Disk.Size)
		assert.Zero(t, vm.Status.Disk.Size.Cmp(*want), "%s: %s, not %s", vm.Name, vm.Status.Disk.Size, want)
		assert.GreaterOrEqual(t, claim.Spec.Resources.Requests.Storage().Cmp(*want), 0, vm.Name)
	}
}

// firstConsumer is the guest: its disk cannot be there before it starts, and must not be waited for.
func firstConsumer(t *testing.T, w *world) {
	namespace := w.namespace(t)
	i := w.synced(t, namespace, "golden", func(i *v1alpha1.VMDiskImage) { i.Spec.StorageClass = w.lateClass() })
	halted := w.create(t, machine(namespace, "halted", i, strategy(v1alpha1.RunHalted)))
	w.becomes(t, halted, v1alpha1.VirtualMachineReady, v1alpha1.ReasonNotStarted)
	assert.Equal(t, cdiv1.PendingPopulation, w.diskOf(t, halted).Status.Phase)
	vm := w.create(t, machine(namespace, "web", i))
	w.runs(t, vm)
	assert.Equal(t, cdiv1.Succeeded, w.diskOf(t, vm).Status.Phase)
	w.change(t, halted, strategy(v1alpha1.RunAlways))
	w.runs(t, halted)
}
