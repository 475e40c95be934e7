package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// RunStrategy says when the guest runs. The names are KubeVirt's.
// +kubebuilder:validation:Enum=Always;RerunOnFailure;Once;Manual;Halted
type RunStrategy string

const (
	// RunAlways keeps the guest running, also after it shut itself down.
	RunAlways RunStrategy = "Always"
	// RunRerunOnFailure starts the guest again when it failed, not when it shut itself down.
	RunRerunOnFailure RunStrategy = "RerunOnFailure"
	// RunOnce starts the guest once.
	RunOnce RunStrategy = "Once"
	// RunManual leaves starting and stopping to virtctl.
	RunManual RunStrategy = "Manual"
	// RunHalted keeps the guest stopped.
	RunHalted RunStrategy = "Halted"
)

// SecretKeySelector is a key of a Secret in the namespace of the object.
type SecretKeySelector struct {
	// name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// key in the Secret.
	// +kubebuilder:default=password
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Key string `json:"key,omitempty"`
}

// VirtualMachineUser is an account that cloud-init makes in the guest at its first start. Field names are cloud-init's.
type VirtualMachineUser struct {
	// name of the account. What is no Linux login is made one ("demo user" becomes demo-user, with the name kept as its
	// full name); status.users says what became of it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	Name string `json:"name"`

	// plain_text_passwd is readable for everybody who may read the virtual machine: prefer passwordSecretRef. The guest
	// gets a hash.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	PlainTextPasswd string `json:"plain_text_passwd,omitempty"`

	// passwordSecretRef is a key of a Secret in the same namespace that holds the password. The guest gets a hash.
	// +optional
	PasswordSecretRef *SecretKeySelector `json:"passwordSecretRef,omitempty"`

	// hashed_passwd is the password as crypt(5) hashes it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	HashedPasswd string `json:"hashed_passwd,omitempty"`

	// lock_passwd forbids to log in with a password; default: true without a password, false with one.
	// +optional
	LockPasswd *bool `json:"lock_passwd,omitempty"`

	// sudo is a rule of sudoers, such as "ALL=(ALL) NOPASSWD:ALL".
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Sudo string `json:"sudo,omitempty"`

	// groups that the account is added to, separated by commas.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Groups string `json:"groups,omitempty"`

	// shell of the account; /bin/bash when it is left out.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Shell string `json:"shell,omitempty"`

	// ssh_authorized_keys are public keys that may log in.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=16384
	// +listType=atomic
	// +optional
	SSHAuthorizedKeys []string `json:"ssh_authorized_keys,omitempty"`
}

