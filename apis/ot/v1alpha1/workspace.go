package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// WorkspacePhase is the one-word summary of a Workspace.
// +kubebuilder:validation:Enum=Provisioning;Ready;Failed
type WorkspacePhase string

// The phases of a Workspace.
const (
	// WorkspaceProvisioning: the workspace waits to be admitted, or its members are being made.
	WorkspaceProvisioning WorkspacePhase = "Provisioning"
	// WorkspaceReady: all members are ready.
	WorkspaceReady WorkspacePhase = "Ready"
	// WorkspaceFailed: something stands in the way, or provisioningTimeout has passed. It is left when the cause is gone.
	WorkspaceFailed WorkspacePhase = "Failed"
)

// WorkspaceContainerState is the one-word summary of a container of a workspace.
// +kubebuilder:validation:Enum=Pending;Ready;Failed
type WorkspaceContainerState string

// The states of a container.
const (
	// WorkspaceContainerPending: its pods are being made, or not all of them are ready.
	WorkspaceContainerPending WorkspaceContainerState = "Pending"
	// WorkspaceContainerReady: all its pods are ready, or it is to have none.
	WorkspaceContainerReady WorkspaceContainerState = "Ready"
	// WorkspaceContainerFailed: something stands in the way. It is left when the cause is gone.
	WorkspaceContainerFailed WorkspaceContainerState = "Failed"
)

// Conditions of a Workspace, besides ConditionReady, and ConditionStalled and ConditionDeletionBlocked, which are there while
// they are True.
const (
	// ConditionAdmitted is True when the workspace may be provisioned. Nothing is made before. Positive polarity.
	ConditionAdmitted = "Admitted"
	// ConditionNamespaceReady is True when the namespace of the children is there. Positive polarity.
	ConditionNamespaceReady = "NamespaceReady"
	// ConditionVirtualMachinesReady is True when all virtual machines are Ready. Positive polarity.
	ConditionVirtualMachinesReady = "VirtualMachinesReady"
	// ConditionContainersReady is True when all containers are ready. Positive polarity.
	ConditionContainersReady = "ContainersReady"
	// ConditionNetworkIsolated is True when all that the members are attached to is behind the workspace's NetworkPolicies.
	// Whether the cluster's network enforces them it cannot tell. Positive polarity.
	ConditionNetworkIsolated = "NetworkIsolated"
)

// WorkspaceReason is why a workspace is not ready yet, or failed: a closed list.
type WorkspaceReason string

