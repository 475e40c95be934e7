// Package desired builds what a workspace consists of: pure functions from the Workspace (and those that may reach it) to whole
// objects.
//
//	Namespace         the workspace's own, where it has one
//	NetworkPolicies   who may talk to the members, and to whom they may; none with isolate: false
//	Services          names by which the members find each other
//	VirtualMachines   one for each entry
//	Deployments       one for each entry
//
// All of them are applied, sealed (see package drift): the same Workspace always gives the same objects, and an apply that is
// repeated changes nothing. Each is controlled by the Workspace, and has its UID in a label.
//
// What an author writes ends as a value where it belongs, in a virtual machine, a container, or a peer of a NetworkPolicy. It
// never ends in the Namespace, in an owner reference, in a finalizer, in a key of a label or annotation, or in a selector that
// decides which pods are members of what: those are made of the UID and of hashes.
package desired
