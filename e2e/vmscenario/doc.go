// Package vmscenario holds the stories of the vm-operator, told by it and the disk-sync-operator as they were built, on a
// whole cluster, each installed with its chart.
//
// By default the cluster is an embedded control plane, with simulators of CDI, the CSI snapshotter and KubeVirt. With
// OT_E2E=existing it is the cluster of KUBECONFIG with the real ones, and with guests; OT_E2E_ADDRESS is then the address of
// this machine that pods reach. The stories are the same ones; those that need what only a simulator can be told to do are
// left out there.
package vmscenario
