package invariant

import (
	"strings"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
)

// Quiet is I12: the events are those of a settled window, and the leader's Lease is all that may be among them.
func Quiet(_ Settings, events []history.Event) []Violation {
	f := &found{invariant: "I12"}
	for _, e := range events {
		leader := e.Resource == "leases" && !strings.HasPrefix(e.Name, otv1alpha1.DiskSyncSlotPrefix)
		// The API server renews Leases of its own, and looks after its tokens and addresses.
		ours := e.Namespace != "kube-system" && e.Resource != "endpointslices" && e.Resource != "masterleases" && e.Resource != "peerserverleases"
		if ours && !leader {
			f.add(e, "nothing was left to do")
		}
	}
	return f.list
}
