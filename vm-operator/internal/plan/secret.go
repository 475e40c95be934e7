package plan

import (
	"slices"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/plan/drift"
)

// secretStep keeps the cloud-init Secret as it shall be, from the moment that there is, or will be, a disk to read it. Its
// verdict is Good when the machine can be made.
func secretStep(s Snapshot, disk step) step {
	refusal, refusedSecret := s.Refusals[Secret]
	switch {
	case s.Disk == nil && !slices.Contains(disk.actions, CreateDisk):
		return step{Verdict: bad(Waits, v1alpha1.ReasonWaiting, "Waiting for the disk")}
	case refusedSecret:
		return step{Verdict: refused(refusal)}
	case s.Unmakeable != nil:
		return step{Verdict: refused(*s.Unmakeable)}
	case s.Secret == nil && s.CloudInit == nil:
		return step{Verdict: bad(Waits, v1alpha1.ReasonWaiting, "Waiting for the disk")}
	case s.Secret == nil:
		return step{Verdict: good(v1alpha1.ReasonStarting, ""), actions: []Action{ApplySecret}}
	}
	return secretPresent(s)
}

func secretPresent(s Snapshot) step {
	switch {
	case !owned(s, s.Secret):
		return step{Verdict: bad(Final, v1alpha1.ReasonNameTaken,
			"The Secret %s does not belong to this virtual machine: delete or rename it", s.Secret.Name)}
	case s.Secret.DeletionTimestamp != nil:
		return step{Verdict: bad(Waits, v1alpha1.ReasonStarting, "The Secret %s is being deleted, and made again", s.Secret.Name)}
	case s.CloudInit != nil && len(drift.OfSecret(s.CloudInit, s.Secret)) > 0:
		return step{Verdict: good(v1alpha1.ReasonStarting, ""), actions: []Action{ApplySecret}}
	}
	return step{Verdict: good(v1alpha1.ReasonStarting, "")}
}
