package plan

import (
	"maps"
	"slices"
)

// surplus takes away what is ours and not wanted: the children of entries that were removed or renamed, Services without ports,
// and the policies of a workspace that is not to be isolated any more.
func surplus(v view) []Action {
	var actions []Action
	for _, child := range v.ownedOf(VirtualMachine, Deployment, Service, NetworkPolicy) {
		if v.want[child] == nil && v.live(child).GetDeletionTimestamp() == nil {
			actions = append(actions, Action{Delete, child})
		}
	}
	return actions
}

// ownedOf are the children of these kinds that the Workspace controls, whether they are wanted or not.
func (v view) ownedOf(kinds ...Kind) []Child {
	var all []Child
	for _, kind := range kinds {
		for _, name := range v.namesOf(kind) {
			if child := (Child{kind, name}); owned(v.Snapshot, v.live(child)) {
				all = append(all, child)
			}
		}
	}
	return all
}

func (v view) namesOf(kind Kind) []string {
	switch kind {
	case NetworkPolicy:
		return slices.Sorted(maps.Keys(v.Policies))
	case Service:
		return slices.Sorted(maps.Keys(v.Services))
	case VirtualMachine:
		return slices.Sorted(maps.Keys(v.VirtualMachines))
	case Deployment:
		return slices.Sorted(maps.Keys(v.Deployments))
	}
	return nil
}
