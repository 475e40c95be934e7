package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// cause is why a container is not ready. The head is the same as long as the cause is; the tail may change with each look, as
// the count of the nodes that take no pod does.
type cause struct {
	weight     Weight
	reason     v1alpha1.WorkspaceReason
	head, tail string
	// until is when it is over if nothing happens; zero when that is not known.
	until time.Time
}

func because(weight Weight, reason v1alpha1.WorkspaceReason, head, tail string) *cause {
	return &cause{weight: weight, reason: reason, head: head, tail: tail}
}

const endsAgain = "It ends again and again"

// verdict keeps the tail that was told already: each change of it would be a write of status.
func (c *cause) verdict(s Snapshot, entry string) Verdict {
	told := toldOf(s.Workspace, entry)
	if c.tail != "" && strings.HasPrefix(told, c.head+": ") {
		return bad(c.weight, c.reason, "%s", told)
	}
	if c.tail != "" {
		return bad(c.weight, c.reason, "%s: %s", c.head, c.tail)
	}
	return bad(c.weight, c.reason, "%s", c.head)
}

// toldOf is what status says of the container, for this generation.
func toldOf(ws *v1alpha1.Workspace, entry string) string {
	if ws.Status.ResourceStatus == nil || ws.Status.ObservedGeneration != ws.Generation {
		return ""
	}
	for _, c := range ws.Status.ResourceStatus.Containers {
		if c.Name == entry {
			return c.Message
		}
	}
	return ""
}

// causeOf looks for the cause from the outside in: the pods that cannot be made, then those that there are, the newest
// ReplicaSet's first. nil when nothing is wrong so far.
func causeOf(v view, deployment *appsv1.Deployment) *cause {
	sets := newestFirst(v.ReplicaSets[deployment.Name])
	if c := podsRefused(deployment, sets); c != nil {
		return c
	}
	pods := podsOf(v.Pods[deployment.Name], sets)
	for _, look := range podCauses {
		for _, pod := range pods {
			if c := look(v, pod); c != nil {
				return c
			}
		}
	}
	for _, c := range deployment.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse && c.Reason == "ProgressDeadlineExceeded" {
			return because(Troubled, v1alpha1.WorkspaceUnknown, "Its pods do not get ready, for a reason that they do not tell", "")
		}
	}
	return nil
}

const revisionOfSet = "deployment.kubernetes.io/revision"

// newestFirst are the ReplicaSets that are to have pods, or have some.
func newestFirst(sets []*appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	sorted := slices.Clone(sets)
	slices.SortStableFunc(sorted, func(a, b *appsv1.ReplicaSet) int {
		x, y := a.Annotations[revisionOfSet], b.Annotations[revisionOfSet]
		if len(x) != len(y) { // whole numbers
			return len(y) - len(x)
		}
		return strings.Compare(y, x)
	})
	return sorted
}

// podsRefused reads why pods cannot be made. The Deployment does not always pass on what its ReplicaSets know.
func podsRefused(deployment *appsv1.Deployment, sets []*appsv1.ReplicaSet) *cause {
	for _, set := range sets {
		for _, c := range set.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue && set.DeletionTimestamp == nil {
				return refusedPods(c.Message)
			}
		}
	}
	for _, c := range deployment.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return refusedPods(c.Message)
		}
	}
	return nil
}

func refusedPods(message string) *cause {
	message = Steady(message)
	if strings.Contains(message, "exceeded quota") {
		return because(Troubled, v1alpha1.WorkspaceQuotaExceeded, "A quota admits no more pods", message)
	}
	return because(Troubled, v1alpha1.WorkspacePodsRefused, "Its pods are refused", message)
}

// changing are the parts of texts that change with each try: the random name of a pod, and what of a quota is in use.
var changing = []struct {
	part *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`pods "[^"]*"`), "a pod"},
	{regexp.MustCompile(`, used: .*?(, limited: )`), "$1"},
}

// Steady is the text without what changes from one try to the next.
func Steady(message string) string {
	for _, c := range changing {
		message = c.part.ReplaceAllString(message, c.by)
	}
	return message
}

