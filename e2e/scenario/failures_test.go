package scenario

import (
	"fmt"
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// retryLimit of the shared policy is 2.
const allAttempts = 3

func notFound(t *testing.T, w *world) {
	image := w.create(t, w.image(w.namespace(t), "nowhere", w.served("status/404")))
	w.fails(t, image, v1alpha1.FailureSourceNotFound, allAttempts)
	stats := w.web.Of(w.path(image, "status/404"))
	assert.Equal(t, allAttempts, stats.PlainGets, "one try of a download for each attempt: %+v", stats)
	w.told(t, image, map[string]int{"Syncing": allAttempts, "AttemptFailed": allAttempts - 1, "Failed": 1})
}

func connectionCut(t *testing.T, w *world) {
	mode := fmt.Sprintf("cut/%d", len(w.disk.Bytes)/2)
	image := w.create(t, w.image(w.namespace(t), "cut", w.served(mode)))
	w.fails(t, image, v1alpha1.FailureUnreachable, allAttempts)
	stats := w.web.Of(w.path(image, mode))
	assert.Equal(t, 2*allAttempts, stats.PlainGets, "for each attempt a probe and a download: %+v", stats)
	assert.Less(t, stats.Bytes, int64(allAttempts*len(w.disk.Bytes)), "no attempt has begun a second download: %+v", stats)
}

func diskTooSmall(t *testing.T, w *world) {
	image := w.create(t, w.image(w.namespace(t), "small", func(i *v1alpha1.VMDiskImage) { i.Spec.DiskSize = resource.MustParse("4Mi") }))
	w.fails(t, image, v1alpha1.FailureDiskTooSmall, 1)
	w.told(t, image, map[string]int{"Syncing": 1, "Failed": 1})
}

func wrongChecksum(t *testing.T, w *world) {
	image := w.create(t, w.image(w.namespace(t), "other", func(i *v1alpha1.VMDiskImage) {
		i.Spec.Checksum = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	}))
	w.fails(t, image, v1alpha1.FailureChecksumMismatch, 1)
	assert.Equal(t, 1, w.web.Of(w.path(image, "ok")).Complete, "downloads")
}

func failsOnce(t *testing.T, w *world) {
	const mode = "failfirst/2" // the HEAD and the GET of the first attempt
	image := w.create(t, w.image(w.namespace(t), "flaky", w.served(mode)))
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	assert.EqualValues(t, 2, image.Status.Attempts)
	assert.Equal(t, v1alpha1.FailureUnreachable, image.Status.LastFailure.Reason, image.Status.LastFailure.Message)
	assert.Nil(t, image.Status.NextAttemptTime)
	assert.Equal(t, 1, w.web.Of(w.path(image, mode)).Complete, "downloads")
	w.checkArtifact(t, image)
	w.told(t, image, map[string]int{"Syncing": 2, "AttemptFailed": 1, "Succeeded": 1})
}

// truncated shows what docs say: nothing but a checksum notices that a file has lost its end.
func truncated(t *testing.T, w *world) {
	namespace := w.namespace(t)
	mode := fmt.Sprintf("short/%d", len(w.disk.Bytes)-100_000)
	trusting := w.create(t, w.image(namespace, "trusting", w.served(mode)))
	careful := w.create(t, w.image(namespace, "careful", w.served(mode), func(i *v1alpha1.VMDiskImage) { i.Spec.Checksum = "sha256:" + w.disk.SHA256() }))
	w.becomes(t, trusting, v1alpha1.PhaseSucceeded)
	w.fails(t, careful, v1alpha1.FailureChecksumMismatch, 1)
}

func secretMissing(t *testing.T, w *world) {
	namespace := w.namespace(t)
	image := w.create(t, w.image(namespace, "keyless", w.inBucket(t, "no-such-secret")))
	w.fails(t, image, v1alpha1.FailureSecretMissing, allAttempts)
	assert.Contains(t, image.Status.LastFailure.Message, "no-such-secret")
	assert.Zero(t, w.bucket.Of("images", namespace+"/keyless.qcow2").Gets)

	half := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "half"}, StringData: map[string]string{"accessKeyId": "access"}}
	require.NoError(t, w.client.Create(t.Context(), half))
	lame := w.create(t, w.image(namespace, "lame", w.inBucket(t, "half")))
	w.fails(t, lame, v1alpha1.FailureSecretMissing, allAttempts)
	assert.Contains(t, lame.Status.LastFailure.Message, "secretKey")
}

func wrongKey(t *testing.T, w *world) {
	namespace := w.namespace(t)
	w.keys(t, namespace, "wrong", "not-the-secret")
	image := w.create(t, w.image(namespace, "stranger", w.inBucket(t, "wrong")))
	w.fails(t, image, v1alpha1.FailureAccessDenied, allAttempts)
	stats := w.bucket.Of("images", namespace+"/stranger.qcow2")
	assert.Equal(t, allAttempts, stats.Refused, "one try for each attempt: %+v", stats)
	assert.Zero(t, stats.Complete)
	assert.NotContains(t, image.Status.Message, "not-the-secret")
}
