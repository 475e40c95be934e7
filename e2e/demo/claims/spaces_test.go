package claims_test

import (
	"strings"
	"testing"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/demo/claims"
	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func lesson(phase otv1alpha1.WorkspacePhase, message string) *otv1alpha1.Workspace {
	ws := &otv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: "lesson", UID: "uid-lesson"}}
	ws.Spec.VirtualMachines = []otv1alpha1.WorkspaceVirtualMachine{{Name: "database"}}
	ws.Spec.Containers = []otv1alpha1.WorkspaceContainer{{Name: "web"}}
	ws.Status.Phase, ws.Status.Message = phase, message
	return ws
}

func within(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ws-lesson", Name: name, UID: types.UID("uid-" + name)}
}

func member(phase otv1alpha1.VirtualMachinePhase) *otv1alpha1.VirtualMachine {
	vm := &otv1alpha1.VirtualMachine{ObjectMeta: within("database")}
	vm.OwnerReferences = []metav1.OwnerReference{{Kind: "Workspace", Name: "lesson", UID: "uid-lesson", Controller: new(true)}}
	vm.Spec.VMDiskImageRef, vm.Status.Phase = otv1alpha1.VMDiskImageReference{Namespace: "lab", Name: "a"}, phase
	return vm
}

func web(available int32) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: within("web"), Status: appsv1.DeploymentStatus{AvailableReplicas: available}}
}

func policyOf() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: within(otv1alpha1.WorkspacePolicy)}
}

// comes is a workspace that becomes Ready; goes has it deleted.
func (s *story) comes() {
	s.put(lesson("", ""))
	s.put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ws-lesson"}})
	s.put(policyOf())
	s.put(member(otv1alpha1.VirtualMachineProvisioning))
	s.image("a", otv1alpha1.VMDiskImageStatus{})
	s.put(lesson(otv1alpha1.WorkspaceProvisioning, "its image is Queued"))
	s.image("a", succeeded("a", 1))
	s.put(web(0))
	s.put(&corev1.Pod{ObjectMeta: within("web-1")})
	s.put(web(1))
	s.put(member(otv1alpha1.VirtualMachineReady))
	s.put(lesson(otv1alpha1.WorkspaceReady, ""))
}

func (s *story) leaves(order ...client.Object) {
	for _, o := range order {
		s.remove(o)
	}
	s.remove(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ws-lesson"}})
	s.remove(lesson("", ""))
}

func (s *story) whole() {
	s.comes()
	s.leaves(member(""), web(0), &corev1.Pod{ObjectMeta: within("web-1")}, policyOf())
}

func TestClaimsAboutWorkspacesHoldOrDoNot(t *testing.T) {
	named := func(claim func(claims.Run, string) claims.Verdict) func(claims.Run) claims.Verdict {
		return func(r claims.Run) claims.Verdict { return claim(r, "lesson") }
	}
	for name, c := range map[string]struct {
		claim func(claims.Run) claims.Verdict
		tell  func(*story)
		want  string // empty: it holds
	}{
		"a workspace that becomes Ready": {named(claims.Provisioned), (*story).whole, ""},
		"Ready before its virtual machine": {named(claims.Provisioned), func(s *story) {
			s.comes()
			s.put(member(otv1alpha1.VirtualMachineProvisioning))
			s.put(lesson(otv1alpha1.WorkspaceReady, "still"))
		}, "lesson was Ready, and database was not"},
		"Ready before its container": {named(claims.Provisioned), func(s *story) {
			s.comes()
			s.put(web(0))
			s.put(lesson(otv1alpha1.WorkspaceReady, "still"))
		}, "lesson was Ready, and web was not"},
		"never Ready": {named(claims.Provisioned), func(s *story) { s.put(lesson(otv1alpha1.WorkspaceProvisioning, "")) }, "did not become Ready"},

		"a policy that is first and last": {named(claims.Isolated), (*story).whole, ""},
		"a pod before the policy": {named(claims.Isolated), func(s *story) {
			s.put(lesson("", ""))
			s.put(&corev1.Pod{ObjectMeta: within("web-1")})
		}, "web-1 was made without the policy"},
		"a policy that goes before a pod": {named(claims.Isolated), func(s *story) {
			s.comes()
			s.leaves(member(""), web(0), policyOf(), &corev1.Pod{ObjectMeta: within("web-1")})
		}, "the policy went before  web-1"},
		"a policy that stays": {named(claims.Isolated), (*story).comes, "has left its policy"},

		"nothing is left": {named(claims.Gone), (*story).whole, ""},
		"a pod is left": {named(claims.Gone), func(s *story) {
			s.comes()
			s.leaves(member(""), web(0), policyOf())
		}, "ws-lesson/web-1 is still there"},
		"the workspace is still there": {named(claims.Gone), (*story).comes, "lesson did not come and go"},
		"its image goes, too": {named(claims.Gone), func(s *story) {
			s.whole()
			s.remove(&otv1alpha1.VMDiskImage{ObjectMeta: meta("a")})
		}, "the image lab/a is gone"},
		"its image still counts it": {named(claims.Gone), func(s *story) {
			s.whole()
			s.counts(otv1alpha1.PhaseSucceeded, "database")
		}, "still counts a virtual machine"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory()
			c.tell(s)
			verdict := c.claim(claims.Run{Events: s.events})
			if c.want == "" {
				assert.Empty(t, verdict.Faults)
				return
			}
			assert.Contains(t, strings.Join(verdict.Faults, "\n"), c.want)
		})
	}
}
