package plan

import (
	"fmt"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
)

// Verdict is what a condition says, and how much that matters while the workspace is not Ready.
type Verdict struct {
	Good    bool
	Reason  v1alpha1.WorkspaceReason
	Message string
	Weight  Weight
}

// Weight is how a verdict that is not good leads to Failed; the higher, the worse.
type Weight int

const (
	// Patient does not: something else has a deadline of its own, or is waited for in a queue.
	Patient Weight = iota
	// Waits leads to Failed when provisioningTimeout has passed.
	Waits
	// Troubled does when it lasts: the state usually passes.
	Troubled
	// Final does at once.
	Final
)

func good(reason v1alpha1.WorkspaceReason, format string, args ...any) Verdict {
	return Verdict{Good: true, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func bad(weight Weight, reason v1alpha1.WorkspaceReason, format string, args ...any) Verdict {
	return Verdict{Weight: weight, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
