package scenario

import (
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ready creates the image and checks all that a good end means: the Ready condition as kubectl sees it, the artifact,
// two children that belong to the image, a slot that is free again, and two events.
func (w *world) ready(t *testing.T, image *v1alpha1.VMDiskImage) {
	t.Helper()
	w.create(t, image)
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	_, err := w.cluster.Kubectl(t.Context(), "", "wait", "--for=condition=Ready", "vmdi/"+image.Name, "-n", image.Namespace, "--timeout=10s")
	require.NoError(t, err)
	assert.EqualValues(t, 1, image.Status.Attempts)
	assert.Equal(t, "100.0%", image.Status.Progress)
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionSynced, v1alpha1.ConditionSnapshotReady} {
		assert.True(t, meta.IsStatusConditionTrue(image.Status.Conditions, kind), "%s\n%s", kind, w.messages(image))
	}
	assert.True(t, meta.IsStatusConditionFalse(image.Status.Conditions, v1alpha1.ConditionStalled))
	assert.Equal(t, image.Generation, image.Status.ObservedGeneration)
	w.checkArtifact(t, image)
	w.holdsNothing(t, image)
	w.told(t, image, map[string]int{"Syncing": 1, "Succeeded": 1})
}

// checkArtifact follows status.artifact to the children.
func (w *world) checkArtifact(t *testing.T, image *v1alpha1.VMDiskImage) {
	t.Helper()
	artifact := image.Status.Artifact
	require.NotNil(t, artifact)
	assert.Equal(t, v1alpha1.RevisionOf(image), artifact.Revision)
	assert.Equal(t, childOf(image), artifact.DataVolume)
	require.NotNil(t, artifact.RestoreSize)
	assert.GreaterOrEqual(t, artifact.RestoreSize.Cmp(image.Spec.DiskSize), 0, "restoreSize %s, diskSize %s", artifact.RestoreSize, &image.Spec.DiskSize)

	dv := &cdiv1.DataVolume{}
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKey{Namespace: image.Namespace, Name: artifact.DataVolume}, dv))
	assert.True(t, metav1.IsControlledBy(dv, image), "the DataVolume belongs to the image")
	assert.Equal(t, v1alpha1.ImportPriorityClass, dv.Spec.PriorityClassName)
	assert.Equal(t, cdiv1.Succeeded, dv.Status.Phase)
	claim := &corev1.PersistentVolumeClaim{}
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKey{Namespace: image.Namespace, Name: artifact.DataVolume}, claim))
	assert.Equal(t, corev1.ClaimBound, claim.Status.Phase)
	snapshot := &snapshotv1.VolumeSnapshot{}
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKey{Namespace: image.Namespace, Name: artifact.Snapshot}, snapshot))
	assert.True(t, metav1.IsControlledBy(snapshot, image), "the VolumeSnapshot belongs to the image")
	require.NotNil(t, snapshot.Status)
	assert.True(t, *snapshot.Status.ReadyToUse)
	assert.Equal(t, claim.Name, *snapshot.Spec.Source.PersistentVolumeClaimName)
}

func httpWithChecksum(t *testing.T, w *world) {
	image := w.image(w.namespace(t), "http", func(i *v1alpha1.VMDiskImage) { i.Spec.Checksum = "sha256:" + w.disk.SHA256() })
	w.ready(t, image)
	assert.Equal(t, 1, w.web.Of(w.path(image, "ok")).Complete, "downloads")
}

// authority puts a certificate authority where certConfigMap finds it.
func (w *world) authority(t *testing.T, namespace string, pem []byte) func(*v1alpha1.VMDiskImage) {
	t.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "authority"}, Data: map[string]string{"authority.pem": string(pem)}}
	require.NoError(t, w.client.Create(t.Context(), m))
	return func(i *v1alpha1.VMDiskImage) { i.Spec.CertConfigMap = m.Name }
}

func httpsWithOwnAuthority(t *testing.T, w *world) {
	namespace := w.namespace(t)
	image := w.image(namespace, "https", w.authority(t, namespace, w.tls.CA))
	image.Spec.URL = w.tls.URL(w.path(image, "ok"))
	w.ready(t, image)
	assert.Equal(t, 1, w.tls.Of(w.path(image, "ok")).Complete, "downloads")

	distrustful := w.image(namespace, "distrustful")
	distrustful.Spec.URL = w.tls.URL(w.path(distrustful, "ok"))
	w.create(t, distrustful)
	w.fails(t, distrustful, v1alpha1.FailureTLSFailed, 3)
	assert.Zero(t, w.tls.Of(w.path(distrustful, "ok")).Requests)
}

// keys puts the secret for the bucket into the namespace.
func (w *world) keys(t *testing.T, namespace, name, secretKey string) {
	t.Helper()
	access, _ := w.bucket.Keys()
	require.NoError(t, w.client.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		StringData: map[string]string{"accessKeyId": access, "secretKey": secretKey},
	}))
}

// inBucket is an object of its own in the bucket, with a secret of that name.
func (w *world) inBucket(t *testing.T, secret string) func(*v1alpha1.VMDiskImage) {
	return func(i *v1alpha1.VMDiskImage) {
		key := i.Namespace + "/" + i.Name + ".qcow2"
		require.NoError(t, w.bucket.Put("images", key, w.disk.Bytes))
		i.Spec.SourceType, i.Spec.URL, i.Spec.SecretRef = v1alpha1.SourceS3, w.bucket.URL("images", key), secret
	}
}

func s3WithSecret(t *testing.T, w *world) {
	namespace := w.namespace(t)
	_, secretKey := w.bucket.Keys()
	w.keys(t, namespace, "bucket-keys", secretKey)
	image := w.image(namespace, "s3", w.inBucket(t, "bucket-keys"))
	w.ready(t, image)
	stats := w.bucket.Of("images", namespace+"/s3.qcow2")
	assert.Equal(t, 1, stats.Complete, "downloads: %+v", stats)
}

func registryWithOwnAuthority(t *testing.T, w *world) {
	namespace := w.namespace(t)
	image := w.image(namespace, "registry", w.authority(t, namespace, w.registry.CA), func(i *v1alpha1.VMDiskImage) {
		i.Spec.SourceType, i.Spec.URL = v1alpha1.SourceRegistry, w.registry.URL("images/disk:v1")
	})
	w.ready(t, image)
	// The configuration and the layer, or the layer alone.
	assert.LessOrEqual(t, w.registry.BlobGets("images/disk"), 2)
}

func blankDisk(t *testing.T, w *world) {
	w.ready(t, w.image(w.namespace(t), "blank", func(i *v1alpha1.VMDiskImage) { i.Spec.SourceType, i.Spec.URL = v1alpha1.SourceBlank, "" }))
}
