package apitest_test

import (
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var since = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

func TestModsSayWhatMatters(t *testing.T) {
	image := apitest.Image("a",
		apitest.In("other"), apitest.From(v1alpha1.SourceS3, "https://s3/b/k"), apitest.Attempts(2),
		apitest.SyncRequested("now"), apitest.ResourceVersion("7"),
		apitest.Condition(v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonQueued, since),
		apitest.Condition(v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonSyncing, since),
		apitest.Entered())

	assert.Equal(t, "other", image.Namespace)
	assert.Equal(t, "bucket-keys", image.Spec.SecretRef, "s3 needs a secret")
	assert.Equal(t, v1alpha1.PhaseSyncing, image.Status.Phase)
	assert.Equal(t, v1alpha1.RevisionOf(image), image.Status.Revision)
	assert.Equal(t, map[string]string{"Synced": "False Syncing"}, apitest.ConditionsOf(image.Status.Conditions))
	assert.Empty(t, apitest.Wrong(image.Status.Conditions, image.Generation))
}

func TestWrongNamesEveryProblem(t *testing.T) {
	good := metav1.Condition{Type: "Ready", Status: "True", Reason: "Fine", LastTransitionTime: since, ObservedGeneration: 1}
	bad := metav1.Condition{Type: "Ready", Status: "Yes", Reason: "not a word"}
	assert.Empty(t, apitest.Wrong([]metav1.Condition{good}, 1))
	assert.Equal(t, []string{
		"Ready: is there twice", "Ready: has no proper reason", "Ready: has no proper status",
		"Ready: has no lastTransitionTime", "Ready: is of another generation",
	}, apitest.Wrong([]metav1.Condition{good, bad}, 1))
	assert.Empty(t, apitest.ConditionOf(nil, "Ready"))
}

func TestMachineBuilder(t *testing.T) {
	vm := apitest.VirtualMachine("a",
		apitest.TemplateOf(apitest.Image("b")), apitest.MachineDeleted(since),
		apitest.MachineStatus(func(s *v1alpha1.VirtualMachineStatus) { s.Addresses = "10.0.0.2" }),
		apitest.MachineCondition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonStarting, since),
		apitest.MachineCondition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonRunning, since))
	assert.Equal(t, v1alpha1.VirtualMachineReady, vm.Status.Phase)
	assert.Equal(t, map[string]string{"Ready": "True Running"}, apitest.ConditionsOf(vm.Status.Conditions))
	assert.Empty(t, apitest.Wrong(vm.Status.Conditions, vm.Generation))
	assert.Equal(t, apitest.Image("b").Spec, *vm.Spec.VMDiskImageTemplate)
	assert.Equal(t, "10.0.0.2", vm.Status.Addresses)
	assert.True(t, vm.DeletionTimestamp.Equal(&since))
}

func TestWorkspaceBuilder(t *testing.T) {
	w := apitest.Workspace("a",
		apitest.Member("vm", "ubuntu"), apitest.Runs("web", "nginx", apitest.Listens(80, 443)), apitest.WorkspaceDeleted(since),
		apitest.WorkspaceUID("other"),
		apitest.WorkspaceSpec(func(s *v1alpha1.WorkspaceSpec) { s.Containers[0].Args = []string{"-v"} }),
		apitest.WorkspaceStatus(func(s *v1alpha1.WorkspaceStatus) { s.Containers = "1/1" }),
		apitest.WorkspaceCondition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.WorkspaceQueued, since),
		apitest.WorkspaceCondition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.WorkspaceAllReady, since))
	assert.Equal(t, v1alpha1.WorkspaceReady, w.Status.Phase)
	assert.Equal(t, map[string]string{"Ready": "True AllReady"}, apitest.ConditionsOf(w.Status.Conditions))
	assert.Empty(t, apitest.Wrong(w.Status.Conditions, w.Generation))
	assert.Equal(t, "ubuntu", w.Spec.VirtualMachines[0].Spec.VMDiskImageName)
	assert.Equal(t, int32(443), w.Spec.Containers[0].Ports[1].ContainerPort)
	assert.True(t, w.DeletionTimestamp.Equal(&since))
}
