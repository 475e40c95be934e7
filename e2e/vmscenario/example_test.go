package vmscenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// example applies the example of the proposal, as it stands there. Its bucket is the simulators', and the farm is there with
// the keys; its networks need not be, because the guest is not started.
func example(t *testing.T, w *world) {
	const farm = "vmdi-farm"
	namespace := w.namespace(t)
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: farm, Labels: map[string]string{labelTest: "story"}}}
	require.NoError(t, w.client.Create(t.Context(), o))
	class := &snapshotv1.VolumeSnapshotClass{ObjectMeta: metav1.ObjectMeta{Name: "ebs-snapshot"}, Driver: "simulated", DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete}
	require.NoError(t, w.client.Create(t.Context(), class))
	t.Cleanup(func() { assert.NoError(t, w.client.Delete(context.Background(), o)) })
	access, key := w.bucket.Keys()
	require.NoError(t, w.client.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: farm, Name: "foo-bar"}, StringData: map[string]string{"accessKeyId": access, "secretKey": key},
	}))
	require.NoError(t, w.bucket.Put("vm-images", "images/harrison-vm/1.0.0/vm.qcow2", w.disk.Bytes))
	root, err := harness.Root()
	require.NoError(t, err)
	manifest, err := os.ReadFile(filepath.Join(root, "apis", "ot", "v1alpha1", "testdata", "virtualmachine.yaml"))
	require.NoError(t, err)
	_, err = w.cluster.Kubectl(t.Context(), string(manifest), "apply", "-n", namespace, "-f", "-")
	require.NoError(t, err)
	_, err = w.cluster.Kubectl(t.Context(), "", "wait", "--for=condition=Ready", "otvm/demo-workspace-1", "-n", namespace, "--timeout", w.patience.String())
	require.NoError(t, err)

	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "demo-workspace-1"}}
	w.becomes(t, vm, v1alpha1.VirtualMachineReady, v1alpha1.ReasonNotStarted)
	i := image(farm, "demo-vmdi")
	w.counts(t, i, 1, namespace+"/demo-workspace-1")
	assert.Equal(t, "harrison-vm", i.Spec.Name)
	assert.Equal(t, "gp3", i.Spec.StorageClass)
	assert.GreaterOrEqual(t, vm.Status.Disk.Size.Cmp(*i.Status.Artifact.RestoreSize), 0, "18Gi are fewer than the image's 24Gi")
	assert.Equal(t, "10.10.0.161, 4.29.163.6, 172.27.11.11", vm.Status.Addresses)
	guest := w.guestOf(t, vm)
	assert.Equal(t, virtv1.RunStrategyHalted, *guest.Spec.RunStrategy)
	assert.Equal(t, "2Gi", guest.Spec.Template.Spec.Domain.Memory.Guest.String())
	assert.EqualValues(t, 2, guest.Spec.Template.Spec.Domain.CPU.Cores)
	assert.Len(t, guest.Spec.Template.Spec.Networks, 4)
	assert.Equal(t, "demo-vm", guest.Spec.Template.Spec.Hostname)
	assert.Nil(t, w.instanceOf(t, vm))
	out, err := w.cluster.Kubectl(t.Context(), "", "get", "otvm", "-n", namespace)
	require.NoError(t, err)
	assert.Regexp(t, `demo-workspace-1 +Ready +demo-vmdi +Succeeded +10\.10\.0\.161, 4\.29\.163\.6, 172\.27\.11\.11 `, out)

	require.NoError(t, w.client.Delete(t.Context(), vm))
	for _, child := range append(children(vm), client.Object(vm)) {
		w.gone(t, child)
	}
	w.counts(t, i, 0)
}

// invalidSpecs reads what a user reads.
func invalidSpecs(t *testing.T, w *world) {
	const manifest = "apiVersion: pelotech.ot/v1alpha1\nkind: VirtualMachine\nmetadata: {name: wrong, namespace: %s}\nspec: {%s}\n"
	namespace := w.namespace(t)
	for name, test := range map[string]struct{ spec, want string }{
		"no image":         {`podNetwork: true`, "spec.vmDiskImageRef: Required value"},
		"no such strategy": {`runStrategy: Sometimes, vmDiskImageRef: {name: a}`, `spec.runStrategy: Unsupported value: "Sometimes"`},
		"a misspelt field": {`vmDiskImageRf: {name: a}, vmDiskImageRef: {name: a}`, `unknown field "spec.vmDiskImageRf"`},
		"no address":       {`vmDiskImageRef: {name: a}, interfaces: [{network: lan, ipAddress: 10.0.0.300/24}]`, "spec.interfaces"},
		"two of a network": {`vmDiskImageRef: {name: a}, interfaces: [{network: lan}, {network: lan}]`, "Duplicate value"},
	} {
		_, err := w.cluster.Kubectl(t.Context(), fmt.Sprintf(manifest, namespace, test.spec), "apply", "-f", "-")
		assert.ErrorContains(t, err, test.want, name)
	}
}
