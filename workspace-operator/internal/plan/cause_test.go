package plan_test

import (
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/plan"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func onDeployment(kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) step {
	return deployment("api", reason, func(_ *world, d *appsv1.Deployment) {
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: kind, Status: status, Reason: reason, Message: message}}
	})
}

// ended is a pod whose container has ended that often; it may be running again.
func ended(restarts int32, ready bool, reason string, code int32) step {
	return pod("api", "ended", func(_ *corev1.Pod, c *corev1.ContainerStatus) {
		c.Ready, c.RestartCount = ready, restarts
		c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code}
	})
}

func inInit(reason string) step {
	return pod("api", reason, func(p *corev1.Pod, _ *corev1.ContainerStatus) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Image: "init:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "denied"}}}}
	})
}

// What a container says of itself while its virtual machines are Ready.
func TestCausesOfContainers(t *testing.T) {
	cases := map[string]struct {
		is     step
		reason v1alpha1.WorkspaceReason
		says   string
		status v1alpha1.WorkspaceContainerState
	}{
		"pods that are being made": {pending("api"), v1alpha1.WorkspaceContainerStarting, "0 of 1 pods are ready", v1alpha1.WorkspaceContainerPending},
		"a quota, which only the ReplicaSet knows": {
			quota("api"), v1alpha1.WorkspaceQuotaExceeded,
			"A quota admits no more pods: a pod is forbidden: exceeded quota: small, requested: pods=1, limited: pods=3", v1alpha1.WorkspaceContainerFailed,
		},
		"a quota that the Deployment knows": {
			onDeployment(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "FailedCreate", `pods "x-1" is forbidden: exceeded quota: q`),
			v1alpha1.WorkspaceQuotaExceeded, "A quota admits no more pods: a pod is forbidden: exceeded quota: q", v1alpha1.WorkspaceContainerFailed,
		},
		"a level of Pod Security": {
			onDeployment(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "FailedCreate", `pods "x-1" is forbidden: violates PodSecurity "restricted:latest"`),
			v1alpha1.WorkspacePodsRefused, `Its pods are refused: a pod is forbidden: violates PodSecurity "restricted:latest"`, v1alpha1.WorkspaceContainerFailed,
		},
		"an image that is pulled in vain": {
			waits("api", "ErrImagePull", "not found"), v1alpha1.WorkspaceImagePullFailed, "Its image my-registry/api:1 cannot be pulled: not found", v1alpha1.WorkspaceContainerFailed,
		},
		"the wait for the next try of it, which says the same": {
			pullFails("api"), v1alpha1.WorkspaceImagePullFailed, "Its image my-registry/api:1 cannot be pulled: not found", v1alpha1.WorkspaceContainerFailed,
		},
		"an old kubelet, which does not": {
			waits("api", "ImagePullBackOff", `Back-off pulling image "my-registry/api:1"`), v1alpha1.WorkspaceImagePullFailed, "Its image my-registry/api:1 cannot be pulled", v1alpha1.WorkspaceContainerFailed,
		},
		"an image of an init container": {
			inInit("InvalidImageName"), v1alpha1.WorkspaceImagePullFailed, "Its image init:1 cannot be pulled: denied", v1alpha1.WorkspaceContainerFailed,
		},
		"a Secret that is missing, and may come": {
			waits("api", "CreateContainerConfigError", `secret "password" not found`), v1alpha1.WorkspaceConfigMissing,
			`A Secret or ConfigMap of its env is missing: secret "password" not found`, v1alpha1.WorkspaceContainerPending,
		},
		"a key that is missing": {
			waits("api", "CreateContainerConfigError", "couldn't find key a in ConfigMap ws-lab/b"), v1alpha1.WorkspaceConfigMissing,
			"A Secret or ConfigMap of its env is missing: couldn't find key a in ConfigMap ws-lab/b", v1alpha1.WorkspaceContainerPending,
		},
		"a user that does not fit": {
			waits("api", "CreateContainerConfigError", "container has runAsNonRoot and image will run as root"), v1alpha1.WorkspaceUnknown,
			"It cannot be started as it is configured: container has runAsNonRoot and image will run as root", v1alpha1.WorkspaceContainerFailed,
		},
		"a crash loop":             {crashes("api"), v1alpha1.WorkspaceCrashLooping, "It ends again and again: exit code 1", v1alpha1.WorkspaceContainerFailed},
		"memory that is too small": {ended(2, false, "OOMKilled", 137), v1alpha1.WorkspaceCrashLooping, "It ends again and again: OOMKilled, exit code 137", v1alpha1.WorkspaceContainerFailed},
		"a restart that is over":   {ended(2, true, "Error", 1), v1alpha1.WorkspaceContainerStarting, "0 of 1 pods are ready", v1alpha1.WorkspaceContainerPending},
		"no node": {
			noNode("api", "0/3 nodes are available: 3 Insufficient cpu."), v1alpha1.WorkspaceUnschedulable, "No node takes its pod: 0/3 nodes are available: 3 Insufficient cpu.", v1alpha1.WorkspaceContainerFailed,
		},
		"a container that is being made": {waits("api", "ContainerCreating", ""), v1alpha1.WorkspaceContainerStarting, "0 of 1 pods are ready", v1alpha1.WorkspaceContainerPending},
		"something else":                 {waits("api", "RunContainerError", "exec format error"), v1alpha1.WorkspaceUnknown, "The kubelet says RunContainerError: exec format error", v1alpha1.WorkspaceContainerFailed},
		"an evicted pod": {pod("api", "Evicted", func(p *corev1.Pod, _ *corev1.ContainerStatus) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "low on memory"
		}), v1alpha1.WorkspaceUnknown, "A pod has failed (Evicted): low on memory", v1alpha1.WorkspaceContainerFailed},
		"a roll-out that gets nowhere": {
			onDeployment(appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded", "x"), v1alpha1.WorkspaceUnknown,
			"Its pods do not get ready, for a reason that they do not tell", v1alpha1.WorkspaceContainerFailed,
		},
		"pods of before": {deployment("api", "surge", func(_ *world, d *appsv1.Deployment) {
			d.Status.Replicas, d.Status.AvailableReplicas = 2, 2
		}), v1alpha1.WorkspaceContainerStarting, "Pods of before are being stopped", v1alpha1.WorkspaceContainerPending},
		"a pod of before that does not stop is no cause": {deployment("api", "surge", func(w *world, d *appsv1.Deployment) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: epoch}, OwnerReferences: []metav1.OwnerReference{{UID: types.UID("set-" + d.Name), Controller: new(true)}}}}
			p.Status.Phase = corev1.PodFailed
			w.pods[d.Name] = []*corev1.Pod{p}
		}), v1alpha1.WorkspaceContainerStarting, "0 of 1 pods are ready", v1alpha1.WorkspaceContainerPending},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t.Fatalf)
			for _, step := range []step{(*world).granted, runs("db"), runs("tools"), c.is} {
				step(w)
				w.breathes()
			}
			w.passes(settings.StatusInterval)
			w.settle()
			require.NotNil(t, w.ws.Status.ResourceStatus)
			got := w.ws.Status.ResourceStatus.Containers[0]
			assert.Equal(t, v1alpha1.WorkspaceContainerStatus{Name: "api", Status: c.status, Message: c.says}, got)
			d := plan.Next(w.snapshot(), settings, w.now)
			assert.Equal(t, c.reason, d.Report.ContainersReady.Reason)
			assert.Contains(t, d.Report.Blocking.Message, `container "api": `)
		})
	}
}

