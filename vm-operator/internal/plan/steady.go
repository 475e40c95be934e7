package plan

import (
	"regexp"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// changing are the parts of texts that change with each try, and would make each try a write of status: the random name of a
// pod, what of a quota is in use, and the ports and times of a call that failed.
var changing = []struct {
	part *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`pods "virt-launcher-[^"]*"`), "the launcher pod"},
	{regexp.MustCompile(`, used: .*?(, limited: )`), "$1"},
	{regexp.MustCompile(`(?s)(failed to call webhook|etcdserver: request timed out|context deadline exceeded|connection refused|connection reset by peer).*`), "$1"},
	{regexp.MustCompile(`((read|write) tcp )[^ ]+->[^ ]+:`), "$1:"},
}

// Steady is the text without what changes from one try to the next.
func Steady(message string) string {
	for _, c := range changing {
		message = c.part.ReplaceAllString(message, c.by)
	}
	return message
}

// keepText keeps the words of a verdict that was told already where they count what changes all the time: the nodes that do
// not take the guest.
func keepText(vm *v1alpha1.VirtualMachine, verdict Verdict) Verdict {
	told := meta.FindStatusCondition(vm.Status.Conditions, v1alpha1.ConditionVirtualMachineReady)
	if verdict.Reason == v1alpha1.ReasonUnschedulable && told != nil && told.Status == metav1.ConditionFalse &&
		told.Reason == string(verdict.Reason) && told.ObservedGeneration == vm.Generation {
		verdict.Message = told.Message
	}
	return verdict
}