// VirtualMachineResources are what the guest sees.
type VirtualMachineResources struct {
	// cpu is the number of cores, as a Kubernetes quantity. A fraction is rounded up for the guest and asked of the node as
	// it is. Default: 1.
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`
	// memory of the guest, as a Kubernetes quantity (2Gi). The node gives some 270Mi more. Default: 1Gi.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
	// diskSize of the root disk, as a Kubernetes quantity (18Gi). A disk is never smaller than its image: status.disk.size
	// is what it is. Default: the image's.
	// +optional
	DiskSize *resource.Quantity `json:"diskSize,omitempty"`
}

// VirtualMachineInterface is a network interface of the guest on a Multus network.
type VirtualMachineInterface struct {
	// network is the NetworkAttachmentDefinition, as name or namespace/name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +required
	Network string `json:"network"`
	// ipAddress of the guest and the length of the network's prefix: 10.10.0.161/24. Without it the guest asks DHCP.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	IPAddress string `json:"ipAddress,omitempty"`
	// gateway is the default route. At most one interface may have one; the pod network's is then not used.
	// +kubebuilder:validation:MaxLength=45
	// +optional
	Gateway string `json:"gateway,omitempty"`
	// nameservers that the guest asks.
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=45
	// +listType=atomic
	// +optional
	Nameservers []string `json:"nameservers,omitempty"`
	// macAddress, six bytes with colons; default: one that follows from the virtual machine's UID, and stays.
	// +kubebuilder:validation:MaxLength=17
	// +optional
	MACAddress string `json:"macAddress,omitempty"`
}

// VMDiskImageReference names a VMDiskImage.
type VMDiskImageReference struct {
	// name of the VMDiskImage.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// namespace of the VMDiskImage; default: that of the virtual machine. In another namespace the image's
	// allowedNamespaces must admit the virtual machine's, and its author must have the right to use the image.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// VirtualMachineSpec is the virtual machine that is wanted.
type VirtualMachineSpec struct {
	// baseVm is recorded as the annotation pelotech.ot/base-vm of the KubeVirt VirtualMachine, and nothing else.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	BaseVM string `json:"baseVm,omitempty"`
	// baseVmVersion is recorded as the annotation pelotech.ot/base-vm-version.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	BaseVMVersion string `json:"baseVmVersion,omitempty"`
	// version is recorded as the annotation pelotech.ot/version.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Version string `json:"version,omitempty"`

	// ignoreOnDeploy makes disk and machine ready and does not start the guest: the virtual machine is Ready with reason
	// NotStarted.
	// +optional
	IgnoreOnDeploy bool `json:"ignoreOnDeploy,omitempty"`

	// name is the guest's host name; metadata.name when it is left out.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Name string `json:"name,omitempty"`

	// users that cloud-init makes at the first start.
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	// +optional
	Users []VirtualMachineUser `json:"users,omitempty"`

	// resources that the guest sees.
	// +optional
	Resources VirtualMachineResources `json:"resources,omitempty"`

	// interfaces on Multus networks, besides the pod network's.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=network
	// +optional
	Interfaces []VirtualMachineInterface `json:"interfaces,omitempty"`

	// podNetwork gives the guest an interface on the pod network (masquerade). Default: true.
	// +kubebuilder:default=true
	// +optional
	PodNetwork *bool `json:"podNetwork,omitempty"`

	// vmDiskImageRef is the disk image that the root disk is cloned from.
	// +required
	VMDiskImageRef VMDiskImageReference `json:"vmDiskImageRef"`

	// vmDiskImageTemplate makes the image of vmDiskImageRef if there is none. One that exists is used as it is: the condition
	// ImageMismatch says when it differs.
	// +optional
	VMDiskImageTemplate *VMDiskImageSpec `json:"vmDiskImageTemplate,omitempty"`

	// runStrategy says when the guest runs: Always, RerunOnFailure, Once, Manual or Halted.
	// +kubebuilder:default=Always
	// +optional
	RunStrategy RunStrategy `json:"runStrategy,omitempty"`

	// provisioningTimeout is how long the virtual machine may take to become Ready once its image is there, before it is
	// Failed. It goes on trying. Default: 30m; 0s waits for ever.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +optional
	ProvisioningTimeout *metav1.Duration `json:"provisioningTimeout,omitempty"`
}

// VirtualMachineImageStatus is the image as the virtual machine sees it.
type VirtualMachineImageStatus struct {
	// namespace of the VMDiskImage.
	// +required
	Namespace string `json:"namespace"`
	// name of the VMDiskImage.
	// +required
	Name string `json:"name"`
	// uid of the VMDiskImage; empty while there is none.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// phase of the VMDiskImage; empty while there is none.
	// +optional
	Phase Phase `json:"phase,omitempty"`
}

// VirtualMachineDiskStatus is the root disk.
type VirtualMachineDiskStatus struct {
	// dataVolume is the name of the DataVolume and of its claim.
	// +required
	DataVolume string `json:"dataVolume"`
	// uid of the DataVolume: another one is another disk.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// size of the disk: what resources.diskSize asks for, and never less than the image needs.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// revision of the image that the disk was cloned from.
	// +optional
	Revision string `json:"revision,omitempty"`
	// lostAt is when a disk that had been cloned was found to be gone. Another one was cloned in its place.
	// +optional
	LostAt *metav1.Time `json:"lostAt,omitempty"`
}

// VirtualMachineUserStatus is an account as the guest knows it.
type VirtualMachineUserStatus struct {
	// name in the spec.
	// +required
	Name string `json:"name"`
	// login that was made of it.
	// +required
	Login string `json:"login"`
}

// VirtualMachineInterfaceStatus is a network interface of the guest.
type VirtualMachineInterfaceStatus struct {
	// network is that of the spec, or pod.
	// +required
	Network string `json:"network"`
	// macAddress of the interface.
	// +optional
	MACAddress string `json:"macAddress,omitempty"`
	// ipAddress that the spec or the cluster gave it, without the prefix.
	// +optional
	IPAddress string `json:"ipAddress,omitempty"`
}

// VirtualMachineStatus is where the virtual machine stands.
type VirtualMachineStatus struct {
	// phase is Provisioning, Ready or Failed: a shadow of the conditions, for people.
	// +optional
	Phase VirtualMachinePhase `json:"phase,omitempty"`

	// message says what the virtual machine waits for, or why it failed.
	// +optional
	Message string `json:"message,omitempty"`

	// observedGeneration is the metadata.generation that this status was made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are ImageReady, DiskReady, VirtualMachineReady, Ready and Stalled; ImageMismatch and RestartRequired while
	// they are True.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// image that the disk is cloned from.
	// +optional
	Image *VirtualMachineImageStatus `json:"image,omitempty"`

	// disk of the guest.
	// +optional
	Disk *VirtualMachineDiskStatus `json:"disk,omitempty"`

	// users of the guest whose login is not the name in the spec.
	// +listType=map
	// +listMapKey=name
	// +optional
	Users []VirtualMachineUserStatus `json:"users,omitempty"`

	// interfaces of the guest.
	// +listType=atomic
	// +optional
	Interfaces []VirtualMachineInterfaceStatus `json:"interfaces,omitempty"`

	// addresses of the guest, one line for lists.
	// +optional
	Addresses string `json:"addresses,omitempty"`

	// printableStatus is KubeVirt's word for the state of the machine.
	// +optional
	PrintableStatus string `json:"printableStatus,omitempty"`

	// deadline is when the virtual machine will be Failed if it is not Ready by then; empty while there is none.
	// +optional
	Deadline *metav1.Time `json:"deadline,omitempty"`

	// troubledSince is when KubeVirt began to show a state that usually passes and has not yet: it is a failure only when it
	// lasts.
	// +optional
	TroubledSince *metav1.Time `json:"troubledSince,omitempty"`
}

// VirtualMachine is a KubeVirt virtual machine that waits for its disk image, and counts itself on it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=virtualmachines,scope=Namespaced,shortName=otvm,categories=ot
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.vmDiskImageRef.name`
// +kubebuilder:printcolumn:name="Image-Phase",type=string,JSONPath=`.status.image.phase`
// +kubebuilder:printcolumn:name="Addresses",type=string,JSONPath=`.status.addresses`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
type VirtualMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the virtual machine that is wanted.
	// +required
	Spec VirtualMachineSpec `json:"spec"`
	// status is where the virtual machine stands.
	// +optional
	Status VirtualMachineStatus `json:"status,omitempty"`
}

// VirtualMachineList is a list of VirtualMachine.
//
// +kubebuilder:object:root=true
type VirtualMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VirtualMachine `json:"items"`
}
