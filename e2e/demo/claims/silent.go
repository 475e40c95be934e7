package claims

import (
	"github.com/pelotech/open-terrain/e2e/demo/ledger"
	"github.com/pelotech/open-terrain/e2e/history"
)

// Second is a second look: another process of the vm-operator that knows nothing.
type Second struct {
	// After is the last revision before it began.
	After int64
	// Looks is how many times it has looked at a virtual machine, by its own count.
	Looks int
}

// Silent: another process that looked at every virtual machine again has changed nothing.
func Silent(r Run, second Second) Verdict {
	v := Verdict{Claim: "a second look at the virtual machines changes nothing"}
	writes := 0
	end := replay(r, func(e history.Event, l *ledger.Ledger) {
		written := ledger.WrittenByVMOperator(e)
		switch {
		case e.Revision <= second.After && written:
			writes++
		case e.Revision > second.After && (written || lostChild(e, l)):
			v.fault("revision %d: %s %s was changed", e.Revision, e.Kind, e.NamespacedName())
		}
	})
	machines := len(end.Machines())
	v.detail("%d changes had been made for %d virtual machines; the vm-operator was started again, looked at them %d times and made none", writes, machines, second.Looks)
	if writes == 0 || machines == 0 || second.Looks < machines {
		v.fault("%d changes before, and %d looks at %d virtual machines", writes, second.Looks, machines)
	}
	return v
}

// lostChild says that a child of a virtual machine was deleted. Who did it is not in the history.
func lostChild(e history.Event, l *ledger.Ledger) bool {
	return e.Deleted && e.Prev != nil && l.MachineOf(e.Prev) != nil
}
