package v1alpha1

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// VirtualMachinePhase is the one-word summary of a VirtualMachine.
// +kubebuilder:validation:Enum=Provisioning;Ready;Failed
type VirtualMachinePhase string

// The phases of a VirtualMachine.
const (
	// VirtualMachineProvisioning: the image, the disk or the machine is being made.
	VirtualMachineProvisioning VirtualMachinePhase = "Provisioning"
	// VirtualMachineReady: the guest runs, or everything is there and it is not to be started.
	VirtualMachineReady VirtualMachinePhase = "Ready"
	// VirtualMachineFailed: something stands in the way, or provisioningTimeout has passed. It is left when the cause is gone.
	VirtualMachineFailed VirtualMachinePhase = "Failed"
)

// Conditions of a VirtualMachine, besides ConditionReady and ConditionStalled.
const (
	// ConditionImageReady is True when the image has an artifact that this virtual machine may clone. Positive polarity.
	ConditionImageReady = "ImageReady"
	// ConditionDiskReady is True when the disk is cloned. Positive polarity.
	ConditionDiskReady = "DiskReady"
	// ConditionVirtualMachineReady is True when KubeVirt's machine is as the spec wants it: running, or stopped. Positive
	// polarity.
	ConditionVirtualMachineReady = "VirtualMachineReady"
	// ConditionImageMismatch is True while the image is not what vmDiskImageTemplate describes; absent otherwise.
	ConditionImageMismatch = "ImageMismatch"
	// ConditionRestartRequired is True while the guest runs with an older spec; absent otherwise.
	ConditionRestartRequired = "RestartRequired"
)

// VirtualMachineReason is why a virtual machine is not ready yet, or failed: a closed list.
type VirtualMachineReason string

// The reasons of a VirtualMachine's conditions.
const (
	// ReasonImageMissing: there is no such image, and no template to make it from.
	ReasonImageMissing VirtualMachineReason = "ImageMissing"
	// ReasonImageNotReady: the image is queued or being synced.
	ReasonImageNotReady VirtualMachineReason = "ImageNotReady"
	// ReasonImageFailed: the image failed for good. The virtual machine fails with it.
	ReasonImageFailed VirtualMachineReason = "ImageFailed"
	// ReasonImageNotAllowed: the image's allowedNamespaces do not admit the namespace of the virtual machine.
	ReasonImageNotAllowed VirtualMachineReason = "ImageNotAllowed"
	// ReasonImageRefused: the API server refuses to make the image from the template.
	ReasonImageRefused VirtualMachineReason = "ImageRefused"
	// ReasonImageClaiming: waits until the image counts this virtual machine and is protected.
	ReasonImageClaiming VirtualMachineReason = "ImageClaiming"
	// ReasonImageReady: the image can be cloned.
	ReasonImageReady VirtualMachineReason = "ImageReady"
	// ReasonTemplateDiffers is the reason of ImageMismatch.
	ReasonTemplateDiffers VirtualMachineReason = "TemplateDiffers"

	// ReasonDiskCloning: the disk is being cloned.
	ReasonDiskCloning VirtualMachineReason = "DiskCloning"
	// ReasonDiskReady: the disk is cloned.
	ReasonDiskReady VirtualMachineReason = "DiskReady"
	// ReasonDiskLost: the disk was deleted, and another one is being cloned.
	ReasonDiskLost VirtualMachineReason = "DiskLost"
	// ReasonDiskDeleted: somebody deleted the disk while the guest uses it. It is kept until the guest stops.
	ReasonDiskDeleted VirtualMachineReason = "DiskDeleted"
	// ReasonCloneFailed: CDI cannot clone.
	ReasonCloneFailed VirtualMachineReason = "CloneFailed"
	// ReasonNotAuthorized: CDI or the API server does not let the operator do it.
	ReasonNotAuthorized VirtualMachineReason = "NotAuthorized"
	// ReasonQuotaExceeded: the namespace's ResourceQuota does not admit it.
	ReasonQuotaExceeded VirtualMachineReason = "QuotaExceeded"
	// ReasonNameTaken: an object of the name that is needed belongs to somebody else.
	ReasonNameTaken VirtualMachineReason = "NameTaken"

	// ReasonSecretMissing: a Secret that passwordSecretRef names, or its key, is not there.
	ReasonSecretMissing VirtualMachineReason = "SecretMissing"
	// ReasonRefused: the API server or KubeVirt refuses the machine.
	ReasonRefused VirtualMachineReason = "Refused"
	// ReasonNetworkMissing: a NetworkAttachmentDefinition is not there.
	ReasonNetworkMissing VirtualMachineReason = "NetworkMissing"
	// ReasonUnschedulable: no node takes the guest.
	ReasonUnschedulable VirtualMachineReason = "Unschedulable"
	// ReasonCrashLooping: the guest starts and ends again and again.
	ReasonCrashLooping VirtualMachineReason = "CrashLooping"
	// ReasonStarting: KubeVirt makes or starts the guest.
	ReasonStarting VirtualMachineReason = "Starting"
	// ReasonStopping: the guest is being stopped.
	ReasonStopping VirtualMachineReason = "Stopping"
	// ReasonRunning: the guest runs.
	ReasonRunning VirtualMachineReason = "Running"
	// ReasonNotStarted: everything is there, and the guest is not to be started (ignoreOnDeploy, or runStrategy).
	ReasonNotStarted VirtualMachineReason = "NotStarted"
	// ReasonStopped: the guest ran and stopped, as runStrategy allows.
	ReasonStopped VirtualMachineReason = "Stopped"
	// ReasonPaused: the guest is paused.
	ReasonPaused VirtualMachineReason = "Paused"
	// ReasonWaiting: waits for what comes before.
	ReasonWaiting VirtualMachineReason = "Waiting"
	// ReasonSpecChanged: the guest runs with an older spec, until it is restarted.
	ReasonSpecChanged VirtualMachineReason = "SpecChanged"
	// ReasonProvisioningTimeout: not Ready within provisioningTimeout. The message says what it waited for.
	ReasonProvisioningTimeout VirtualMachineReason = "ProvisioningTimeout"
	// ReasonUnknown: KubeVirt says something else; the message tells.
	ReasonUnknown VirtualMachineReason = "Unknown"
)

