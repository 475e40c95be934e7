// Package wsscenario holds the stories of the workspace-operator, told by it, the vm-operator and the disk-sync-operator as they
// were built, on a whole cluster, each installed with its chart and running with the rights of its ServiceAccount.
//
// By default the cluster is an embedded control plane with nodes of KWOK's, and with simulators of CDI, the CSI snapshotter and
// KubeVirt. With OT_E2E=existing it is the cluster of KUBECONFIG with the real ones, and with guests; OT_E2E_ADDRESS is then the
// address of this machine that pods reach, and OT_E2E_IMAGE an image that nodes can run, whose entry point goes on for ever and
// that has /bin/false. The stories are the same ones; those that need what only a simulator can be told to do are left out there.
package wsscenario
