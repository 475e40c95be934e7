package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// WorkspaceNamespaceStatus is the namespace that the children are in.
type WorkspaceNamespaceStatus struct {
	// name of the namespace.
	// +required
	Name string `json:"name"`
	// uid of the namespace; empty while there is none.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// owned says that it is the workspace's own, and goes with it. A targetNamespace never is.
	// +required
	Owned bool `json:"owned"`
}

// WorkspaceQueueStatus is the place of a workspace that waits to be admitted.
type WorkspaceQueueStatus struct {
	// position in the queue, from 1. It is that of the last look, and is not kept up to date at every move.
	// +required
	Position int32 `json:"position"`
	// ticket orders the queue: lower goes first. It is the resourceVersion that the workspace was created with.
	// +optional
	Ticket int64 `json:"ticket,omitempty"`
}

// WorkspaceVirtualMachineStatus is where one virtual machine stands.
type WorkspaceVirtualMachineStatus struct {
	// name of the entry.
	// +required
	Name string `json:"name"`
	// phase of its VirtualMachine; Provisioning while there is none.
	// +required
	Phase VirtualMachinePhase `json:"phase"`
	// diskImagePhase is that of its VMDiskImage; empty while it is not known.
	// +optional
	DiskImagePhase Phase `json:"diskImagePhase,omitempty"`
	// message says what it waits for, or why it failed; empty when it is Ready.
	// +optional
	Message string `json:"message,omitempty"`
}

// WorkspaceContainerStatus is where one container stands.
type WorkspaceContainerStatus struct {
	// name of the entry.
	// +required
	Name string `json:"name"`
	// status is Pending, Ready or Failed.
	// +required
	Status WorkspaceContainerState `json:"status"`
	// message says what it waits for, or why it failed; empty when it is Ready.
	// +optional
	Message string `json:"message,omitempty"`
}

// WorkspaceResourceStatus is where the members of the workspace stand, in the order of the spec.
type WorkspaceResourceStatus struct {
	// virtualMachines of the workspace.
	// +listType=map
	// +listMapKey=name
	// +optional
	VirtualMachines []WorkspaceVirtualMachineStatus `json:"virtualMachines,omitempty"`
	// containers of the workspace.
	// +listType=map
	// +listMapKey=name
	// +optional
	Containers []WorkspaceContainerStatus `json:"containers,omitempty"`
}

// WorkspaceStatus is where the workspace stands.
type WorkspaceStatus struct {
	// phase is Provisioning, Ready or Failed: a shadow of the conditions, for people.
	// +optional
	Phase WorkspacePhase `json:"phase,omitempty"`

	// message says what the workspace waits for, or why it failed: of its members, the worst.
	// +optional
	Message string `json:"message,omitempty"`

	// observedGeneration is the metadata.generation that this status was made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Admitted, NamespaceReady, VirtualMachinesReady, ContainersReady, NetworkIsolated and Ready; Stalled and
	// DeletionBlocked while they are True.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// namespace that the children are in.
	// +optional
	Namespace *WorkspaceNamespaceStatus `json:"namespace,omitempty"`

	// queue is the place of a workspace that waits to be admitted.
	// +optional
	Queue *WorkspaceQueueStatus `json:"queue,omitempty"`

	// virtualMachines is how many of them are ready, such as 1/2.
	// +optional
	VirtualMachines string `json:"virtualMachines,omitempty"`

	// containers is how many of them are ready, such as 0/1.
	// +optional
	Containers string `json:"containers,omitempty"`

	// isolated is the status of the condition NetworkIsolated.
	// +optional
	Isolated metav1.ConditionStatus `json:"isolated,omitempty"`

	// resourceStatus is where each member stands.
	// +optional
	ResourceStatus *WorkspaceResourceStatus `json:"resourceStatus,omitempty"`

	// admittedAt is when the workspace got a place among those that may be provisioned at once. Its children came after it.
	// +optional
	AdmittedAt *metav1.Time `json:"admittedAt,omitempty"`

	// provisionedAt is when the workspace was Ready or Failed for the first time since it was admitted, and gave its place up.
	// +optional
	ProvisionedAt *metav1.Time `json:"provisionedAt,omitempty"`

	// deadline is when the workspace will be Failed if it is not Ready by then; empty while there is none.
	// +optional
	Deadline *metav1.Time `json:"deadline,omitempty"`

	// troubledSince is when a member began to show a state that usually passes and has not yet: it is a failure only when it
	// lasts.
	// +optional
	TroubledSince *metav1.Time `json:"troubledSince,omitempty"`
}
