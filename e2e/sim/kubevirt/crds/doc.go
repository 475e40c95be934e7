// Package crds holds the CustomResourceDefinitions of KubeVirt that the operators know, and that of networks, for control
// planes on which the simulator plays KubeVirt. Descriptions and the older version v1alpha3 are left out: an API server
// starts sooner without them. KubeVirt's files are generated; that of networks is as
// github.com/k8snetworkplumbingwg/network-attachment-definition-client publishes it.
package crds

//go:generate go run ../../crds/extract kubevirt v1.8.0
