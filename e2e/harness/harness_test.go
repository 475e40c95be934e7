package harness_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1beta1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func start(t *testing.T, options harness.Options) *harness.Cluster {
	t.Helper()
	began := time.Now()
	cluster, err := harness.Start(t.Context(), options)
	require.NoError(t, err)
	t.Logf("started in %s", time.Since(began).Round(10*time.Millisecond))
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	return cluster
}

// TestControlPlane runs on one control plane, in this order, because the last one takes the API server away.
func TestControlPlane(t *testing.T) {
	cluster := start(t, harness.Options{Audit: true, Scheduler: true})
	c, err := cluster.Client("harness-test")
	require.NoError(t, err)
	for _, test := range []struct {
		name  string
		check func(*testing.T, *harness.Cluster, client.Client)
	}{
		{"a namespace goes away with all that is in it", namespaceIsDeleted},
		{"an object whose owner is deleted is collected", ownedObjectIsCollected},
		{"a claim loses its finalizer when it is deleted", claimIsDeleted},
		{"in the foreground, the owner goes last", foregroundDeletion},
		{"a mutating admission policy changes pods", mutatingAdmissionPolicy},
		{"the scheduler places a pod on a node", podIsScheduled},
		{"kubectl knows its error", kubectlErrors},
		{"the kubeconfig is for its owner only", kubeconfigIsPrivate},
		{"the audit log names who asked for what", auditLog},
		{"a second backend works on the same cluster by its kubeconfig", existingCluster},
		{"the API server comes back with what it had", restartAPIServer},
	} {
		t.Run(test.name, func(t *testing.T) { test.check(t, cluster, c) })
	}
}

func namespaceIsDeleted(t *testing.T, _ *harness.Cluster, c client.Client) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "doomed-"}}
	require.NoError(t, c.Create(t.Context(), namespace))
	inside := configMap("inside", nil)
	inside.Namespace = namespace.Name
	require.NoError(t, c.Create(t.Context(), inside))
	require.NoError(t, c.Delete(t.Context(), namespace))
	gone(t, c, namespace)
	gone(t, c, inside)
}

func ownedObjectIsCollected(t *testing.T, _ *harness.Cluster, c client.Client) {
	owner := configMap("owner", nil)
	require.NoError(t, c.Create(t.Context(), owner))
	owned := configMap("owned", owner)
	require.NoError(t, c.Create(t.Context(), owned))
	require.NoError(t, c.Delete(t.Context(), owner))
	gone(t, c, owned)
}

func claimIsDeleted(t *testing.T, _ *harness.Cluster, c client.Client) {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	require.NoError(t, c.Create(t.Context(), claim))
	require.NotEmpty(t, claim.Finalizers, "admission adds it, as on a real cluster")
	require.NoError(t, c.Delete(t.Context(), claim))
	gone(t, c, claim)
}

// foregroundDeletion has an owner of a kind from a CustomResourceDefinition: the collector must know it from the start.
func foregroundDeletion(t *testing.T, _ *harness.Cluster, c client.Client) {
	owner := &cdiv1beta1.DataVolume{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner"}}
	require.NoError(t, c.Create(t.Context(), owner))
	owned := configMap("held", nil)
	owned.Finalizers = []string{"example.com/wait"}
	owned.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, cdiv1beta1.SchemeGroupVersion.WithKind("DataVolume"))}
	require.NoError(t, c.Create(t.Context(), owned))
	require.NoError(t, c.Delete(t.Context(), owner, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	require.Eventually(t, func() bool {
		return c.Get(t.Context(), client.ObjectKeyFromObject(owned), owned) == nil && owned.DeletionTimestamp != nil
	}, 10*time.Second, 20*time.Millisecond, "the dependent is deleted")
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(owner), owner), "the owner waits for it")
	owned.Finalizers = nil
	require.NoError(t, c.Update(t.Context(), owned))
	gone(t, c, owner)
}

func mutatingAdmissionPolicy(t *testing.T, cluster *harness.Cluster, c client.Client) {
	manifest, err := os.ReadFile(filepath.Join("testdata", "import-once.yaml"))
	require.NoError(t, err)
	out, err := cluster.Kubectl(t.Context(), string(manifest), "apply", "-f", "-")
	require.NoError(t, err)
	assert.Contains(t, out, "mutatingadmissionpolicy.admissionregistration.k8s.io/import-once created")
	require.EventuallyWithT(t, func(collect *assert.CollectT) {
		importer := pod("importer-", "import-once")
		if assert.NoError(collect, c.Create(t.Context(), importer, client.DryRunAll)) {
			assert.Equal(collect, corev1.RestartPolicyNever, importer.Spec.RestartPolicy)
		}
	}, 20*time.Second, 100*time.Millisecond)
	other := pod("other-", "")
	require.NoError(t, c.Create(t.Context(), other, client.DryRunAll))
	assert.Equal(t, corev1.RestartPolicyOnFailure, other.Spec.RestartPolicy)
}

