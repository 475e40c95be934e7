package objects

import (
	"encoding/json"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pelotech/open-terrain/e2e/sim/cdi/importer"
)

// terminationMessage is what an importer that ends with code 0 leaves behind.
type terminationMessage struct {
	ScratchSpaceRequired bool   `json:"scratchSpaceRequired"`
	Message              string `json:"message"`
}

// Outcome is what an importer pod has come to.
type Outcome int

// Outcomes of an importer pod.
const (
	Underway Outcome = iota // it waits or runs, or has failed and runs again
	Complete                // the disk is there
	NeedsScratch
	WrongChecksum // the wrong disk, for good
	Failed        // restartPolicy Never
)

// OutcomeOf a pod, by its status.
func OutcomeOf(pod *corev1.Pod) Outcome {
	message, ok := goodEnd(pod)
	switch {
	case pod.Status.Phase == corev1.PodFailed:
		return Failed
	case pod.Status.Phase != corev1.PodSucceeded || !ok:
		return Underway
	case message.ScratchSpaceRequired:
		return NeedsScratch
	case strings.Contains(message.Message, "checksum mismatch"):
		return WrongChecksum
	default:
		return Complete
	}
}

// goodEnd is the message of a container that has ended with code 0.
func goodEnd(pod *corev1.Pod) (m terminationMessage, ok bool) {
	if len(pod.Status.ContainerStatuses) == 0 {
		return m, false
	}
	ended := pod.Status.ContainerStatuses[0].State.Terminated
	if ended == nil || ended.ExitCode != 0 {
		return m, false
	}
	return m, json.Unmarshal([]byte(ended.Message), &m) == nil
}

// Observe changes the annotations as CDI does when it sees the importer pod.
func (v *View) Observe(pod *corev1.Pod) {
	outcome := OutcomeOf(pod)
	if outcome != NeedsScratch && outcome != WrongChecksum {
		v.Set(AnnPodPhase, string(pod.Status.Phase))
	}
	v.Set(AnnPodSchedulable, "true")
	for _, c := range pod.Status.Conditions {
		if pod.Status.Phase == corev1.PodPending && c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
			v.Set(AnnPodSchedulable, "false")
		}
	}
	if len(pod.Status.ContainerStatuses) > 0 {
		v.observeContainer(pod, pod.Status.ContainerStatuses[0])
	}
	switch outcome {
	case WrongChecksum:
		v.Set(AnnPodPhase, string(corev1.PodFailed), AnnFatalError, "true", AnnRunningReason, ReasonChecksum)
		v.SetBoundMessage(v.Annotations[AnnRunningMessage])
	case Complete:
		v.Set(AnnPopulatorProgress, ProgressDone)
		v.SetBoundMessage("Import Successful")
	}
}

func (v *View) observeContainer(pod *corev1.Pod, c corev1.ContainerStatus) {
	if n, _ := strconv.Atoi(v.Annotations[AnnPodRestarts]); int(c.RestartCount) >= n { // always a number that we wrote
		v.Set(AnnPodRestarts, strconv.Itoa(int(c.RestartCount)))
	}
	state := c.State
	switch {
	case state.Running != nil:
		v.SetRunning("true", ReasonPodRunning, "")
	case state.Waiting != nil && state.Waiting.Reason == "CrashLoopBackOff":
		v.Set(AnnRunning, "false") // reason and message stay
	case state.Waiting != nil:
		v.SetRunning("false", state.Waiting.Reason, state.Waiting.Message)
	case state.Terminated != nil:
		v.observeEnd(pod, state.Terminated)
	}
}

func (v *View) observeEnd(pod *corev1.Pod, ended *corev1.ContainerStateTerminated) {
	message, ok := goodEnd(pod)
	switch {
	case !ok:
		v.SetFailure(ended.Reason, ended.Message)
	case message.ScratchSpaceRequired:
		v.SetRunning("false", ReasonScratch, MessageScratch)
	default:
		v.SetRunning("false", ended.Reason, message.Message)
	}
}

// SetFailure shows the end of a container with an error.
func (v *View) SetFailure(reason, message string) {
	if strings.Contains(message, TextPullFailed) {
		reason = ReasonPullFailed
	}
	v.SetRunning("false", reason, importer.SimplifyMessage(message))
	v.SetBoundMessage(message)
}
