package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// WorkspacePort is a port of a container, and of its Service.
type WorkspacePort struct {
	// name of the port, for the Service. Default: the protocol and the number, such as tcp-8080.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]+(-[a-z0-9]+)*$') && self.matches('[a-z]')",message="name of a port must be at most 15 lower-case letters, digits and single '-', with a letter among them, for example http"
	// +optional
	Name string `json:"name,omitempty"`
	// containerPort is the number of the port, of the container and of the Service.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	ContainerPort int32 `json:"containerPort"`
	// protocol is TCP, UDP or SCTP. Default: TCP.
	// +kubebuilder:validation:Enum=TCP;UDP;SCTP
	// +kubebuilder:default=TCP
	// +optional
	Protocol corev1.Protocol `json:"protocol,omitempty"`
}

// WorkspaceKeySelector is a key of a Secret or a ConfigMap in the namespace of the workspace's children.
type WorkspaceKeySelector struct {
	// name of the Secret or ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be that of a Secret or ConfigMap: lower-case letters, digits, '-' and '.'"
	// +required
	Name string `json:"name"`
	// key in it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",message="key must be one of a Secret or ConfigMap: letters, digits, '-', '_' and '.'"
	// +required
	Key string `json:"key"`
}

// WorkspaceEnvSource is where the value of an environment variable comes from.
// +kubebuilder:validation:XValidation:rule="has(self.secretKeyRef) != has(self.configMapKeyRef)",message="valueFrom takes either secretKeyRef or configMapKeyRef"
type WorkspaceEnvSource struct {
	// secretKeyRef is a key of a Secret in the namespace of the workspace's children.
	// +optional
	SecretKeyRef *WorkspaceKeySelector `json:"secretKeyRef,omitempty"`
	// configMapKeyRef is a key of a ConfigMap in the namespace of the workspace's children.
	// +optional
	ConfigMapKeyRef *WorkspaceKeySelector `json:"configMapKeyRef,omitempty"`
}

// WorkspaceEnvVar is an environment variable of a container.
// +kubebuilder:validation:XValidation:rule="!has(self.value) || !has(self.valueFrom)",message="give either value or valueFrom, and not both"
type WorkspaceEnvVar struct {
	// name of the variable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z][-._a-zA-Z0-9]*$')",message="name of an environment variable must be letters, digits, '_', '-' and '.', and not begin with a digit, for example DATABASE_URL"
	// +required
	Name string `json:"name"`
	// value of the variable. It is no place for passwords: whoever may read the workspace can read it.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Value string `json:"value,omitempty"`
	// valueFrom takes the value from a Secret or ConfigMap.
	// +optional
	ValueFrom *WorkspaceEnvSource `json:"valueFrom,omitempty"`
}

// WorkspaceResourceList are amounts of what a node has, in quotes where they are plain numbers. Exponents are not allowed: to
// parse 1e-2147483647 takes the API server and the operators minutes.
type WorkspaceResourceList struct {
	// cpu in cores, as a Kubernetes quantity (500m).
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,3}(\\\\.[0-9]{1,3})?|[0-9]{1,6}m)$') && quantity(self).isGreaterThan(quantity('0')) && !quantity(self).isGreaterThan(quantity('512'))",message="cpu must be more than 0 and at most 512, for example 2 or 500m"
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`
	// memory, as a Kubernetes quantity (256Mi).
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,15}(\\\\.[0-9]{1,9})?([KMGT]i|[kMGT])?$') && !quantity(self).isLessThan(quantity('1Mi')) && !quantity(self).isGreaterThan(quantity('16Ti'))",message="memory must be at least 1Mi and at most 16Ti, for example 256Mi"
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
	// ephemeral-storage: what the container writes to its own file system and to its log, as a Kubernetes quantity (1Gi).
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,15}(\\\\.[0-9]{1,9})?([KMGT]i|[kMGT])?$') && quantity(self).isGreaterThan(quantity('0')) && !quantity(self).isGreaterThan(quantity('16Ti'))",message="ephemeral-storage must be more than 0 and at most 16Ti, for example 1Gi"
	// +optional
	EphemeralStorage *resource.Quantity `json:"ephemeral-storage,omitempty"`
}

// WorkspaceResources are what a container asks of its node, and the most that it gets.
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || !has(self.requests.cpu) || !has(self.limits.cpu) || quantity(self.requests.cpu).compareTo(quantity(self.limits.cpu)) <= 0",message="requests.cpu must not be more than limits.cpu"
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || !has(self.requests.memory) || !has(self.limits.memory) || quantity(self.requests.memory).compareTo(quantity(self.limits.memory)) <= 0",message="requests.memory must not be more than limits.memory"
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || !has(self.requests.ephemeral__dash__storage) || !has(self.limits.ephemeral__dash__storage) || quantity(self.requests.ephemeral__dash__storage).compareTo(quantity(self.limits.ephemeral__dash__storage)) <= 0",message="requests.ephemeral-storage must not be more than limits.ephemeral-storage"
type WorkspaceResources struct {
	// requests are what the node sets aside.
	// +optional
	Requests WorkspaceResourceList `json:"requests,omitzero"`
	// limits are the most that the container gets.
	// +optional
	Limits WorkspaceResourceList `json:"limits,omitzero"`
}

// WorkspacePullSecret is a Secret for a registry.
type WorkspacePullSecret struct {
	// name of a Secret of type kubernetes.io/dockerconfigjson in the namespace of the workspace's children.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be that of a Secret: lower-case letters, digits, '-' and '.'"
	// +required
	Name string `json:"name"`
}

// WorkspaceContainer is an entry of a workspace that becomes a Deployment, and a Service if it has ports.
type WorkspaceContainer struct {
	// name of the entry, unique in the workspace, virtual machines included. Others of the workspace find it by that name
	// where the workspace has a namespace of its own: http://api-server:8080.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="name of a container must be a DNS label that begins with a letter: lower-case letters, digits and '-', ending with a letter or digit"
	// +required
	Name string `json:"name"`

	// image of the container.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][-._:/@A-Za-z0-9]*$')",message="image must be the name of a container image, for example my-registry/api-server:3.1.0"
	// +required
	Image string `json:"image"`

	// ports that the container listens on. Its Service has the same.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.name) || self.exists_one(o, has(o.name) && o.name == p.name))",message="two ports have the same name"
	// +listType=map
	// +listMapKey=containerPort
	// +listMapKey=protocol
	// +optional
	Ports []WorkspacePort `json:"ports,omitempty"`

	// env are the environment variables of the container.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []WorkspaceEnvVar `json:"env,omitempty"`

	// command replaces the entry point of the image.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	// +optional
	Command []string `json:"command,omitempty"`

	// args replace the arguments of the image's entry point.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	// +optional
	Args []string `json:"args,omitempty"`

	// resources of each replica.
	// +optional
	Resources WorkspaceResources `json:"resources,omitzero"`

	// replicas are how many pods run. 0 stops the container, and it counts as ready. Default: 1.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=50
	// +kubebuilder:default=1
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// imagePullSecrets are for the registry of the image.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	ImagePullSecrets []WorkspacePullSecret `json:"imagePullSecrets,omitempty"`
}
