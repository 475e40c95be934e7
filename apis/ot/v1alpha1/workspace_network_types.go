package v1alpha1

import corev1 "k8s.io/api/core/v1"

// WorkspacePeer is somebody outside of the workspace: addresses, or a namespace by its name. Labels cannot be given: they are
// not what tells a friend from a stranger.
// +kubebuilder:validation:XValidation:rule="has(self.cidr) != has(self.namespace)",message="give either cidr or namespace"
// +kubebuilder:validation:XValidation:rule="!has(self.except) || has(self.cidr)",message="except needs cidr"
// +kubebuilder:validation:XValidation:rule="!has(self.except) || !has(self.cidr) || !isCIDR(self.cidr) || self.except.all(e, !isCIDR(e) || (cidr(self.cidr).containsCIDR(e) && cidr(e).prefixLength() > cidr(self.cidr).prefixLength()))",message="except must be inside of cidr, and smaller"
type WorkspacePeer struct {
	// cidr is a network, for example 192.0.2.0/24 or 0.0.0.0/0. The addresses that clouds serve credentials at are never
	// reachable, whatever it says.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self) == cidr(self).masked()",message="cidr must be a network and the length of its prefix, for example 192.0.2.0/24, or 192.0.2.7/32 for one address"
	// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || !(cidr('169.254.169.254/32').containsCIDR(cidr(self)) || cidr('fd00:ec2::254/128').containsCIDR(cidr(self)))",message="cidr is the address that clouds serve credentials at, which is never reachable"
	// +optional
	CIDR string `json:"cidr,omitempty"`
	// except are networks inside of cidr that are left out.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule="isCIDR(self) && cidr(self) == cidr(self).masked()",message="except must be networks and the lengths of their prefixes, for example 192.0.2.128/25"
	// +listType=set
	// +optional
	Except []string `json:"except,omitempty"`
	// namespace whose pods are meant, all of them.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace must be a DNS label: lower-case letters, digits and '-', starting and ending with a letter or digit"
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// WorkspacePolicyPort is a port, or a range of them, that a rule is about.
// +kubebuilder:validation:XValidation:rule="!has(self.endPort) || self.endPort >= self.port",message="endPort must not be less than port"
type WorkspacePolicyPort struct {
	// port is the number of the port, or the first of a range.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	Port int32 `json:"port"`
	// endPort is the last of a range.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	EndPort *int32 `json:"endPort,omitempty"`
	// protocol is TCP, UDP or SCTP. Default: TCP.
	// +kubebuilder:validation:Enum=TCP;UDP;SCTP
	// +kubebuilder:default=TCP
	// +optional
	Protocol corev1.Protocol `json:"protocol,omitempty"`
}

// WorkspaceIngressRule lets others reach the workspace.
type WorkspaceIngressRule struct {
	// from is who may. There is no rule for everybody: 0.0.0.0/0 says so.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +required
	From []WorkspacePeer `json:"from"`
	// ports that may be reached. Default: all.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Ports []WorkspacePolicyPort `json:"ports,omitempty"`
}

// WorkspaceEgressRule lets the workspace reach others.
type WorkspaceEgressRule struct {
	// to is who may be reached. There is no rule for everybody: 0.0.0.0/0 says so.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +required
	To []WorkspacePeer `json:"to"`
	// ports that may be reached. Default: all.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Ports []WorkspacePolicyPort `json:"ports,omitempty"`
}

// WorkspaceFriend is another workspace.
type WorkspaceFriend struct {
	// workspace is its name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="workspace must be the name of a Workspace: lower-case letters, digits and '-', starting and ending with a letter or digit"
	// +required
	Workspace string `json:"workspace"`
}

// WorkspaceNetwork says what may talk to the workspace, and what it may talk to. The members of a workspace always reach each
// other. Networks of Multus are outside of it: the condition NetworkIsolated tells.
// +kubebuilder:validation:XValidation:rule="self.isolate || !(has(self.allowFrom) || has(self.ingress) || has(self.egress))",message="allowFrom, ingress and egress have no meaning with isolate: false, where everything is allowed"
type WorkspaceNetwork struct {
	// isolate keeps everybody out, and the workspace in, but for what the other fields allow. With false there is no
	// NetworkPolicy. Default: true.
	// +kubebuilder:default=true
	// +optional
	Isolate *bool `json:"isolate,omitempty"`
	// allowDNS lets the workspace ask the cluster's DNS. Default: true.
	// +kubebuilder:default=true
	// +optional
	AllowDNS *bool `json:"allowDNS,omitempty"`
	// allowFrom are workspaces that may reach this one. Each of them needs an egress rule to the namespace of this one, too.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=workspace
	// +optional
	AllowFrom []WorkspaceFriend `json:"allowFrom,omitempty"`
	// ingress rules let others reach the workspace.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Ingress []WorkspaceIngressRule `json:"ingress,omitempty"`
	// egress rules let the workspace reach others; without one it reaches nothing but its own members and DNS.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Egress []WorkspaceEgressRule `json:"egress,omitempty"`
}