// podsOf are the pods of the ReplicaSets, in their order, that are not being deleted.
func podsOf(pods []*corev1.Pod, sets []*appsv1.ReplicaSet) []*corev1.Pod {
	var sorted []*corev1.Pod
	for _, set := range sets {
		for _, pod := range pods {
			if pod.DeletionTimestamp == nil && metav1.IsControlledBy(pod, set) {
				sorted = append(sorted, pod)
			}
		}
	}
	return sorted
}

// podCauses in the order in which they count: the first that one of the pods has is told.
var podCauses = []func(view, *corev1.Pod) *cause{imagePull, configMissing, crashLooping, unschedulable, otherTrouble}

var pullReasons = []string{"ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"}

var pullPrefix = regexp.MustCompile(`^Back-off pulling image "[^"]*"(: ErrImagePull: )?`)

// imagePull: the kubelet tries, and backs off, in turns; what both say of the cause is the same.
func imagePull(_ view, pod *corev1.Pod) *cause {
	for _, c := range containersOf(pod) {
		if w := c.State.Waiting; w != nil && slices.Contains(pullReasons, w.Reason) {
			return because(Troubled, v1alpha1.WorkspaceImagePullFailed, fmt.Sprintf("Its image %s cannot be pulled", c.Image), pullPrefix.ReplaceAllString(w.Message, ""))
		}
	}
	return nil
}

// configMissing: what is missing may come with the next file that is applied.
func configMissing(_ view, pod *corev1.Pod) *cause {
	for _, c := range containersOf(pod) {
		if w := c.State.Waiting; w != nil && w.Reason == "CreateContainerConfigError" {
			if strings.Contains(w.Message, "not found") || strings.Contains(w.Message, "couldn't find key") {
				return because(Waits, v1alpha1.WorkspaceConfigMissing, "A Secret or ConfigMap of its env is missing", w.Message)
			}
			return because(Troubled, v1alpha1.WorkspaceUnknown, "It cannot be started as it is configured", w.Message)
		}
	}
	return nil
}

// crashLooping: also between two crashes, when the container is started again, or runs for a moment and is ready.
func crashLooping(v view, pod *corev1.Pod) *cause {
	for _, c := range containersOf(pod) {
		ended := c.LastTerminationState.Terminated
		if c.State.Terminated != nil {
			ended = c.State.Terminated
		}
		until := v.proven(c)
		backsOff := c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff"
		switch {
		case !backsOff && (c.RestartCount == 0 || ended == nil || c.Ready && !v.now.Before(until)):
		case ended == nil:
			return because(Troubled, v1alpha1.WorkspaceCrashLooping, endsAgain, "")
		default:
			return &cause{Troubled, v1alpha1.WorkspaceCrashLooping, endsAgain, exitOf(ended), until}
		}
	}
	return nil
}

// proven is when a container that runs again has done so for long enough to be believed. That is sooner than a trouble becomes a
// failure, so that one that ended once never is. Its start is told in whole seconds, and may be nearly one later.
func (v view) proven(c corev1.ContainerStatus) time.Time {
	if c.State.Running == nil {
		return time.Time{}
	}
	return c.State.Running.StartedAt.Add(time.Second + v.set.TroubleDebounce/2)
}

func exitOf(ended *corev1.ContainerStateTerminated) string {
	if ended.Reason == "" || ended.Reason == "Error" {
		return fmt.Sprintf("exit code %d", ended.ExitCode)
	}
	return fmt.Sprintf("%s, exit code %d", ended.Reason, ended.ExitCode)
}

func unschedulable(_ view, pod *corev1.Pod) *cause {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return because(Troubled, v1alpha1.WorkspaceUnschedulable, "No node takes its pod", c.Message)
		}
	}
	return nil
}

var startReasons = []string{"ContainerCreating", "PodInitializing", "CrashLoopBackOff"}

// otherTrouble is whatever else the kubelet says against a container: its own words.
func otherTrouble(_ view, pod *corev1.Pod) *cause {
	for _, c := range containersOf(pod) {
		if w := c.State.Waiting; w != nil && w.Reason != "" && !slices.Contains(startReasons, w.Reason) {
			return because(Troubled, v1alpha1.WorkspaceUnknown, "The kubelet says "+w.Reason, w.Message)
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return because(Troubled, v1alpha1.WorkspaceUnknown, "A pod has failed"+in(pod.Status.Reason), pod.Status.Message)
	}
	return nil
}

// in brackets, where there is something.
func in(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

func containersOf(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}
