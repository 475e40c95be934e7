package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
)

// isolationStep keeps the policies as they shall be, before anything that they isolate is made or changed. It is Good when they
// are, or when none is wanted.
func isolationStep(v view, namespace step) step {
	if !v.Workspace.Isolates() {
		return step{usable: namespace.usable, Verdict: good(v1alpha1.WorkspaceNotIsolated, "The workspace is not isolated: network.isolate is false")}
	}
	there := func() Verdict { return good(v1alpha1.WorkspaceIsolated, "The network policies are there") }
	all := step{usable: namespace.usable, Verdict: there()}
	for _, child := range v.all(NetworkPolicy) {
		one := v.keep(child, there)
		if v.live(child) == nil && !namespace.usable {
			one = step{Verdict: bad(Waits, v1alpha1.WorkspaceWaiting, "Waiting for the namespace")}
		}
		all.usable = all.usable && one.usable
		all.actions = append(all.actions, one.actions...)
		if !one.Good && (all.Good || one.Weight > all.Weight) {
			all.Verdict = one.Verdict
		}
	}
	if !namespace.usable {
		all.actions = nil
	}
	return all
}

// isolated is what the condition NetworkIsolated says. It is about the truth, and not about Ready: a workspace that is not to
// be isolated is Ready, and so is one with networks that no policy reaches.
func isolated(s Snapshot, policies step) Verdict {
	switch around := secondaryNetworks(s.Workspace); {
	case !policies.Good:
		return policies.Verdict
	case !s.Workspace.Isolates():
		return bad(Patient, v1alpha1.WorkspaceNotIsolated, "%s", policies.Message)
	case len(around) > 0:
		return bad(Patient, v1alpha1.WorkspaceSecondaryNetworks,
			"The network policies are there; they do not reach the networks of Multus that %s", strings.Join(around, ", "))
	case !s.Workspace.OwnsNamespace():
		return good(v1alpha1.WorkspaceIsolated,
			"The network policy is there; what others allow the same pods in the namespace %s adds to it", s.Workspace.ChildNamespace())
	}
	return good(v1alpha1.WorkspaceIsolated, "The network policies are there")
}

// secondaryNetworks says which virtual machines are on which networks that go around the policies.
func secondaryNetworks(ws *v1alpha1.Workspace) []string {
	var all []string
	for _, entry := range ws.Spec.VirtualMachines {
		var networks []string
		for _, i := range entry.Spec.Interfaces {
			networks = append(networks, i.Network)
		}
		if slices.Sort(networks); len(networks) > 0 {
			all = append(all, fmt.Sprintf("the virtual machine %q is on (%s)", entry.Name, strings.Join(networks, ", ")))
		}
	}
	return all
}
