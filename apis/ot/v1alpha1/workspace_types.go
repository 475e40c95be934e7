package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkspaceVirtualMachineSpec is a virtual machine of a workspace: all that a VirtualMachine can say, and its image by a name
// alone. Another image makes the virtual machine anew, with a new disk.
// +kubebuilder:validation:XValidation:rule="has(self.VMDiskImageName) != has(self.vmDiskImageRef)",message="give either VMDiskImageName (an image of the operator's image namespace) or vmDiskImageRef, and not both"
type WorkspaceVirtualMachineSpec struct {
	MachineSpec `json:",inline"`

	// VMDiskImageName is the VMDiskImage that the root disk is cloned from, in the operator's image namespace: short for a
	// vmDiskImageRef without a namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="VMDiskImageName must be the name of a VMDiskImage: lower-case letters, digits, '-' and '.'"
	// +optional
	VMDiskImageName string `json:"VMDiskImageName,omitempty"`

	// vmDiskImageRef is the VMDiskImage in full. Without a namespace it is one of the operator's image namespace.
	// +optional
	VMDiskImageRef *VMDiskImageReference `json:"vmDiskImageRef,omitempty"`
}

// WorkspaceVirtualMachine is an entry of a workspace that becomes a VirtualMachine.
type WorkspaceVirtualMachine struct {
	// name of the entry, unique in the workspace, containers included. Others of the workspace find it by that name where the
	// workspace has a namespace of its own: see status.namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must be a DNS label: lower-case letters, digits and '-', starting and ending with a letter or digit"
	// +required
	Name string `json:"name"`
	// spec of the virtual machine.
	// +required
	Spec WorkspaceVirtualMachineSpec `json:"spec"`
}

// WorkspaceSpec is the environment that is wanted: virtual machines and containers in a network of their own.
// +kubebuilder:validation:XValidation:rule="!has(self.virtualMachines) || !has(self.containers) || self.containers.all(c, !self.virtualMachines.exists(v, v.name == c.name))",message="a virtual machine and a container have the same name: names are unique in the workspace"
// +kubebuilder:validation:XValidation:rule="has(self.targetNamespace) == has(oldSelf.targetNamespace) && (!has(self.targetNamespace) || self.targetNamespace == oldSelf.targetNamespace)",message="targetNamespace is immutable: create another Workspace instead"
type WorkspaceSpec struct {
	// virtualMachines of the workspace. A VirtualMachine is made of each.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	VirtualMachines []WorkspaceVirtualMachine `json:"virtualMachines,omitempty"`

	// containers of the workspace. A Deployment is made of each, and a Service if it has ports.
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	// +optional
	Containers []WorkspaceContainer `json:"containers,omitempty"`

	// network says what may talk to the workspace, and what it may talk to. Left out, it is what the defaults of its fields
	// make it: the members of the workspace reach each other and DNS, and nothing else.
	// +optional
	Network *WorkspaceNetwork `json:"network,omitempty"`

	// targetNamespace is a namespace that exists, for the children of the workspace. It is used, and never made or deleted.
	// Default: a namespace of the workspace's own, ws- and its name, that comes and goes with it. It is immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="targetNamespace must be a DNS label: lower-case letters, digits and '-', starting and ending with a letter or digit"
	// +optional
	TargetNamespace string `json:"targetNamespace,omitempty"`

	// provisioningTimeout is how long the workspace may take to become Ready once it is admitted and its images are there,
	// before it is Failed. It goes on trying. Default: 30m; 0s waits for ever.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}(\\\\.[0-9]{1,9})?s)?([0-9]{1,6}ms)?$')",message="provisioningTimeout must be a duration such as 30m or 2h; 0s waits for ever"
	// +optional
	ProvisioningTimeout *metav1.Duration `json:"provisioningTimeout,omitempty"`
}

// Workspace is an isolated environment of virtual machines and containers as one object with one status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=workspaces,scope=Cluster,shortName=otws,categories=ot
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="VMs",type=string,JSONPath=`.status.virtualMachines`
// +kubebuilder:printcolumn:name="Containers",type=string,JSONPath=`.status.containers`
// +kubebuilder:printcolumn:name="Isolated",type=string,JSONPath=`.status.isolated`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS label of at most 63 characters: its namespace and its children are named after it"
type Workspace struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the environment that is wanted.
	// +required
	Spec WorkspaceSpec `json:"spec"`
	// status is where the workspace stands.
	// +optional
	Status WorkspaceStatus `json:"status,omitempty"`
}

// WorkspaceList is a list of Workspace.
//
// +kubebuilder:object:root=true
type WorkspaceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Workspace `json:"items"`
}
