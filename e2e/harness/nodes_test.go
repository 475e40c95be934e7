package harness_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestNodes runs pods on nodes of KWOK's, made by the real controllers.
func TestNodes(t *testing.T) {
	cluster := start(t, harness.Options{CRDs: []string{}, Nodes: 2})
	c, err := cluster.Client("harness-test")
	require.NoError(t, err)
	for name, check := range map[string]func(*testing.T, client.Client, string){
		"a Deployment becomes available, its Service has endpoints, and all goes with its owner": deploymentRuns,
		"an image that cannot be pulled is tried again and again":                                imageIsMissing,
		"a container that ends at once is started again and again":                               containerCrashes,
		"a pod that is too large for the nodes is not scheduled":                                 podIsTooLarge,
		"a quota that does not admit pods is told by the ReplicaSet":                             quotaRefusesPods,
		"a pod that another one plays is left alone":                                             playedByOthers,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "nodes-"}}
			require.NoError(t, c.Create(t.Context(), namespace))
			check(t, c, namespace.Name)
		})
	}
}

func deployment(namespace string, mods ...func(*corev1.Container)) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	container := corev1.Container{Name: "web", Image: "web:1", Ports: []corev1.ContainerPort{{ContainerPort: 8080}}}
	for _, mod := range mods {
		mod(&container)
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{container}}},
		},
	}
}

// eventually looks for pods of which one is as it should be.
func eventually(t *testing.T, c client.Client, namespace, what string, holds func(*corev1.Pod) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		pods := &corev1.PodList{}
		require.NoError(t, c.List(context.Background(), pods, client.InNamespace(namespace)))
		for i := range pods.Items {
			if holds(&pods.Items[i]) {
				return true
			}
		}
		return false
	}, 30*time.Second, 50*time.Millisecond, "no pod %s", what)
}

func deploymentRuns(t *testing.T, c client.Client, namespace string) {
	web := deployment(namespace)
	require.NoError(t, c.Create(t.Context(), web))
	require.NoError(t, c.Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 8080}}},
	}))
	require.Eventually(t, func() bool {
		return c.Get(t.Context(), client.ObjectKeyFromObject(web), web) == nil && web.Status.AvailableReplicas == 2
	}, 30*time.Second, 50*time.Millisecond)
	require.Eventually(t, func() bool {
		slices := &discoveryv1.EndpointSliceList{}
		require.NoError(t, c.List(t.Context(), slices, client.InNamespace(namespace)))
		return len(slices.Items) == 1 && len(slices.Items[0].Endpoints) == 2
	}, 30*time.Second, 50*time.Millisecond)
	require.NoError(t, c.Delete(t.Context(), web))
	require.Eventually(t, func() bool {
		pods := &corev1.PodList{}
		require.NoError(t, c.List(t.Context(), pods, client.InNamespace(namespace)))
		return len(pods.Items) == 0
	}, 30*time.Second, 50*time.Millisecond, "the pods go")
}

func waitsFor(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Waiting != nil {
			return status.State.Waiting.Reason
		}
	}
	return ""
}

func imageIsMissing(t *testing.T, c client.Client, namespace string) {
	web := deployment(namespace, func(c *corev1.Container) { c.Image = "localhost:1/no-such-image:1" })
	require.NoError(t, c.Create(t.Context(), web))
	for _, reason := range []string{"ErrImagePull", "ImagePullBackOff", "ErrImagePull"} {
		eventually(t, c, namespace, reason, func(pod *corev1.Pod) bool { return waitsFor(pod) == reason })
	}
	before := web.DeepCopy()
	web.Spec.Template.Spec.Containers[0].Image = "web:1"
	require.NoError(t, c.Patch(t.Context(), web, client.MergeFrom(before)))
	require.Eventually(t, func() bool {
		return c.Get(t.Context(), client.ObjectKeyFromObject(web), web) == nil && web.Status.AvailableReplicas == 2 && web.Status.Replicas == 2
	}, 30*time.Second, 50*time.Millisecond, "it comes up when the image is another one")
}

func containerCrashes(t *testing.T, c client.Client, namespace string) {
	require.NoError(t, c.Create(t.Context(), deployment(namespace, func(c *corev1.Container) { c.Command = []string{"/bin/false"} })))
	eventually(t, c, namespace, "is in a crash loop", func(pod *corev1.Pod) bool {
		return waitsFor(pod) == "CrashLoopBackOff" && pod.Status.ContainerStatuses[0].RestartCount == 2 &&
			pod.Status.ContainerStatuses[0].LastTerminationState.Terminated.ExitCode == 1
	})
}

func podIsTooLarge(t *testing.T, c client.Client, namespace string) {
	require.NoError(t, c.Create(t.Context(), deployment(namespace, func(c *corev1.Container) {
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Ti")}
	})))
	eventually(t, c, namespace, "is unschedulable", func(pod *corev1.Pod) bool {
		for _, condition := range pod.Status.Conditions {
			if condition.Reason == corev1.PodReasonUnschedulable {
				return strings.HasPrefix(condition.Message, "0/2 nodes are available: 2 Insufficient memory")
			}
		}
		return false
	})
}

func quotaRefusesPods(t *testing.T, c client.Client, namespace string) {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "none"}}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	require.NoError(t, c.Create(t.Context(), quota))
	require.Eventually(t, func() bool {
		return c.Get(t.Context(), client.ObjectKeyFromObject(quota), quota) == nil && len(quota.Status.Hard) > 0
	}, 30*time.Second, 50*time.Millisecond)
	require.NoError(t, c.Create(t.Context(), deployment(namespace)))
	require.Eventually(t, func() bool {
		sets := &appsv1.ReplicaSetList{}
		require.NoError(t, c.List(t.Context(), sets, client.InNamespace(namespace)))
		return len(sets.Items) == 1 && len(sets.Items[0].Status.Conditions) == 1 && strings.Contains(sets.Items[0].Status.Conditions[0].Message, "exceeded quota: none")
	}, 30*time.Second, 50*time.Millisecond)
}

func playedByOthers(t *testing.T, c client.Client, namespace string) {
	played := pod("played-", "")
	played.Namespace, played.Spec.SchedulerName = namespace, "sim-kubevirt"
	require.NoError(t, c.Create(t.Context(), played))
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: played.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: "sim-node"},
	}
	require.NoError(t, c.SubResource("binding").Create(t.Context(), played, binding))
	time.Sleep(2 * time.Second)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(played), played))
	assert.Equal(t, corev1.PodPending, played.Status.Phase)
	assert.Empty(t, played.Status.ContainerStatuses)
	require.NoError(t, c.Delete(t.Context(), played))
	time.Sleep(time.Second)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(played), played), "its kubelet takes it away, and nobody else")
	require.NoError(t, c.Delete(t.Context(), played, client.GracePeriodSeconds(0)))
}
