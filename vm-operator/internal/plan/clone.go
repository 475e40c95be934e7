package plan

import (
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/desired"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// diskCloning reads from the DataVolume what keeps CDI from cloning: KubeVirt would only show Provisioning. A DataVolume
// cannot be changed; one that failed, and would be made another way today, makes way for that.
func diskCloning(s Snapshot) step {
	failure := cloneFailure(s.Disk)
	if failure == nil {
		return step{Verdict: cloningVerdict(s, replaced(s), snapshotOf(s.Disk))}
	}
	if Usable(s) && outdated(s) && !guestRuns(s) {
		return step{
			Verdict:  bad(Waits, v1alpha1.ReasonDiskCloning, "The DataVolume %s cannot be cloned and is replaced: %s", s.Disk.Name, failure.Message),
			actions:  []Action{DeleteDisk},
			doubtful: true,
		}
	}
	return step{Verdict: *failure}
}

// snapshotOf is the name of the snapshot that the disk is cloned from.
func snapshotOf(disk *cdiv1.DataVolume) string {
	if source := disk.Spec.Source; source != nil && source.Snapshot != nil {
		return source.Snapshot.Name
	}
	return ""
}

func cloningVerdict(s Snapshot, lostNow bool, snapshot string) Verdict {
	if losing(s, lostNow) {
		return bad(Waits, v1alpha1.ReasonDiskLost, "The disk was lost; another one is being cloned from the snapshot %s", snapshot)
	}
	return bad(Waits, v1alpha1.ReasonDiskCloning, "The disk is being cloned from the snapshot %s", snapshot)
}

// cloneFailures say what CDI's conditions mean; the first that matches wins. Some pass by themselves.
var cloneFailures = []struct {
	reason, text string // either may be empty
	means        v1alpha1.VirtualMachineReason
	weight       Weight
}{
	{"ErrExceededQuota", "", v1alpha1.ReasonQuotaExceeded, Troubled},
	{"", "exceeded quota", v1alpha1.ReasonQuotaExceeded, Troubled},
	{"CloneValidationFailed", "", v1alpha1.ReasonCloneFailed, Final},
	{"CloneWithoutSource", "", v1alpha1.ReasonCloneFailed, Troubled}, // the image notices it, too
	{"", "not authorized", v1alpha1.ReasonNotAuthorized, Final},
	{"", "insufficient permissions", v1alpha1.ReasonNotAuthorized, Final},
	{"", "is forbidden", v1alpha1.ReasonNotAuthorized, Final},
	{"ErrClaimNotValid", "", v1alpha1.ReasonCloneFailed, Final},
	{"Error", "", v1alpha1.ReasonCloneFailed, Troubled}, // of a pod that copies; it is tried again
	{"", "failed to provision", v1alpha1.ReasonCloneFailed, Troubled},
}

// cloneFailure is what the DataVolume's conditions say against the clone, or nil.
func cloneFailure(disk *cdiv1.DataVolume) *Verdict {
	for _, known := range cloneFailures {
		for _, c := range disk.Status.Conditions {
			if c.Status == corev1.ConditionTrue || known.reason != "" && c.Reason != known.reason || !strings.Contains(c.Message, known.text) {
				continue
			}
			return new(bad(known.weight, known.means, "The DataVolume %s cannot be cloned: %s", disk.Name, c.Message))
		}
	}
	if disk.Status.Phase == cdiv1.Failed {
		return new(bad(Final, v1alpha1.ReasonCloneFailed, "The DataVolume %s has failed", disk.Name))
	}
	return nil
}

// outdated says that the DataVolume would be made from something else today, or with another size.
func outdated(s Snapshot) bool {
	want := desired.Disk(s.VM, s.Image)
	have, is := s.Disk.Spec.Source, want.Spec.Source
	if have == nil || have.Snapshot == nil || is == nil || is.Snapshot == nil || *have.Snapshot != *is.Snapshot {
		return true
	}
	asked, any := requested(want)
	had, some := requested(s.Disk)
	return any && (!some || asked.Cmp(had) != 0)
}

func requested(disk *cdiv1.DataVolume) (resource.Quantity, bool) {
	if disk.Spec.Storage == nil {
		return resource.Quantity{}, false
	}
	size, ok := disk.Spec.Storage.Resources.Requests[corev1.ResourceStorage]
	return size, ok
}