// Labels, annotations and finalizers of a virtual machine's children.
const (
	// LabelVirtualMachine on the launcher pod, the KubeVirt VirtualMachine and the other children is the name of the
	// VirtualMachine, so that NetworkPolicies can select it.
	LabelVirtualMachine = "pelotech.ot/virtual-machine"
	// LabelVirtualMachineUID on children is the UID of the VirtualMachine, for people who look for them, and for the
	// operator's cache. Nothing is adopted or deleted because of it.
	LabelVirtualMachineUID = "pelotech.ot/virtual-machine-uid"
	// AnnotationBaseVM, AnnotationBaseVMVersion and AnnotationVersion keep what the spec records.
	AnnotationBaseVM        = "pelotech.ot/base-vm"
	AnnotationBaseVMVersion = "pelotech.ot/base-vm-version"
	AnnotationVersion       = "pelotech.ot/version"
	// AnnotationImageRevision on a disk is the revision of the image that it was cloned from.
	AnnotationImageRevision = "pelotech.ot/image-revision"
	// AnnotationRequestedBy on an image that was made from a template is the virtual machine, as namespace/name.
	AnnotationRequestedBy = "pelotech.ot/requested-by"
	// AnnotationCloudInit on KubeVirt's machine is the fingerprint of the cloud-init Secret that was applied last. Nothing of a
	// password goes into it.
	AnnotationCloudInit = "pelotech.ot/cloud-init-hash"
	// AnnotationAppliedFields on KubeVirt's machine is a hash of the names of the fields that the operator applied: another set of
	// fields is applied again, so that the API server takes away those that are left out.
	AnnotationAppliedFields = "pelotech.ot/applied-fields"
	// FinalizerDisk on a DataVolume keeps the disk of a guest that runs: without it the data would be lost silently when
	// the guest stops. The vm-operator takes it off when the guest has stopped or the VirtualMachine is gone.
	FinalizerDisk = "pelotech.ot/disk-protection"
)

// VerbUse is the verb of RBAC that lets somebody use an image of another namespace in a virtual machine.
const VerbUse = "use"

// DefaultProvisioningTimeout is that of a virtual machine that does not say.
const DefaultProvisioningTimeout = 30 * time.Minute

// ImageKey is the namespace and name of the image that the virtual machine uses.
func (v *VirtualMachine) ImageKey() types.NamespacedName {
	ref := v.Spec.VMDiskImageRef
	if ref.Namespace == "" {
		ref.Namespace = v.Namespace
	}
	return types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
}

// Timeout is the provisioningTimeout, or its default. 0 is none.
func (v *VirtualMachine) Timeout() time.Duration {
	if v.Spec.ProvisioningTimeout == nil {
		return DefaultProvisioningTimeout
	}
	return v.Spec.ProvisioningTimeout.Duration
}

// HasPodNetwork says whether the guest has an interface on the pod network.
func (v *VirtualMachine) HasPodNetwork() bool { return ptr.Deref(v.Spec.PodNetwork, true) }

// WantedStrategy is the runStrategy that KubeVirt is given.
func (v *VirtualMachine) WantedStrategy() RunStrategy {
	switch {
	case v.Spec.IgnoreOnDeploy:
		return RunHalted
	case v.Spec.RunStrategy == "":
		return RunAlways
	}
	return v.Spec.RunStrategy
}

// VirtualMachineChild is the name of the disk and of the cloud-init Secret of a virtual machine: its name, and a hash of its
// UID, so that one that is made anew under the same name never meets the children of the former one.
func VirtualMachineChild(vm *VirtualMachine) string {
	return vm.Name + "-" + shortHash(string(vm.UID))
}

// Admits says whether virtual machines of a namespace with that name and those labels may use the image. A selector that
// cannot be parsed admits nobody.
func (i *VMDiskImage) Admits(namespace string, labelled map[string]string) bool {
	if namespace == i.Namespace {
		return true
	}
	grant := i.Spec.AllowedNamespaces
	if grant == nil {
		return false
	}
	switch grant.From {
	case NamespacesFromAll:
		return true
	case NamespacesFromSelector:
		selector, err := metav1.LabelSelectorAsSelector(grant.Selector)
		return err == nil && selector.Matches(labels.Set(labelled))
	}
	return false
}

// VirtualMachinePhaseOf derives the phase from the conditions: total, and without memory.
func VirtualMachinePhaseOf(conditions []metav1.Condition) VirtualMachinePhase {
	switch {
	case meta.IsStatusConditionTrue(conditions, ConditionStalled):
		return VirtualMachineFailed
	case meta.IsStatusConditionTrue(conditions, ConditionReady):
		return VirtualMachineReady
	}
	return VirtualMachineProvisioning
}

// NeedsGuest says whether the guest is to run by itself.
func (r RunStrategy) NeedsGuest() bool {
	return slices.Contains([]RunStrategy{RunAlways, RunRerunOnFailure, RunOnce}, r)
}
