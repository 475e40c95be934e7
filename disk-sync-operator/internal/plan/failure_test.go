package plan_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

const (
	overHTTP  = "Unable to connect to http data source: "
	overS3    = "Unable to connect to s3 data source: could not get s3 object: \"labs/a.qcow2\": "
	inScratch = "Unable to process data: Unable to transfer source data to scratch space: "
	inConvert = "Unable to process data: Unable to convert source data to target format: "
	pull      = inScratch + "Failed to read registry image: failed to pull image: "
)

// Verbatim: recorded on CDI v1.65, or put together as its sources and those of its S3 and registry clients do.
var messages = map[v1alpha1.FailureReason][]string{
	v1alpha1.FailureSourceNotFound: {
		message404,
		overHTTP + "expected status code 200, got 410. Status: 410 Gone",
		overS3 + "NoSuchKey: The specified key does not exist.\n\tstatus code: 404, request id: 1, host id: 2",
		overS3 + "NoSuchBucket: The specified bucket does not exist\n\tstatus code: 404, request id: , host id: ",
		overS3 + "NotFound: Not Found\n\tstatus code: 404, request id: , host id: ",
		pull + "reading manifest v1 in quay.io/labs/disk: manifest unknown",
		pull + "reading manifest v1 in quay.io/labs/disk: name unknown: repository name not known to registry",
	},
	v1alpha1.FailureAccessDenied: {
		overHTTP + "expected status code 200, got 403. Status: 403 Forbidden",
		overHTTP + "expected status code 200, got 401. Status: 401 Unauthorized",
		overS3 + "AccessDenied: Access Denied\n\tstatus code: 403, request id: 1, host id: 2",
		overS3 + "InvalidAccessKeyId: The AWS Access Key Id you provided does not exist in our records.\n\tstatus code: 403, request id: ",
		overS3 + "SignatureDoesNotMatch: The request signature we calculated does not match\n\tstatus code: 403, request id: ",
		overS3 + "EmptyStaticCreds: static credentials are empty",
		pull + "reading manifest v1 in quay.io/labs/disk: unauthorized: access to the requested resource is not authorized",
		pull + "reading manifest v1 in docker.io/labs/disk: requested access to the resource is denied",
	},
	v1alpha1.FailureTLSFailed: {
		overHTTP + "HTTP request errored: Get \"https://a.example/x\": tls: failed to verify certificate: x509: certificate signed by unknown authority",
		overHTTP + "HTTP request errored: Get \"https://a.example/x\": remote error: tls: handshake failure",
		overS3 + "RequestError: send request failed\ncaused by: Get \"https://s3.example/labs/a\": x509: certificate has expired or is not yet valid",
		pull + "pinging container registry quay.io: Get \"https://quay.io/v2/\": tls: failed to verify certificate: x509: certificate is valid for a, not b",
	},
	v1alpha1.FailureUnreachable: {
		overHTTP + "expected status code 200, got 503. Status: 503 Service Unavailable",
		overHTTP + "expected status code 200, got 429. Status: 429 Too Many Requests",
		overHTTP + "HTTP request errored: Get \"http://10.0.0.1/x\": dial tcp 10.0.0.1:80: connect: connection refused",
		overHTTP + "HTTP request errored: Get \"http://a.example/x\": dial tcp: lookup a.example on 10.96.0.10:53: no such host",
		overHTTP + "HTTP request errored: Get \"https://a.example/x\": net/http: TLS handshake timeout",
		inScratch + "failed to pull image: unexpected EOF",
		inScratch + "failed to pull image: read tcp 10.0.0.1:1->10.0.0.2:80: read: connection reset by peer",
		overS3 + "RequestError: send request failed\ncaused by: Get \"http://s3/labs/a\": dial tcp 10.0.0.1:80: i/o timeout",
		overS3 + "InternalError: We encountered an internal error.\n\tstatus code: 500, request id: 1, host id: 2",
		pull + "pinging container registry quay.io: Get \"https://quay.io/v2/\": dial tcp 10.0.0.1:443: connect: no route to host",
	},
	v1alpha1.FailureDiskTooSmall: {
		"DataVolume too small to contain image",
		inConvert + "virtual image size 67108864 is larger than the reported available storage 33554432. A larger PVC is required",
		"Unable to process data: Unable to resize disk image to requested size: virtual image size 67108864 is larger than the reported available storage 33554432. A larger PVC is required",
	},
	v1alpha1.FailureInvalidFormat: {
		inConvert + "Invalid format luks for image file:///scratch/tmpimage",
		inConvert + "Image file:///scratch/tmpimage is invalid because it has invalid backing file base.img",
		inConvert + "qemu-img: Could not open '/scratch/tmpimage': Image is not in qcow2 format, exit status 1",
		"Unable to process data: Unable to obtain information about data source: could not process image header",
		pull[:len(pull)-len("failed to pull image: ")] + "Failed to find VM disk image file in the container image",
	},
	v1alpha1.FailureChecksumMismatch: {
		messageChecksum,
		overHTTP + "invalid checksum: unsupported hash algorithm: crc",
	},
	v1alpha1.FailureQuotaExceeded: {
		`persistentvolumeclaims "a" is forbidden: exceeded quota: small, requested: requests.storage=1Gi, used: requests.storage=0, limited: requests.storage=1Mi`,
	},
	v1alpha1.FailureSecretMissing: {
		`secret "keys" not found`, `configmap "ca" not found`,
	},
	v1alpha1.FailureUnknown: {
		"", "the importer ended with OOMKilled", "Unknown data source: ftp",
		inConvert + "Conversion to Raw failed: could not convert image to raw: qemu-img: error while writing at byte 0: Input/output error",
		inConvert + "Conversion to Raw failed: could not convert image to raw: signal: killed",
	},
}