// The reasons of a Workspace's conditions.
const (
	// WorkspaceQueued: waits until fewer workspaces are being provisioned.
	WorkspaceQueued WorkspaceReason = "Queued"
	// WorkspaceAdmitted: may be provisioned.
	WorkspaceAdmitted WorkspaceReason = "Admitted"

	// WorkspaceNamespaceReady: the namespace is there.
	WorkspaceNamespaceReady WorkspaceReason = "NamespaceReady"
	// WorkspaceNamespaceCreating: the workspace's own namespace is being made.
	WorkspaceNamespaceCreating WorkspaceReason = "NamespaceCreating"
	// WorkspaceNamespaceMissing: there is no such targetNamespace.
	WorkspaceNamespaceMissing WorkspaceReason = "NamespaceMissing"
	// WorkspaceNamespaceTaken: the namespace that would be the workspace's own belongs to somebody else.
	WorkspaceNamespaceTaken WorkspaceReason = "NamespaceTaken"
	// WorkspaceNamespaceTerminating: the namespace is being deleted, and nothing can be made in it.
	WorkspaceNamespaceTerminating WorkspaceReason = "NamespaceTerminating"

	// WorkspaceMembersReady: all of them are ready.
	WorkspaceMembersReady WorkspaceReason = "MembersReady"
	// WorkspaceNoMembers: the spec has none of the kind.
	WorkspaceNoMembers WorkspaceReason = "NoMembers"
	// WorkspaceImagePending: the image of a virtual machine is missing, queued or being synced.
	WorkspaceImagePending WorkspaceReason = "ImagePending"
	// WorkspaceVirtualMachinePending: a virtual machine is being made or started.
	WorkspaceVirtualMachinePending WorkspaceReason = "VirtualMachinePending"
	// WorkspaceVirtualMachineFailed: a virtual machine is Failed; its message says why.
	WorkspaceVirtualMachineFailed WorkspaceReason = "VirtualMachineFailed"
	// WorkspaceReplacing: a virtual machine is being made anew, because its image is another one.
	WorkspaceReplacing WorkspaceReason = "Replacing"
	// WorkspaceContainerStarting: pods of a container are being made or started.
	WorkspaceContainerStarting WorkspaceReason = "ContainerStarting"
	// WorkspaceImagePullFailed: the image of a container cannot be pulled.
	WorkspaceImagePullFailed WorkspaceReason = "ImagePullFailed"
	// WorkspaceConfigMissing: a Secret or ConfigMap that a container names, or its key, is not there.
	WorkspaceConfigMissing WorkspaceReason = "ConfigMissing"
	// WorkspaceUnschedulable: no node takes a pod.
	WorkspaceUnschedulable WorkspaceReason = "Unschedulable"
	// WorkspaceCrashLooping: a container starts and ends again and again.
	WorkspaceCrashLooping WorkspaceReason = "CrashLooping"
	// WorkspaceQuotaExceeded: the namespace's ResourceQuota does not admit a child or a pod.
	WorkspaceQuotaExceeded WorkspaceReason = "QuotaExceeded"
	// WorkspacePodsRefused: the API server or a webhook refuses the pods of a container.
	WorkspacePodsRefused WorkspaceReason = "PodsRefused"

	// WorkspaceIsolated: the policies are there, and nothing goes around them.
	WorkspaceIsolated WorkspaceReason = "Isolated"
	// WorkspaceNotIsolated: the spec says isolate: false.
	WorkspaceNotIsolated WorkspaceReason = "NotIsolated"
	// WorkspaceSecondaryNetworks: a virtual machine is on a network of Multus, where NetworkPolicies are not enforced.
	WorkspaceSecondaryNetworks WorkspaceReason = "SecondaryNetworks"
	// WorkspacePoliciesPending: the policies are not there yet, and therefore nothing that they would isolate.
	WorkspacePoliciesPending WorkspaceReason = "PoliciesPending"

	// WorkspaceNameTaken: an object of a child's name belongs to somebody else, and is not touched.
	WorkspaceNameTaken WorkspaceReason = "NameTaken"
	// WorkspaceForbidden: the API server does not let the operator make a child.
	WorkspaceForbidden WorkspaceReason = "Forbidden"
	// WorkspaceRejected: the API server or a webhook refuses a child as it is.
	WorkspaceRejected WorkspaceReason = "Rejected"
	// WorkspaceWaiting: waits for what comes before.
	WorkspaceWaiting WorkspaceReason = "Waiting"
	// WorkspaceProvisioningTimedOut: not Ready within provisioningTimeout. The message says what it waited for.
	WorkspaceProvisioningTimedOut WorkspaceReason = "ProvisioningTimedOut"
	// WorkspaceAllReady is the reason of Ready.
	WorkspaceAllReady WorkspaceReason = "AllReady"
	// WorkspaceDeleting: the workspace is being deleted.
	WorkspaceDeleting WorkspaceReason = "Deleting"
	// WorkspaceHeldByFinalizer is the reason of DeletionBlocked: the message names the object and the finalizer.
	WorkspaceHeldByFinalizer WorkspaceReason = "HeldByFinalizer"
	// WorkspaceUnknown: something else; the message tells.
	WorkspaceUnknown WorkspaceReason = "Unknown"
)

// Labels and finalizers of a workspace and its children.
const (
	// LabelWorkspaceUID on every child, on the pods of containers and on launcher pods is the UID of the Workspace. The
	// workspace's NetworkPolicies select by it, and the operator's cache. Nothing is adopted or deleted because of it.
	LabelWorkspaceUID = "pelotech.ot/workspace-uid"
	// LabelWorkspaceEntry on the children of an entry and on their pods is what WorkspaceEntry gives: by it, and by the UID, a
	// Deployment and a Service select their pods. It is never what a user wrote.
	LabelWorkspaceEntry = "pelotech.ot/workspace-entry"
	// FinalizerWorkspace on a Workspace holds back its end until its children are gone, the NetworkPolicies last.
	FinalizerWorkspace = "pelotech.ot/workspace-protection"
)

// VerbProvision is the verb of RBAC that lets somebody have made, in the own namespace of a workspace of his, what he may not make
// himself.
const VerbProvision = "provision"

// Names of the objects that the workspace-operator makes.
const (
	// WorkspaceQueueName is the name of the queue of workspaces.
	WorkspaceQueueName = "workspaces"
	// WorkspaceSlotPrefix and a number make the name of a slot's Lease.
	WorkspaceSlotPrefix = "workspace-slot-"
	// WorkspacePolicy is the name of the NetworkPolicy in a workspace's own namespace.
	WorkspacePolicy = "workspace"
	// WorkspaceDisksPolicy is the name of the NetworkPolicy that lets CDI fill the disks, in a workspace's own namespace.
	WorkspaceDisksPolicy = "workspace-disks"

	workspaceNamespacePrefix = "ws-"
	maxLabelLength           = 63
)

