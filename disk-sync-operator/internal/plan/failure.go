package plan

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// failureTable is closed: the first line whose pattern is in CDI's message, with names taken out, gives
// the reason. The messages are CDI v1.65's, those of its S3 and registry clients, and Kubernetes' own.
var failureTable = []struct {
	pattern *regexp.Regexp
	reason  v1alpha1.FailureReason
}{
	{regexp.MustCompile(`checksum (mismatch|validation failed)|invalid checksum|ChecksumError`), v1alpha1.FailureChecksumMismatch},
	{regexp.MustCompile(`DataVolume too small to contain image|(?i)virtual image size .* is larger than`), v1alpha1.FailureDiskTooSmall},
	{regexp.MustCompile(`(?s)Unable to convert source data to target format.*(Input/output error|signal: )`), v1alpha1.FailureUnknown},
	{regexp.MustCompile(`Invalid format|could not process image header|invalid backing file|[Bb]acking file|Failed to find VM disk image file|Unable to convert source data to target format`), v1alpha1.FailureInvalidFormat},
	{regexp.MustCompile(`exceeded quota|ErrExceededQuota`), v1alpha1.FailureQuotaExceeded},
	{regexp.MustCompile(`got (404|410)\b|NoSuchKey|NoSuchBucket|(?i)manifest unknown|name unknown|NotFound: Not Found|status code: 404`), v1alpha1.FailureSourceNotFound},
	{regexp.MustCompile(`got (401|403|407)\b|AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|EmptyStaticCreds|status code: 40[13]|(?i)unauthorized|authentication required|access denied|access to the resource is denied`), v1alpha1.FailureAccessDenied},
	{regexp.MustCompile(`x509: |tls: `), v1alpha1.FailureTLSFailed},
	{regexp.MustCompile(`got (408|425|429|5\d\d)\b|connection refused|connection reset|no such host|unexpected EOF|i/o timeout|TLS handshake timeout|unexpected HTTP status: 5\d\d|network is unreachable|no route to host|dial tcp|HTTP request errored|RequestError|server closed|status code: 5\d\d`), v1alpha1.FailureUnreachable},
	{regexp.MustCompile(`(secret|configmap).* not found`), v1alpha1.FailureSecretMissing},
}

// named are the parts that hold what users wrote (URLs, names of hosts and images): they must not decide anything.
var named = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[a-z][a-z0-9+.-]*://[^\s,]+|(lookup|container registry) \S+|reading manifest \S+ in \S+`)

// ReasonOf classifies an error message.
func ReasonOf(message string) v1alpha1.FailureReason {
	bare := named.ReplaceAllString(message, `""`)
	for _, line := range failureTable {
		if line.pattern.MatchString(bare) {
			return line.reason
		}
	}
	return v1alpha1.FailureUnknown
}

// harmless are the reasons of Running=False that belong to a good import: waiting, or the end. What is not listed
// here is the reason of a container that has failed.
var harmless = map[string]bool{
	"": true, "Pending": true, "ContainerCreating": true, "PodInitializing": true, "Unschedulable": true,
	"Scratch space required": true, "Completed": true, "Pod is running": true, "ErrImagePull": true,
	"ImagePullBackOff": true, "CreateContainerConfigError": true, "CreateContainerError": true, "InvalidImageName": true,
	errStartingPod: true,
}

// errStartingPod: the API server did not take the importer pod, as in a namespace so young that its ServiceAccount is not
// there yet. CDI goes on trying by itself, and nothing has been downloaded.
const errStartingPod = "ErrStartingPod"

// FailureOf says whether the attempt has failed, and why: phase Failed, Running=False with the reason of a failed
// container, a restart of it (the importer downloads from the start then: that would be a second download), or
// something that is missing and that the attempt cannot begin without.
func FailureOf(dv *cdiv1.DataVolume, importer *corev1.Pod) (reason v1alpha1.FailureReason, message string, failed bool) {
	running := condition(dv, cdiv1.DataVolumeRunning)
	switch {
	case dv.Status.Phase == cdiv1.Succeeded:
		return "", "", false // complete, whatever it took
	case running != nil && running.Status == corev1.ConditionFalse && !harmless[running.Reason]:
		return classify(running.Reason, running.Message)
	case dv.Status.Phase == cdiv1.Failed:
		return classify("Failed", conditionText(running))
	case dv.Status.RestartCount > 0:
		return classify("Restarted", lastWords(importer, conditionText(running)))
	}
	if bound := condition(dv, cdiv1.DataVolumeBound); bound != nil && bound.Reason == "ErrExceededQuota" {
		return v1alpha1.FailureQuotaExceeded, bound.Message, true
	}
	if waiting := waitingContainer(importer); waiting != nil && waiting.Reason == "CreateContainerConfigError" {
		return v1alpha1.FailureSecretMissing, waiting.Message, true
	}
	return "", "", false
}

func classify(reason, message string) (v1alpha1.FailureReason, string, bool) {
	if message == "" {
		message = "the importer ended with " + reason
	}
	if reason == "ChecksumError" {
		return v1alpha1.FailureChecksumMismatch, message, true
	}
	return ReasonOf(message), message, true
}

// lastWords are the termination message of the importer's last run, for failures too quick for CDI to show.
func lastWords(importer *corev1.Pod, otherwise string) string {
	if importer != nil && len(importer.Status.ContainerStatuses) > 0 {
		if last := importer.Status.ContainerStatuses[0].LastTerminationState.Terminated; last != nil && last.Message != "" {
			return last.Message
		}
	}
	return otherwise
}

func conditionText(c *cdiv1.DataVolumeCondition) string {
	if c == nil || c.Status == corev1.ConditionTrue {
		return ""
	}
	return c.Message
}

const maxMessage = 1024

// clip makes foreign words fit for a status: one line, printable, at most 1024 bytes.
func clip(message string) string {
	line := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, message)
	line = strings.TrimSpace(line)
	if len(line) <= maxMessage {
		return line
	}
	return strings.ToValidUTF8(line[:maxMessage-3], "") + "..."
}
