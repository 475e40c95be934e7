// Package scenario holds the stories of the disk-sync-operator, told by the operator that was built, on a whole cluster.
//
// By default the cluster is an embedded control plane, with simulators of CDI and of the CSI snapshotter. With
// OT_E2E=existing, as make e2e sets it, it is the cluster of KUBECONFIG with the real ones; OT_E2E_ADDRESS is then the
// address of this machine that pods reach, where the servers of images listen. The stories are the same ones.
package scenario
