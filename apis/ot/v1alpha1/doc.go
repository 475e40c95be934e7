// Package v1alpha1 is the API group pelotech.ot/v1alpha1: the contract between the Open Terrain
// operators and their users. It holds types, constants and pure accessors, and imports nothing
// heavier than apimachinery.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package=applyconfiguration
// +groupName=pelotech.ot
package v1alpha1
