package plan

import (
	"fmt"
	"unicode"
	"unicode/utf8"

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

// weightOf is that of a refusal: a quota may have room in a moment, and a namespace that is being deleted will be gone.
func weightOf(reason v1alpha1.WorkspaceReason) Weight {
	switch reason {
	case v1alpha1.WorkspaceNamespaceTerminating, v1alpha1.WorkspaceNamespaceMissing:
		return Waits
	case v1alpha1.WorkspaceQuotaExceeded:
		return Troubled
	}
	return Final
}

// worstOf is Good when all members are; else what the worst of them says, by name. Of those that are equally bad it is the
// first.
func worstOf(what string, members []Member) Verdict {
	if len(members) == 0 {
		return good(v1alpha1.WorkspaceNoMembers, "There is no %s", what)
	}
	all := good(v1alpha1.WorkspaceMembersReady, "All are ready")
	for _, m := range members {
		if !m.Good && (all.Good || m.Weight > all.Weight) {
			all = bad(m.Weight, m.Reason, "%s %q: %s", what, m.Name, lowered(m.Message))
		}
	}
	return all
}

// lowered is a sentence that goes on from another: names in capitals stay.
func lowered(message string) string {
	first, size := utf8.DecodeRuneInString(message)
	second, _ := utf8.DecodeRuneInString(message[size:])
	if !unicode.IsUpper(first) || !unicode.IsLower(second) && !unicode.IsSpace(second) {
		return message
	}
	return string(unicode.ToLower(first)) + message[size:]
}
