// Package harness runs a Kubernetes control plane and the built operators for tests, the demo and the bench.
//
// Start brings up etcd, kube-apiserver and kube-controller-manager from the binaries that scripts/test-env.sh
// names, with the real garbage collector and namespace controllers, or connects to a cluster that exists. It
// returns when an object whose owner is gone has really been collected: before that, a test that finds no orphans
// has shown nothing.
//
// Every server listens on the loopback interface. The processes end with the process that started them.
package harness
