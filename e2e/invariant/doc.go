// Package invariant says what must hold of the queue of disk images, as pure functions over a history of etcd: a
// total order of all changes of all objects, so that nothing is missed between two looks.
//
//	I1  Limit     never more downloads at once than the policy's concurrency; each under a slot, announced in status
//	I2  Order     slots go to the lowest ticket, and tickets follow the order of creation
//	I3  NoLoss    every image ends Succeeded or Failed, no slot stays held; Starvation: no slot is free beside a waiting image
//	I4  Attempts  at most retryLimit+1 DataVolumes for a revision, and status.attempts counts them
//	I5  Backoff   the wait before a retry, and never two DataVolumes of an image at once
//	I6  InUse     while virtual machines use an image, neither it nor what its artifact names goes
//	              References: at the end, the count is that of the virtual machines that there are and that are admitted
//	I7  Claimed   no disk of a virtual machine is made before its image counts it, admits it, and is protected
//	I8  NoOrphans nothing is left of images and virtual machines that are gone
//	I9  HandsOff  nothing is written or deleted that no image controls; Foreign: and nothing bears the operator's mark
//	I10 Truth     status says what is so
//	I12 Quiet     nothing is written when nothing is left to do
//	I14 DiskFirst KubeVirt's machine is made when its disk is there
//	I15 KeepsDisk nobody lets the disk of a guest go that runs
//	I16 OneOfEach a virtual machine never has two disks, two Secrets, or two of KubeVirt's machines
//	I17 NoSecrets a password is in Secrets only
//	I13           the end is that of the same story without faults: see the package endstate
//
// An active download is a DataVolume that a VMDiskImage controls, that exists (also while it is being deleted: its
// importer may still run), and that has not Succeeded.
package invariant

import (
	"fmt"
	"time"

	"github.com/pelotech/open-terrain/e2e/history"
)

// Settings are what the checks depend on besides the history.
type Settings struct {
	// Namespace of the operator: of its policy and its slots.
	Namespace string
	// Lag is how long after a write an operator may act on the state before it: on a former policy, or without an image
	// that has just come back to the queue. 0 demands that it knows everything at once.
	Lag time.Duration
	// Idle is how long a slot may be free while an image waits. 0 checks nothing: there may be no operator.
	Idle time.Duration
	// Slack is how much the moments that the recorder noted may be off.
	Slack time.Duration
	// Late is how much later than its time a retry may come back to the queue. 0 checks nothing.
	Late time.Duration
	// OrderedStarts demands that attempts begin in the order in which slots were granted. Where writes are made to
	// fail, one image may overtake another that already has its slot.
	OrderedStarts bool
	// Touched allows a first ticket that is higher than that of an image created later: who changes an image before it
	// has its ticket, which is its resourceVersion, sends it back.
	Touched bool
}

// Violation is one broken invariant.
type Violation struct {
	// Invariant is its name: I1 to I17.
	Invariant string
	// Event is the change with which it broke; the last one where the end of the history is wrong.
	Event history.Event
	// Text says what is wrong.
	Text string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s broken at revision %d by %s: %s", v.Invariant, v.Event.Revision, Line(v.Event), v.Text)
}

// Check is one invariant.
type Check func(Settings, []history.Event) []Violation

// Safety are the checks that hold at every revision of any history.
func Safety() []Check {
	return []Check{Limit, Order, Starvation, Attempts, Backoff, Truth, InUse, Foreign}
}

// All runs the checks of Safety, and those of a history that has come to its end.
func All(s Settings, events []history.Event) []Violation {
	var found []Violation
	for _, check := range append(Safety(), NoLoss, AttemptsInStatus, ReadyAtEnd) {
		found = append(found, check(s, events)...)
	}
	return found
}

// found collects violations of one invariant.
type found struct {
	invariant string
	list      []Violation
}

func (f *found) add(e history.Event, format string, args ...any) {
	f.list = append(f.list, Violation{Invariant: f.invariant, Event: e, Text: fmt.Sprintf(format, args...)})
}
