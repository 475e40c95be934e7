package invariant

import (
	"bytes"
	"encoding/json"

	"github.com/pelotech/open-terrain/e2e/history"
	corev1 "k8s.io/api/core/v1"
)

// NoSecrets is I17: a word that was written into Secrets only is in nothing else.
func NoSecrets(word string) Check {
	return func(_ Settings, events []history.Event) []Violation {
		f := &found{invariant: "I17"}
		for _, e := range events {
			if _, secret := e.Object.(*corev1.Secret); e.Object == nil || secret {
				continue
			}
			raw, err := json.Marshal(e.Object)
			if err != nil || bytes.Contains(raw, []byte(word)) {
				f.add(e, "it holds what only Secrets may hold")
			}
		}
		return f.list
	}
}

// Machines runs the checks that hold at every revision of any history of virtual machines, and those of one that has come to
// its end.
func Machines(s Settings, events []history.Event) []Violation {
	var found []Violation
	for _, check := range append(MachineSafety(), References, MachinesAtEnd) {
		found = append(found, check(s, events)...)
	}
	return found
}

// MachineSafety are the checks of virtual machines that hold at every revision.
func MachineSafety() []Check {
	return []Check{Claimed, DiskFirst, KeepsDisk, OneOfEach, MachineTruth, InUse, Foreign, ForeignToMachines}
}
