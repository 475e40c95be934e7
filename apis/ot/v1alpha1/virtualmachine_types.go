package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be that of a Secret: lower-case letters, digits, '-' and '.'"
	// +required
	Name string `json:"name"`
	// key in the Secret; password when it is left out.
	// +kubebuilder:default=password
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",message="key must be one of a Secret: letters, digits, '-', '_' and '.'"
	// +optional
	Key string `json:"key,omitempty"`
}

// VirtualMachineUser is an account that cloud-init makes in the guest at its first start. Field names are cloud-init's.
// +kubebuilder:validation:XValidation:rule="[has(self.plain_text_passwd), has(self.passwordSecretRef), has(self.hashed_passwd)].filter(given, given).size() <= 1",message="give at most one of plain_text_passwd, passwordSecretRef and hashed_passwd"
// +kubebuilder:validation:XValidation:rule="!has(self.lock_passwd) || self.lock_passwd || has(self.plain_text_passwd) || has(self.passwordSecretRef) || has(self.hashed_passwd)",message="lock_passwd: false needs a password: passwordSecretRef, hashed_passwd or plain_text_passwd"
type VirtualMachineUser struct {
	// name of the account. What is no Linux login is made one ("demo user" becomes demo-user, with the name kept as its
	// full name); status.users says what became of it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Zl}\\\\p{Zp}]')",message="name must not contain line breaks or control characters"
	// +required
	Name string `json:"name"`

	// plain_text_passwd is readable for everybody who may read the virtual machine: prefer passwordSecretRef. The guest
	// gets a hash.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Zl}\\\\p{Zp}]')",message="plain_text_passwd must not contain line breaks or control characters"
	// +optional
	PlainTextPasswd string `json:"plain_text_passwd,omitempty"`

	// passwordSecretRef is a key of a Secret in the same namespace that holds the password. The guest gets a hash.
	// +optional
	PasswordSecretRef *SecretKeySelector `json:"passwordSecretRef,omitempty"`

	// hashed_passwd is the password as crypt(5) hashes it: $6$ (mkpasswd -m sha-512), $y$ and their like.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^\\\\$[0-9a-z]{1,8}\\\\$[./0-9A-Za-z$=,+-]{8,}$')",message="hashed_passwd must be a hash of crypt(5), such as mkpasswd -m sha-512 prints: $6$..."
	// +optional
	HashedPasswd string `json:"hashed_passwd,omitempty"`

	// lock_passwd forbids to log in with a password; default: true without a password, false with one.
	// +optional
	LockPasswd *bool `json:"lock_passwd,omitempty"`

	// sudo is a rule of sudoers, such as "ALL=(ALL) NOPASSWD:ALL".
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Zl}\\\\p{Zp}]')",message="sudo must not contain line breaks or control characters"
	// +optional
	Sudo string `json:"sudo,omitempty"`

	// groups that the account is added to, separated by commas.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Zl}\\\\p{Zp}]')",message="groups must not contain line breaks or control characters"
	// +optional
	Groups string `json:"groups,omitempty"`

	// shell of the account; /bin/bash when it is left out.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[^:\\\\p{Cc}\\\\p{Zl}\\\\p{Zp}]+$')",message="shell must be the path of a program, for example /bin/bash"
	// +optional
	Shell string `json:"shell,omitempty"`

	// ssh_authorized_keys are public keys that may log in.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=4096
	// +kubebuilder:validation:items:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Zl}\\\\p{Zp}]')",message="ssh_authorized_keys are public keys, one line each, without control characters"
	// +listType=atomic
	// +optional
	SSHAuthorizedKeys []string `json:"ssh_authorized_keys,omitempty"`
}