// The newest ReplicaSet tells first: what is wrong with the pods of before is no matter any more.
func TestTheNewestReplicaSetTells(t *testing.T) {
	w := newWorld(t.Fatalf)
	for _, step := range []step{(*world).granted, runs("db"), runs("tools"), pullFails("api")} {
		step(w)
		w.breathes()
	}
	second := w.sets["api"][0].DeepCopy()
	second.UID, second.Annotations = "set-2", map[string]string{"deployment.kubernetes.io/revision": "10"}
	w.sets["api"] = append(w.sets["api"], second)
	pod := w.pods["api"][0].DeepCopy()
	pod.OwnerReferences[0].UID = "set-2"
	pod.Status.ContainerStatuses[0].Image = "my-registry/api:10"
	w.pods["api"] = append(w.pods["api"], pod)
	w.ws.Generation++ // so that what was told is not kept
	d := plan.Next(w.snapshot(), settings, w.now.Add(settings.StatusInterval))
	assert.Equal(t, "Its image my-registry/api:10 cannot be pulled: not found", d.Report.Containers[0].Message)
}

func TestSteady(t *testing.T) {
	for is, want := range map[string]string{
		`pods "api-5d-abcde" is forbidden: exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3`: "a pod is forbidden: exceeded quota: q, requested: pods=1, limited: pods=3",
		"admission webhook denied the request": "admission webhook denied the request",
	} {
		assert.Equal(t, want, plan.Steady(is))
	}
}
