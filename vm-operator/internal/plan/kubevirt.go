package plan

import (
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// machineState is what is read of the status of KubeVirt's VirtualMachine.
type machineState struct {
	PrintableStatus string             `json:"printableStatus"`
	Conditions      []machineCondition `json:"conditions"`
	StartFailure    struct {
		ConsecutiveFailCount int64 `json:"consecutiveFailCount"`
	} `json:"startFailure"`
}

type machineCondition struct {
	Type    string                 `json:"type"`
	Status  metav1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message"`

	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
}

// machineOf reads the status; one that cannot be read is as good as none.
func machineOf(machine *unstructured.Unstructured) machineState {
	var read struct {
		Status machineState `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"status": machine.Object["status"]}, &read); err != nil {
		return machineState{}
	}
	return read.Status
}

func (m machineState) condition(kind string) *machineCondition {
	for i := range m.Conditions {
		if m.Conditions[i].Type == kind {
			return &m.Conditions[i]
		}
	}
	return nil
}

// is says that the condition has that status; false when there is no such condition.
func (m machineState) is(kind string, status metav1.ConditionStatus) bool {
	c := m.condition(kind)
	return c != nil && c.Status == status
}

// instancePhase is the phase of KubeVirt's VirtualMachineInstance.
func instancePhase(instance *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(instance.Object, "status", "phase")
	return phase
}

// creationFailures say what KubeVirt's texts mean when it cannot make the guest or its pod.
var creationFailures = []struct {
	text   string
	means  v1alpha1.VirtualMachineReason
	weight Weight
}{
	{"exceeded quota", v1alpha1.ReasonQuotaExceeded, Troubled},
	{"failed to locate network attachment definition", v1alpha1.ReasonNetworkMissing, Troubled},
	{"PVC ", v1alpha1.ReasonDiskLost, Troubled}, // does not exist, waiting for it to appear
}

// creationFailure is why KubeVirt cannot make the guest or its pod, or nil. Both conditions are tried again by KubeVirt.
func (m machineState) creationFailure() *Verdict {
	message := ""
	switch {
	case m.is("Failure", metav1.ConditionTrue):
		message = m.condition("Failure").Message
	case m.is("Synchronized", metav1.ConditionFalse):
		message = m.condition("Synchronized").Message
	default:
		return nil
	}
	for _, known := range creationFailures {
		if strings.Contains(message, known.text) {
			return new(bad(known.weight, known.means, "KubeVirt cannot make the guest: %s", Steady(message)))
		}
	}
	return new(bad(Troubled, v1alpha1.ReasonRefused, "KubeVirt cannot make the guest: %s", Steady(message)))
}
