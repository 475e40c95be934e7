// Package claims says what a run of the demo must have kept: each claim is a function over the recorded history and over
// what the servers counted. None of them asks the operator, and none looks at samples: the history has every change.
package claims

import (
	"fmt"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/demo/ledger"
	"github.com/pelotech/open-terrain/e2e/history"
	"k8s.io/apimachinery/pkg/types"
)

// Run is what happened.
type Run struct {
	// Events in the order in which they happened.
	Events []history.Event
	// Expected says how each image has to end.
	Expected map[types.NamespacedName]Expectation
	// Counted is what the servers counted for each image that is downloaded at all.
	Counted map[types.NamespacedName]Count
}

// Expectation is how an image has to end.
type Expectation struct {
	Phase otv1alpha1.Phase
	// Reason of the last failure, also where a later attempt succeeded; empty for none.
	Reason otv1alpha1.FailureReason
	// Attempts that it takes.
	Attempts int
}

// Count is what a server counted for one image.
type Count struct {
	// Gets is the number of GETs for the whole file. CDI makes at most two in an attempt: a first look, dropped after
	// a few bytes, and the download.
	Gets int
	// Whole is how many of them were sent to the end.
	Whole int
	// Bytes sent, of a file of Size bytes; both 0 where there is no file.
	Bytes, Size int64
}

// Verdict is what became of a claim.
type Verdict struct {
	// Claim in a few words.
	Claim string
	// Details are the figures, one a line.
	Details []string
	// Faults say what broke the claim; it held when there are none.
	Faults []string
}

// Held says that the claim held.
func (v Verdict) Held() bool { return len(v.Faults) == 0 }

func (v *Verdict) detail(format string, args ...any) {
	v.Details = append(v.Details, fmt.Sprintf(format, args...))
}

func (v *Verdict) fault(format string, args ...any) {
	v.Faults = append(v.Faults, fmt.Sprintf(format, args...))
}

// All checks every claim about a run in which each image has come to its first end.
func All(r Run) []Verdict {
	return []Verdict{Limit(r), Raised(r), Order(r), Fenced(r), Downloads(r), Attempts(r), Ends(r)}
}

// replay has look see each event with the state after it, and returns the state at the end.
func replay(r Run, look func(e history.Event, l *ledger.Ledger)) *ledger.Ledger {
	l := ledger.New()
	for _, e := range r.Events {
		l.Take(e)
		look(e, l)
	}
	return l
}
