package plan

import (
	"slices"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
)

// SecretApplied is the last apply of the cloud-init Secret that this process knows of.
type SecretApplied struct {
	Fingerprint string
	At          time.Time
}

// secretStep says whether the cloud-init Secret can be made, from the moment that there is, or will be, a disk. Its verdict is
// Good when the machine can be made.
func secretStep(s Snapshot, disk step) step {
	refusal, refusedSecret := s.Refusals[Secret]
	switch {
	case s.Disk == nil && !slices.Contains(disk.actions, CreateDisk):
		return step{Verdict: bad(Waits, v1alpha1.ReasonWaiting, "Waiting for the disk")}
	case refusedSecret:
		return step{Verdict: refused(refusal)}
	case s.Unmakeable != nil: // a Secret, or the right to read it, may come with the next file that is applied
		return step{Verdict: bad(Waits, s.Unmakeable.Reason, "%s", s.Unmakeable.Message)}
	case s.CloudInit == "":
		return step{Verdict: bad(Waits, v1alpha1.ReasonWaiting, "Waiting for the disk")}
	}
	return step{Verdict: good(v1alpha1.ReasonStarting, "")}
}

// secretWrite says whether the cloud-init Secret is to be applied, before the machine is, and when to look again for that
// alone. The Secret is never read: the right to do so would be one to read every Secret. So it is applied
//
//   - when another one is wanted than the machine's annotation says, or the machine is made;
//   - when the machine is changed while no guest runs: that may start it;
//   - when a guest takes long to start, which is what the lack of its Secret looks like: see overdue.
//
// Whoever runs has read it, and needs it no more: what becomes of it then is no matter.
func secretWrite(s Snapshot, secret, machine step, set Settings, now time.Time) (write bool, wakeAt time.Time) {
	if !secret.Good || s.Machine != nil && !keeps(s) {
		return false, time.Time{}
	}
	known := s.Applied.Fingerprint == s.CloudInit
	recent := known && now.Sub(s.Applied.At) < patience(set) // as when the machine is refused, and tried again
	changes := slices.Contains(machine.actions, ApplyMachine)
	switch {
	case s.Machine == nil:
		return changes && !recent, time.Time{}
	case s.Machine.GetAnnotations()[v1alpha1.AnnotationCloudInit] != s.CloudInit && !known:
		return true, time.Time{}
	case changes && !guestRuns(s):
		return !recent, time.Time{}
	}
	return overdue(s, set, now)
}

// keeps says that KubeVirt's machine is ours, and stays.
func keeps(s Snapshot) bool { return owned(s, s.Machine) && s.Machine.GetDeletionTimestamp() == nil }

// overdue says that a guest has been starting for longer than the patience, or twice, or four times that and so on, and that
// its Secret has not been applied since. So a Secret that somebody deleted is there again before the wait has doubled; and a
// guest that cannot start for other reasons costs few applies, which change nothing.
func overdue(s Snapshot, set Settings, now time.Time) (write bool, wakeAt time.Time) {
	if s.Instance == nil || !neverRan(s.Instance) {
		return false, time.Time{}
	}
	began, wait := s.Instance.GetCreationTimestamp().Time, patience(set)
	if began.IsZero() {
		return false, time.Time{}
	}
	if first := began.Add(wait); now.Before(first) {
		return false, first
	}
	for !now.Before(began.Add(2 * wait)) {
		wait *= 2
	}
	known := s.Applied.Fingerprint == s.CloudInit && !s.Applied.At.Before(began.Add(wait))
	return !known, began.Add(2 * wait)
}

// patience is how long the start of a guest may take before something seems to be wrong.
func patience(set Settings) time.Duration { return max(set.TroubleDebounce, time.Second) }

// CloudInitOf is what the machine shall say of its Secret: what is applied before it, or what it says already where that is
// not known, or was refused.
func CloudInitOf(s Snapshot) string {
	_, refusedSecret := s.Refusals[Secret]
	switch {
	case s.CloudInit != "" && !refusedSecret:
		return s.CloudInit
	case s.Machine != nil:
		return s.Machine.GetAnnotations()[v1alpha1.AnnotationCloudInit]
	}
	return ""
}

// Possible says that an action makes sense after what was refused before it: no machine is made without its Secret.
func Possible(s Snapshot, action Action) bool {
	_, refusedSecret := s.Refusals[Secret]
	return action != ApplyMachine || s.Machine != nil || !refusedSecret
}

// passwordAgain is when to look again for a password that the guest waits for. Nothing tells: to watch a Secret, even a
// single one, takes a right that namespaces do not give.
func passwordAgain(s Snapshot, machine step, now time.Time) time.Time {
	if s.Unmakeable != nil && !machine.Good && machine.Reason == s.Unmakeable.Reason {
		return now.Add(LookAgain)
	}
	return time.Time{}
}