func podIsScheduled(t *testing.T, _ *harness.Cluster, c client.Client) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-0"}}
	require.NoError(t, c.Create(t.Context(), node))
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10"), corev1.ResourceCPU: resource.MustParse("1")}
	node.Status.Capacity = node.Status.Allocatable
	require.NoError(t, c.Status().Update(t.Context(), node))
	waiting := pod("waiting-", "")
	waiting.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	require.NoError(t, c.Create(t.Context(), waiting))
	require.Eventually(t, func() bool {
		return c.Get(t.Context(), client.ObjectKeyFromObject(waiting), waiting) == nil && waiting.Spec.NodeName == node.Name
	}, 20*time.Second, 50*time.Millisecond)
}

func kubectlErrors(t *testing.T, cluster *harness.Cluster, _ client.Client) {
	_, err := cluster.Kubectl(t.Context(), "", "get", "configmap", "nobody")
	assert.ErrorContains(t, err, `configmaps "nobody" not found`)
	out, err := cluster.Kubectl(t.Context(), "", "version", "-o", "json")
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(out, `"gitVersion": "v1.`), "client and server know their version: %s", out)
}

func kubeconfigIsPrivate(t *testing.T, cluster *harness.Cluster, _ client.Client) {
	info, err := os.Stat(cluster.Kubeconfig)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
}

func auditLog(t *testing.T, cluster *harness.Cluster, _ client.Client) {
	file, err := os.Open(cluster.AuditLog)
	require.NoError(t, err)
	defer file.Close()
	creates := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var line struct {
			Verb, UserAgent string
			ObjectRef       struct{ Resource, Name string }
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		if line.UserAgent == "harness-test" && line.Verb == "create" && line.ObjectRef.Resource == "configmaps" {
			creates++
		}
	}
	assert.Equal(t, 4, creates, "configmaps that the tests above made")
}

func existingCluster(t *testing.T, cluster *harness.Cluster, _ client.Client) {
	existing := start(t, harness.Options{Kubeconfig: cluster.Kubeconfig})
	assert.Empty(t, existing.EtcdURL)
	out, err := existing.Kubectl(t.Context(), "", "get", "crd", "-o", "name")
	require.NoError(t, err)
	for _, name := range []string{
		"vmdiskimages.pelotech.ot", "datavolumes.cdi.kubevirt.io", "storageprofiles.cdi.kubevirt.io",
		"volumesnapshots.snapshot.storage.k8s.io", "volumesnapshotcontents.snapshot.storage.k8s.io", "volumesnapshotclasses.snapshot.storage.k8s.io",
	} {
		assert.Contains(t, out, "/"+name+"\n")
	}
	require.Error(t, existing.StopAPIServer())
}

func restartAPIServer(t *testing.T, cluster *harness.Cluster, c client.Client) {
	kept := configMap("kept", nil)
	require.NoError(t, c.Create(t.Context(), kept))
	began := time.Now()
	require.NoError(t, cluster.StopAPIServer())
	t.Logf("down after %s", time.Since(began).Round(10*time.Millisecond))
	require.Error(t, c.Get(t.Context(), client.ObjectKeyFromObject(kept), kept))
	began = time.Now()
	require.NoError(t, cluster.StartAPIServer())
	t.Logf("healthy after %s", time.Since(began).Round(10*time.Millisecond))
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(kept), kept))
	orphan := configMap("orphan", kept)
	require.NoError(t, c.Create(t.Context(), orphan))
	require.NoError(t, c.Delete(t.Context(), kept))
	gone(t, c, orphan)
}

func configMap(name string, owner *corev1.ConfigMap) *corev1.ConfigMap {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if owner != nil {
		object.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
	}
	return object
}

func pod(prefix, priorityClass string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: prefix},
		Spec: corev1.PodSpec{
			PriorityClassName: priorityClass, RestartPolicy: corev1.RestartPolicyOnFailure,
			Containers: []corev1.Container{{Name: "importer", Image: "importer"}},
		},
	}
}

func gone(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	began := time.Now()
	require.EventuallyWithT(t, func(collect *assert.CollectT) {
		err := c.Get(context.Background(), client.ObjectKeyFromObject(object), object)
		assert.True(collect, apierrors.IsNotFound(err), "%T %s is still there", object, object.GetName())
	}, 20*time.Second, 20*time.Millisecond)
	t.Logf("%T gone after %s", object, time.Since(began).Round(time.Millisecond))
}
