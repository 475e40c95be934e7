package controller

import (
	"testing"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/plan"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestWhatAWorkspaceSeesOfAPod(t *testing.T) {
	waiting := func(reason, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "api", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
		}
	}
	unschedulable := func(message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: message}}
		}
	}
	for name, c := range map[string]struct {
		from, to func(*corev1.Pod)
		want     bool
	}{
		"nothing":                    {nil, func(p *corev1.Pod) { p.ResourceVersion = "2" }, false},
		"its node":                   {nil, func(p *corev1.Pod) { p.Spec.NodeName = "n" }, false},
		"an address":                 {nil, func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.1" }, false},
		"its phase":                  {nil, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, true},
		"its deletion":               {nil, func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }, true},
		"a finalizer":                {nil, func(p *corev1.Pod) { p.Finalizers = []string{"f"} }, true},
		"no node takes it":           {nil, unschedulable("0/1 nodes"), true},
		"as many nodes do not":       {unschedulable("0/1 nodes"), unschedulable("0/2 nodes"), false},
		"an image that is not there": {nil, waiting("ErrImagePull", "not found"), true},
		"another try":                {waiting("ErrImagePull", "a"), waiting("ErrImagePull", "b"), false},
		"a crash loop":               {waiting("ContainerCreating", ""), waiting("CrashLoopBackOff", ""), true},
	} {
		t.Run(name, func(t *testing.T) {
			before := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", ResourceVersion: "1"}}
			if c.from != nil {
				c.from(before)
			}
			after := before.DeepCopy()
			c.to(after)
			assert.Equal(t, c.want, changedPod.Update(event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: before, ObjectNew: after}))
		})
	}
}

func TestWhatAWorkspaceSeesOfADeployment(t *testing.T) {
	progressing := func(updated int64, message string) appsv1.DeploymentCondition {
		return appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Message: message, LastUpdateTime: metav1.Unix(updated, 0)}
	}
	trimmed := func(mod func(*appsv1.Deployment)) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d", ResourceVersion: "1", ManagedFields: []metav1.ManagedFieldsEntry{{}}}}
		d.Status.Conditions = []appsv1.DeploymentCondition{progressing(1, "a")}
		mod(d)
		obj, err := trimDeployment(d)
		require.NoError(t, err)
		return obj.(*appsv1.Deployment)
	}
	for name, c := range map[string]struct {
		to   func(*appsv1.Deployment)
		want bool
	}{
		"its version and who wrote it": {func(d *appsv1.Deployment) { d.ResourceVersion, d.ManagedFields = "2", nil }, false},
		"the time of a condition":      {func(d *appsv1.Deployment) { d.Status.Conditions[0] = progressing(2, "a") }, false},
		"a condition":                  {func(d *appsv1.Deployment) { d.Status.Conditions[0] = progressing(1, "b") }, true},
		"its pods":                     {func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 1 }, true},
		"its labels":                   {func(d *appsv1.Deployment) { d.Labels = map[string]string{"l": "1"} }, true},
		"its spec":                     {func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := trimmed(func(*appsv1.Deployment) {}), trimmed(c.to)
			got := changed[appsv1.Deployment]().Update(event.TypedUpdateEvent[*appsv1.Deployment]{ObjectOld: before, ObjectNew: after})
			assert.Equal(t, c.want, got)
			assert.Equal(t, "1", before.ResourceVersion, "what is in the cache is left as it is")
		})
	}
}

func TestOnlyWhatOthersDoToAWorkspaceWakesIt(t *testing.T) {
	before := &v1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "u", Generation: 1, Finalizers: []string{"f"}}}
	for name, c := range map[string]struct {
		to   func(*v1alpha1.Workspace)
		want bool
	}{
		"our status":           {func(w *v1alpha1.Workspace) { w.Status.Phase = v1alpha1.WorkspaceReady }, false},
		"our finalizer":        {func(w *v1alpha1.Workspace) { w.Finalizers = append(w.Finalizers, v1alpha1.FinalizerWorkspace) }, false},
		"a finalizer less":     {func(w *v1alpha1.Workspace) { w.Finalizers = nil }, true},
		"the spec":             {func(w *v1alpha1.Workspace) { w.Generation = 2 }, true},
		"its deletion":         {func(w *v1alpha1.Workspace) { w.DeletionTimestamp = new(metav1.Now()) }, true},
		"another of that name": {func(w *v1alpha1.Workspace) { w.UID = "v" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			after := before.DeepCopy()
			c.to(after)
			assert.Equal(t, c.want, wanted.Update(event.TypedUpdateEvent[*v1alpha1.Workspace]{ObjectOld: before, ObjectNew: after}))
		})
	}
}

func TestWhatTheOperatorMakesIsNoNews(t *testing.T) {
	made := &appsv1.Deployment{}
	news := notOurMaking(isObserved)
	assert.False(t, news.Create(event.TypedCreateEvent[*appsv1.Deployment]{Object: made}))
	assert.True(t, news.Create(event.TypedCreateEvent[*appsv1.Deployment]{Object: made, IsInInitialList: true}))
	made.Status.ObservedGeneration = 1
	assert.True(t, news.Create(event.TypedCreateEvent[*appsv1.Deployment]{Object: made}))
	assert.False(t, notOurMaking(never[*corev1.Service]).Create(event.TypedCreateEvent[*corev1.Service]{Object: &corev1.Service{}}))
}

// A workspace is let in by those that name it when it has its namespace, and not before.
func TestWhatAWorkspaceSeesOfAFriend(t *testing.T) {
	placed := apitest.WorkspaceStatus(func(s *v1alpha1.WorkspaceStatus) {
		s.Namespace = &v1alpha1.WorkspaceNamespaceStatus{Name: "ws-a", UID: "n", Owned: true}
	})
	taken := apitest.WorkspaceStatus(func(s *v1alpha1.WorkspaceStatus) {
		s.Namespace = &v1alpha1.WorkspaceNamespaceStatus{Name: "ws-a", Owned: true}
	})
	for name, c := range map[string]struct {
		from, to *v1alpha1.Workspace
		want     bool
	}{
		"nothing":                    {apitest.Workspace("a"), apitest.Workspace("a"), false},
		"its namespace":              {apitest.Workspace("a"), apitest.Workspace("a", placed), true},
		"a namespace of others":      {apitest.Workspace("a"), apitest.Workspace("a", taken), false},
		"its namespace goes":         {apitest.Workspace("a", placed), apitest.Workspace("a", taken), true},
		"another one under its name": {apitest.Workspace("a"), apitest.Workspace("a", apitest.WorkspaceUID("b")), true},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, comesOrGoes.Update(event.TypedUpdateEvent[*v1alpha1.Workspace]{ObjectOld: c.from, ObjectNew: c.to}))
		})
	}
	ws := apitest.Workspace("w", apitest.WorkspaceSpec(func(s *v1alpha1.WorkspaceSpec) {
		s.Network.AllowFrom = []v1alpha1.WorkspaceFriend{{Workspace: "a"}, {Workspace: "b"}, {Workspace: "c"}}
	}))
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	there := fake.NewClientBuilder().WithScheme(scheme).WithObjects(apitest.Workspace("a", placed), apitest.Workspace("b", taken)).Build()
	s := &plan.Snapshot{Workspace: ws}
	require.NoError(t, observeFriends(t.Context(), look{one: there}, s))
	assert.Len(t, s.Friends, 1)
	assert.Contains(t, s.Friends, "a")
}
