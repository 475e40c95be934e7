package plan

import (
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// standsInTheWay says that an instance stands in the way of the spec: it has been starting for longer than the patience, and
// KubeVirt says that it would have to be restarted to be as its machine is now. KubeVirt does not do so by itself: what no
// node took before the change would be waited for, for ever. No guest is stopped by its deletion, for none has been started;
// KubeVirt makes another instance. That the change is younger than the instance keeps one that was made after it in place, whose
// machine still says what was true of the one before.
func standsInTheWay(s Snapshot, set Settings, now time.Time) (remove bool, wakeAt time.Time) {
	if s.Machine == nil || s.Instance == nil || !keeps(s) || !isWaiting(s) || !restarts(s.VM) {
		return false, time.Time{}
	}
	began := s.Instance.GetCreationTimestamp().Time
	c := machineOf(s.Machine).condition("RestartRequired")
	if c == nil || c.Status != metav1.ConditionTrue || c.LastTransitionTime.Time.Before(began) {
		return false, time.Time{}
	}
	if late := began.Add(patience(set)); now.Before(late) {
		return false, late
	}
	return true, time.Time{}
}

// isWaiting says that the machine's instance has no pod on a node yet. One that is Scheduled may be starting its guest.
func isWaiting(s Snapshot) bool {
	return metav1.IsControlledBy(s.Instance, s.Machine) && s.Instance.GetDeletionTimestamp() == nil && waitsForNode(s.Instance)
}

func waitsForNode(instance *unstructured.Unstructured) bool {
	switch instancePhase(instance) {
	case "", "Pending", "Scheduling":
		return true
	}
	return false
}

// restarts says that KubeVirt makes another instance when this one is gone.
func restarts(vm *v1alpha1.VirtualMachine) bool {
	wanted := vm.WantedStrategy()
	return wanted == v1alpha1.RunAlways || wanted == v1alpha1.RunRerunOnFailure
}
