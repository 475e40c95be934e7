package trace_test

import (
	"testing"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/bench/trace"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func isMade(resource string, object client.Object) history.Event {
	return history.Event{Key: history.Key{Resource: resource, Namespace: object.GetNamespace(), Name: object.GetName()}, Object: object}
}

func childMeta(uid string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ws-a", Name: "child", Labels: map[string]string{otv1alpha1.LabelWorkspaceUID: uid}}
}

func aPolicy(uid string) history.Event {
	policy := &networkingv1.NetworkPolicy{ObjectMeta: childMeta(uid)}
	policy.Spec.PodSelector.MatchLabels = policy.Labels
	return isMade("networkpolicies", policy)
}

func aMember() history.Event {
	return isMade("virtualmachines", &otv1alpha1.VirtualMachine{ObjectMeta: childMeta("a")})
}

func TestJudgeWorkspaces(t *testing.T) {
	isolated := trace.JudgeWorkspaces([]history.Event{aPolicy("one-uid"), aMember()})
	assert.Equal(t, trace.Objects{"networkpolicies": 1, "virtualmachines": 1}, isolated.Created)
	assert.Empty(t, isolated.Violations(trace.Objects{"networkpolicies": 1, "virtualmachines": 1}))
	assert.Equal(t, []string{"0 deployments were made, not 1"}, isolated.Violations(trace.Objects{"deployments": 1}))

	open := trace.JudgeWorkspaces([]history.Event{aMember(), aPolicy("one-uid")})
	assert.Equal(t, []string{"1 members were made before a policy"}, open.Violations(nil))
	assert.Equal(t, isolated.Digest, open.Digest, "the order does not matter")

	elsewhere := aMember()
	elsewhere.Namespace = "lab"
	assert.Empty(t, trace.JudgeWorkspaces([]history.Event{elsewhere}).Created)
}

func TestDigest(t *testing.T) {
	digest := func(event history.Event) string { return trace.JudgeWorkspaces([]history.Event{event}).Digest }
	assert.Equal(t, digest(aPolicy("one-uid")), digest(aPolicy("another-uid")), "of another workspace of that name")
	address := isMade("services", &corev1.Service{ObjectMeta: childMeta("a"), Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", ClusterIPs: []string{"10.0.0.1"}}})
	assert.Equal(t, digest(isMade("services", &corev1.Service{ObjectMeta: childMeta("a")})), digest(address))
	other := aPolicy("one-uid")
	other.Object.(*networkingv1.NetworkPolicy).Spec.PodSelector = metav1.LabelSelector{}
	assert.NotEqual(t, digest(aPolicy("one-uid")), digest(other))
}

// tells is a workspace whose status goes through these messages; with an exclamation mark it becomes Ready, or is it no more.
func tells(messages ...string) []history.Event {
	var events []history.Event
	before := &otv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	for _, message := range messages {
		after := before.DeepCopy()
		after.Status.Message = message
		if message == "Ready!" {
			after.Status.Phase = otv1alpha1.WorkspaceReady
		}
		events = append(events, history.Event{Key: history.Key{Resource: "workspaces", Name: "a"}, Object: after, Prev: before})
		before = after
	}
	return events
}

func TestPaceOf(t *testing.T) {
	at := func(milliseconds ...int) (all []time.Time) {
		for _, ms := range milliseconds {
			all = append(all, time.Unix(0, 0).Add(time.Duration(ms)*time.Millisecond))
		}
		return all
	}
	for name, c := range map[string]struct {
		events []history.Event
		times  []time.Time
		want   trace.Pace
	}{
		"nothing is told":         {},
		"one each second":         {tells("1", "2", "3"), at(0, 1000, 2001), trace.Pace{Writes: 3, Most: 3, Between: 3}},
		"two at once":             {tells("1", "2", "3"), at(0, 1000, 1999), trace.Pace{Writes: 3, Most: 3, Between: 3, Hasty: 1}},
		"what matters may":        {tells("1", "Ready!"), at(0, 1), trace.Pace{Writes: 2, Most: 2, Between: 1}},
		"nothing changed":         {tells("1", "1"), at(0), trace.Pace{Writes: 1, Most: 1, Between: 1}},
		"not as many as requests": {tells("1", "2"), at(0), trace.Pace{Writes: 2, Most: 2, Unknown: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, *trace.PaceOf(c.events, map[string][]time.Time{"a": c.times}))
		})
	}
}
