package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

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
	// claimUID is that of the claim that holds the data: CDI makes another one, with another clone, when somebody deletes it.
	// +optional
	ClaimUID types.UID `json:"claimUID,omitempty"`
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