func TestFailureTable(t *testing.T) {
	for reason, texts := range messages {
		for _, text := range texts {
			assert.Equal(t, reason, plan.ReasonOf(text), "%q", text)
		}
	}
}

// What users write (URLs, names of hosts and images) must not decide.
func TestNamesDoNotDecide(t *testing.T) {
	cases := map[string]v1alpha1.FailureReason{
		overHTTP + `HTTP request errored: Get "https://a.example/x509: tls: NoSuchKey got 404 checksum": dial tcp 10.0.0.1:1: connect: connection refused`:   v1alpha1.FailureUnreachable,
		overHTTP + `unable to parse endpoint "https://a.example/\"x509: tls: \""`:                                                                            v1alpha1.FailureUnknown,
		overHTTP + `HTTP request errored: Get "http://checksum.example/x": dial tcp: lookup checksum.example on 10.96.0.10:53: no such host`:                 v1alpha1.FailureUnreachable,
		overHTTP + `HTTP request errored: Get "http://certificate.example/x": dial tcp: lookup certificate.example: no such host`:                            v1alpha1.FailureUnreachable,
		pull + `pinging container registry unauthorized.example: Get "https://unauthorized.example/v2/": dial tcp 10.0.0.1:443: connect: connection refused`: v1alpha1.FailureUnreachable,
		pull + `reading manifest checksum in quay.io/unauthorized/lab-404: received unexpected HTTP status: 503 Service Unavailable`:                         v1alpha1.FailureUnreachable,
		pull + `initializing source docker://quay.io/lab-404/certificate:checksum: something else`:                                                           v1alpha1.FailureUnknown,
		`persistentvolumeclaims "exceeded quota" is forbidden: no`:                                                                                           v1alpha1.FailureUnknown,
		overS3[:len("Unable to connect to s3 data source: ")] + `could not get s3 object: "labs/checksum-404.qcow2": AccessDenied: Access Denied`:            v1alpha1.FailureAccessDenied,
	}
	for text, want := range cases {
		assert.Equal(t, want, plan.ReasonOf(text), "%q", text)
	}
}

func volume(phase cdiv1.DataVolumePhase, status corev1.ConditionStatus, reason, message string) *cdiv1.DataVolume {
	dv := &cdiv1.DataVolume{}
	dv.Status.Phase = phase
	dv.Status.Conditions = []cdiv1.DataVolumeCondition{{Type: cdiv1.DataVolumeRunning, Status: status, Reason: reason, Message: message}}
	return dv
}

// The recorded transcript of a good import, the scratch-space turn and its way back included, never shows a failure.
func TestAGoodImportNeverLooksFailed(t *testing.T) {
	type row struct {
		phase           cdiv1.DataVolumePhase
		status          corev1.ConditionStatus
		reason, message string
	}
	const needsScratch = "scratch space required and none found"
	rows := []row{
		{"", "False", "", ""}, {"Pending", "False", "", ""}, {"PendingPopulation", "False", "", ""}, {"ImportScheduled", "False", "", ""},
		{"ImportScheduled", "False", "ErrStartingPod", "Error starting pod 'importer-prime-1': For more information, request access to cdi-deploy logs from your sysadmin"},
		{"ImportScheduled", "False", "Unschedulable", "Importer pod cannot be scheduled"},
		{"ImportScheduled", "False", "ContainerCreating", ""}, {"ImportInProgress", "True", "Pod is running", ""},
		{"ImportInProgress", "False", "Scratch space required", needsScratch},
		{"ImportScheduled", "False", "Scratch space required", needsScratch},
		{"ImportScheduled", "False", "Unschedulable", "Importer pod cannot be scheduled"},
		{"ImportScheduled", "False", "ContainerCreating", ""}, {"ImportInProgress", "True", "Pod is running", ""},
		{"ImportInProgress", "False", "Completed", "Import Complete"}, {"Succeeded", "False", "Completed", "Import Complete"},
	}
	for i, r := range rows {
		_, message, failed := plan.FailureOf(volume(r.phase, r.status, r.reason, r.message), nil)
		assert.False(t, failed, "row %d: %s", i, message)
	}
	_, _, failed := plan.FailureOf(&cdiv1.DataVolume{}, nil)
	assert.False(t, failed, "no status yet")
}