// WorkspaceNamespace is the name of the own namespace of a workspace of that name: ws- and the name, or, where that would fill
// the 63 characters, a cut name and a hash of it. No two workspaces have the same.
func WorkspaceNamespace(workspace string) string {
	if name := workspaceNamespacePrefix + workspace; len(name) < maxLabelLength {
		return name
	}
	return cutLabel(workspaceNamespacePrefix+workspace, workspace)
}

// ChildNamespace is the namespace of the children: targetNamespace, or the workspace's own.
func (w *Workspace) ChildNamespace() string {
	if w.Spec.TargetNamespace != "" {
		return w.Spec.TargetNamespace
	}
	return WorkspaceNamespace(w.Name)
}

// OwnsNamespace says whether the children are in a namespace of the workspace's own.
func (w *Workspace) OwnsNamespace() bool { return w.Spec.TargetNamespace == "" }

// WorkspaceChild is the name of an entry's VirtualMachine, Deployment and Service: in the workspace's own namespace that of the
// entry, so that the others find it by it. In a namespace that others use, too, it is the names of both and a hash of both: no
// other workspace or entry makes the same.
func WorkspaceChild(w *Workspace, entry string) string {
	if w.OwnsNamespace() {
		return entry
	}
	return cutLabel(w.Name+"-"+entry, w.Name+"/"+entry)
}

// WorkspaceEntry is the value of LabelWorkspaceEntry: a hash of the names of the workspace and of the entry.
func WorkspaceEntry(w *Workspace, entry string) string { return shortHash(w.Name + "/" + entry) }

// WorkspacePolicyName is the name of the workspace's NetworkPolicy: see WorkspaceChild.
func WorkspacePolicyName(w *Workspace) string {
	if w.OwnsNamespace() {
		return WorkspacePolicy
	}
	return cutLabel(w.Name, w.Name)
}

// cutLabel is the text as a DNS label that begins with a letter, with a hash of the key behind it. The text is cut so that the
// hash is whole. What is cut always fills the label: a "-" at its end stays, or a shorter name could be the same.
func cutLabel(text, key string) string {
	if text[0] < 'a' { // a digit: a Service's name must begin with a letter
		text = workspaceNamespacePrefix + text
	}
	if room := maxLabelLength - 1 - revisionLength; len(text) > room {
		text = text[:room]
	}
	return text + "-" + shortHash(key)
}

// Isolates says whether the workspace is to be isolated.
func (w *Workspace) Isolates() bool {
	return w.Spec.Network == nil || ptr.Deref(w.Spec.Network.Isolate, true)
}

// AllowsDNS says whether the workspace may ask the cluster's DNS.
func (w *Workspace) AllowsDNS() bool {
	return w.Spec.Network == nil || ptr.Deref(w.Spec.Network.AllowDNS, true)
}

// Timeout is the provisioningTimeout, or its default. 0 is none.
func (w *Workspace) Timeout() time.Duration {
	if w.Spec.ProvisioningTimeout == nil {
		return DefaultProvisioningTimeout
	}
	return w.Spec.ProvisioningTimeout.Duration
}

// Image is the image of the entry. Without a namespace it is one of the operator's image namespace, which is given.
func (v *WorkspaceVirtualMachine) Image(imageNamespace string) VMDiskImageReference {
	ref := VMDiskImageReference{Name: v.Spec.VMDiskImageName}
	if v.Spec.VMDiskImageRef != nil {
		ref = *v.Spec.VMDiskImageRef
	}
	if ref.Namespace == "" {
		ref.Namespace = imageNamespace
	}
	return ref
}

// WantedReplicas is how many pods the container is to have.
func (c *WorkspaceContainer) WantedReplicas() int32 { return ptr.Deref(c.Replicas, 1) }

// WorkspacePhaseOf derives the phase from the conditions: total, and without memory.
func WorkspacePhaseOf(conditions []metav1.Condition) WorkspacePhase {
	switch {
	case meta.IsStatusConditionTrue(conditions, ConditionStalled):
		return WorkspaceFailed
	case meta.IsStatusConditionTrue(conditions, ConditionReady):
		return WorkspaceReady
	}
	return WorkspaceProvisioning
}