// VirtualMachineResources are what the guest sees. Exponents are not allowed in quantities: to parse 1e-2147483647 takes
// the API server and the operators minutes.
type VirtualMachineResources struct {
	// cpu is the number of cores, as a Kubernetes quantity. A fraction is rounded up for the guest and asked of the node as
	// it is. Default: 1.
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^([0-9]{1,3}(\\\\.[0-9]{1,3})?|[0-9]{1,6}m)$') && quantity(string(self)).isGreaterThan(quantity('0')) && !quantity(string(self)).isGreaterThan(quantity('512'))",message="cpu must be more than 0 and at most 512, for example 2 or 500m"
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`
	// memory of the guest, as a Kubernetes quantity (2Gi). The node gives some 270Mi more. Default: 1Gi.
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^[0-9]{1,15}(\\\\.[0-9]{1,9})?([KMGT]i|[kMGT])?$') && !quantity(string(self)).isLessThan(quantity('32Mi')) && !quantity(string(self)).isGreaterThan(quantity('16Ti'))",message="memory must be at least 32Mi and at most 16Ti, for example 2Gi"
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
	// diskSize of the root disk, as a Kubernetes quantity (18Gi). A disk is never smaller than its image: status.disk.size
	// is what it is. Default: the image's.
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^[0-9]{1,15}(\\\\.[0-9]{1,9})?([KMGT]i|[kMGT])?$') && quantity(string(self)).isGreaterThan(quantity('0')) && !quantity(string(self)).isGreaterThan(quantity('64Ti'))",message="diskSize must be more than 0 and at most 64Ti, for example 24Gi"
	// +optional
	DiskSize *resource.Quantity `json:"diskSize,omitempty"`
}

// VirtualMachineInterface is a network interface of the guest on a Multus network.
// +kubebuilder:validation:XValidation:rule="!has(self.gateway) || has(self.ipAddress)",message="gateway needs ipAddress: without one DHCP gives both"
// +kubebuilder:validation:XValidation:rule="!has(self.gateway) || !has(self.ipAddress) || !isIP(self.gateway) || !isCIDR(self.ipAddress) || (cidr(self.ipAddress).containsIP(self.gateway) && !(cidr(self.ipAddress).ip() == ip(self.gateway))) || (cidr(self.ipAddress).ip().family() == 6 && ip(self.gateway).family() == 6 && ip(self.gateway).isLinkLocalUnicast() && !(cidr(self.ipAddress).ip() == ip(self.gateway)))",message="gateway must be another address of the network that ipAddress is in (or a link-local one, with IPv6)"
type VirtualMachineInterface struct {
	// network is the NetworkAttachmentDefinition, as name or namespace/name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="network must be the name of a NetworkAttachmentDefinition, or its namespace/name: lower-case letters, digits, '-' and '.'"
	// +required
	Network string `json:"network"`
	// ipAddress of the guest and the length of the network's prefix: 10.10.0.161/24. Without it the guest asks DHCP.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="ipAddress must be an address and the length of its network's prefix, for example 10.10.0.161/24"
	// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || ((cidr(self).ip().isGlobalUnicast() || cidr(self).ip().isLinkLocalUnicast()) && cidr(self).prefixLength() > 0)",message="ipAddress must be one that a machine can have, no multicast or loopback address, in a network with a prefix"
	// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || cidr(self).prefixLength() >= (cidr(self).ip().family() == 4 ? 31 : 127) || !(cidr(self) == cidr(self).masked())",message="ipAddress is that of the network itself: give the guest's, for example 10.10.0.161/24"
	// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || cidr(self).ip().family() != 4 || cidr(self).prefixLength() >= 31 || ![0, 1, 2, 3].all(i, i < cidr(self).prefixLength() / 8 || (int(self.split('/')[0].split('.')[i]) + 1) % (i == cidr(self).prefixLength() / 8 ? [256, 128, 64, 32, 16, 8, 4, 2][cidr(self).prefixLength() % 8] : 256) == 0)",message="ipAddress is the broadcast address of its network: give the guest's"
	// +optional
	IPAddress string `json:"ipAddress,omitempty"`
	// gateway is the default route. At most one interface may have one; the pod network's is then not used.
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="gateway must be an IP address, for example 10.10.0.1"
	// +optional
	Gateway string `json:"gateway,omitempty"`
	// nameservers that the guest asks.
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="isIP(self)",message="nameservers must be IP addresses, for example 10.10.0.1"
	// +listType=atomic
	// +optional
	Nameservers []string `json:"nameservers,omitempty"`
	// macAddress, six bytes with colons; default: one that follows from the virtual machine's UID, and stays. libvirt keeps
	// those that begin with fe for the host's side, KubeVirt 02:00:00:00:00:00 for its bridge.
	// +kubebuilder:validation:MaxLength=17
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Fa-f][02468ACEace](:[0-9A-Fa-f]{2}){5}$') && !self.matches('^([Ff][Ee]:|0[02](:00){5}$)')",message="macAddress must be six bytes with colons, of one machine (the first byte even), and none that is reserved (fe:..., 00:00:00:00:00:00, 02:00:00:00:00:00), for example 02:1a:2b:3c:4d:5e"
	// +optional
	MACAddress string `json:"macAddress,omitempty"`
}

// VMDiskImageReference names a VMDiskImage.
type VMDiskImageReference struct {
	// name of the VMDiskImage.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be that of a VMDiskImage: lower-case letters, digits, '-' and '.'"
	// +required
	Name string `json:"name"`
	// namespace of the VMDiskImage; default: that of the virtual machine. In another namespace the image's
	// allowedNamespaces must admit the virtual machine's, and its author must have the right to use the image.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace must be a DNS label: lower-case letters, digits and '-', starting and ending with a letter or digit"
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// MachineSpec is all that is wanted of a virtual machine but its image: what a VirtualMachine and an entry of a Workspace
// have in common.
type MachineSpec struct {
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
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must be a DNS label: lower-case letters, digits and '-', starting and ending with a letter or digit"
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
	// +kubebuilder:validation:XValidation:rule="self.filter(i, has(i.gateway)).size() <= 1",message="at most one interface may have a gateway: there is one default route"
	// +kubebuilder:validation:XValidation:rule="self.all(i, !has(i.ipAddress) || !isCIDR(i.ipAddress) || self.exists_one(o, has(o.ipAddress) && isCIDR(o.ipAddress) && cidr(o.ipAddress).ip() == cidr(i.ipAddress).ip()))",message="two interfaces have the same ipAddress"
	// +kubebuilder:validation:XValidation:rule="self.all(i, !has(i.macAddress) || self.exists_one(o, has(o.macAddress) && o.macAddress.lowerAscii() == i.macAddress.lowerAscii()))",message="two interfaces have the same macAddress"
	// +listType=map
	// +listMapKey=network
	// +optional
	Interfaces []VirtualMachineInterface `json:"interfaces,omitempty"`

	// podNetwork gives the guest an interface on the pod network (masquerade). Default: true.
	// +kubebuilder:default=true
	// +optional
	PodNetwork *bool `json:"podNetwork,omitempty"`

	// vmDiskImageTemplate makes the image of vmDiskImageRef if there is none. One that exists is used as it is: the condition
	// ImageMismatch says when it differs. Its author must have the right to create images in the image's namespace; secretRef
	// and certConfigMap are of that namespace, too.
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
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}(\\\\.[0-9]{1,9})?s)?([0-9]{1,6}ms)?$')",message="provisioningTimeout must be a duration such as 30m or 2h; 0s waits for ever"
	// +optional
	ProvisioningTimeout *metav1.Duration `json:"provisioningTimeout,omitempty"`
}

// VirtualMachineSpec is the virtual machine that is wanted.
type VirtualMachineSpec struct {
	MachineSpec `json:",inline"`

	// vmDiskImageRef is the disk image that the root disk is cloned from. It is immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="vmDiskImageRef is immutable: create another VirtualMachine instead"
	// +required
	VMDiskImageRef VMDiskImageReference `json:"vmDiskImageRef"`
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
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS label of at most 63 characters: KubeVirt never starts a machine with a longer name, and cuts it at a dot"
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