func TestFailureOf(t *testing.T) {
	restarted := volume(cdiv1.ImportInProgress, "True", "Pod is running", "")
	restarted.Status.RestartCount = 1
	done := volume(cdiv1.Succeeded, "False", "Completed", "Import Complete")
	done.Status.RestartCount = 1
	quota := &cdiv1.DataVolume{}
	quota.Status.Conditions = []cdiv1.DataVolumeCondition{{Type: cdiv1.DataVolumeBound, Status: "False", Reason: "ErrExceededQuota", Message: "exceeded quota: small"}}
	pod := func(state corev1.ContainerStatus) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{state}}}
	}
	last := pod(corev1.ContainerStatus{LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message404}}})
	secret := pod(corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: `secret "keys" not found`}}})

	cases := map[string]struct {
		dv      *cdiv1.DataVolume
		pod     *corev1.Pod
		reason  v1alpha1.FailureReason // empty: not failed
		message string
	}{
		"404":                                    {volume("ImportInProgress", "False", "Error", message404), nil, v1alpha1.FailureSourceNotFound, message404},
		"404, the pod of which never runs again": {volume("ImportScheduled", "False", "Error", message404), nil, v1alpha1.FailureSourceNotFound, message404},
		"cut":                                    {volume("ImportInProgress", "False", "ImagePullFailed", inScratch+"failed to pull image: unexpected EOF"), nil, v1alpha1.FailureUnreachable, inScratch + "failed to pull image: unexpected EOF"},
		"checksum":                               {volume("Failed", "False", "ChecksumError", messageChecksum), nil, v1alpha1.FailureChecksumMismatch, messageChecksum},
		"checksum without words":                 {volume("Failed", "False", "ChecksumError", ""), nil, v1alpha1.FailureChecksumMismatch, "the importer ended with ChecksumError"},
		"out of memory":                          {volume("ImportInProgress", "False", "OOMKilled", ""), nil, v1alpha1.FailureUnknown, "the importer ended with OOMKilled"},
		"phase Failed and nothing else":          {&cdiv1.DataVolume{Status: cdiv1.DataVolumeStatus{Phase: cdiv1.Failed}}, nil, v1alpha1.FailureUnknown, "the importer ended with Failed"},
		"a restart":                              {restarted, nil, v1alpha1.FailureUnknown, "the importer ended with Restarted"},
		"a restart, and the pod tells why":       {restarted, last, v1alpha1.FailureSourceNotFound, message404},
		"a restart before it has Succeeded":      {done, nil, "", ""},
		"quota":                                  {quota, nil, v1alpha1.FailureQuotaExceeded, "exceeded quota: small"},
		"a secret that is missing":               {volume("ImportScheduled", "False", "CreateContainerConfigError", ""), secret, v1alpha1.FailureSecretMissing, `secret "keys" not found`},
		"while it runs, old words are old":       {volume("ImportInProgress", "True", "Pod is running", message404), nil, "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			reason, message, failed := plan.FailureOf(c.dv, c.pod)
			assert.Equal(t, c.reason != "", failed)
			assert.Equal(t, c.reason, reason)
			assert.Equal(t, c.message, message)
		})
	}
}

func TestForeignWordsAreClipped(t *testing.T) {
	w := newWorld(func(format string, args ...any) { t.Fatalf(format, args...) })
	w.settle()
	w.admit()
	w.settle()
	w.cdi(cdiv1.ImportInProgress, "False", "Error", "one\ntwo\x00\t"+strings.Repeat("ä", 2000))
	w.settle()
	message := w.image.Status.LastFailure.Message
	assert.True(t, strings.HasPrefix(message, "one two  ää"), message[:20])
	assert.True(t, strings.HasSuffix(message, "ä..."))
	assert.LessOrEqual(t, len(message), 1024, "the CRD takes no more")
	assert.True(t, utf8.ValidString(message))
}
