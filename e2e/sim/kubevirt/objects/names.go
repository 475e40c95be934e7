// Package objects has what KubeVirt writes: instances and launcher pods, and the statuses that follow from what there is.
// Its functions are pure.
package objects

// Names and words of KubeVirt.
const (
	FinalizerMachine  = "kubevirt.io/virtualMachineControllerFinalize"
	FinalizerInstance = "foregroundDeleteVirtualMachine"

	AnnObservedAPI        = "kubevirt.io/latest-observed-api-version"
	AnnObservedStorageAPI = "kubevirt.io/storage-observed-api-version"
	AnnGeneration         = "kubevirt.io/vm-generation"
	AnnTopology           = "kubevirt.io/pci-topology-version"
	AnnNetworks           = "k8s.v1.cni.cncf.io/networks"

	LabelKubeVirt  = "kubevirt.io"
	LabelCreatedBy = "kubevirt.io/created-by"
	LabelName      = "vm.kubevirt.io/name"
	LabelID        = "vmi.kubevirt.io/id"
	Launcher       = "virt-launcher"

	// SchedulerName keeps a real scheduler away from launcher pods; NodeName is the node that they are bound to.
	SchedulerName = "sim-kubevirt"
	NodeName      = "sim-node"

	ReasonFailedCreate      = "FailedCreate"
	ReasonPVCNotFound       = "FailedPvcNotFound"
	ReasonNotAllReady       = "NotAllDVsReady"
	ReasonAllReady          = "AllDVsReady"
	ReasonNoInstance        = "VMINotExists"
	ReasonConditionMissing  = "VMIConditionMissing"
	ReasonNoPod             = "PodNotExists"
	ReasonGuestNotRunning   = "GuestNotRunning"
	ReasonPodTerminating    = "PodTerminating"
	ReasonNotLiveMigratable = "DisksNotLiveMigratable"
)
