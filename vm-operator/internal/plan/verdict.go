package plan

import (
	"fmt"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
)

// Verdict is what a condition says, and how much that matters while the VM is not Ready.
type Verdict struct {
	Good    bool
	Reason  v1alpha1.VirtualMachineReason
	Message string
	Weight  Weight
}

// Weight is how a verdict that is not good leads to Failed.
type Weight int

const (
	// Waits leads to Failed when provisioningTimeout has passed.
	Waits Weight = iota
	// Patient does not: something else has a deadline of its own, or somebody wants it so.
	Patient
	// Troubled does when it lasts: the state usually passes.
	Troubled
	// Final does at once.
	Final
)

func good(reason v1alpha1.VirtualMachineReason, format string, args ...any) Verdict {
	return Verdict{Good: true, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func bad(weight Weight, reason v1alpha1.VirtualMachineReason, format string, args ...any) Verdict {
	return Verdict{Weight: weight, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// weightOf is that of a refusal: a quota may have room in a moment, and a Secret may come with the next file that is applied.
func weightOf(reason v1alpha1.VirtualMachineReason) Weight {
	switch reason {
	case v1alpha1.ReasonSecretMissing:
		return Waits
	case v1alpha1.ReasonQuotaExceeded, v1alpha1.ReasonNetworkMissing:
		return Troubled
	}
	return Final
}

// refused is the verdict on a child that cannot be made.
func refused(r Refusal) Verdict { return bad(weightOf(r.Reason), r.Reason, "%s", r.Message) }
