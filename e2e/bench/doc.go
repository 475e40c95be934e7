// Package bench measures each operator against a floor: a program that does the same work with the writes that cannot be
// saved. For an image these are five, for a VirtualMachine four and a share in the claim on its image, for a Workspace
// its children; beside that one stand kubectl and Helm, too. All run on the same
// kind of fresh control plane, against the same simulators and the same creators, one after the other within each round; what
// counts is the ratio within a round.
//
// What must hold however fast it is (limit and order of images, no disk without a claim) is judged by the history in etcd;
// requests are counted from the audit log by user agent. A row in which it did not hold is void.
package bench
