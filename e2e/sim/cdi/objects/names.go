// Package objects is what CDI makes of a DataVolume: the claims and the pod, the annotations in which it keeps the state
// of an import, and the status that it derives from them. Pure: no clients, no clocks.
package objects

// Annotations that CDI puts on claims and pods.
const (
	AnnGroup             = "cdi.kubevirt.io"
	AnnPodPhase          = AnnGroup + "/storage.pod.phase"
	AnnPodRestarts       = AnnGroup + "/storage.pod.restarts"
	AnnPodSchedulable    = AnnGroup + "/storage.pod.schedulable"
	AnnFatalError        = AnnGroup + "/storage.import.fatalError"
	AnnImportPod         = AnnGroup + "/storage.import.importPodName"
	AnnSource            = AnnGroup + "/storage.import.source"
	AnnEndpoint          = AnnGroup + "/storage.import.endpoint"
	AnnSecret            = AnnGroup + "/storage.import.secretName"
	AnnCertConfigMap     = AnnGroup + "/storage.import.certConfigMap"
	AnnChecksum          = AnnGroup + "/storage.import.checksum"
	AnnPriorityClass     = AnnGroup + "/storage.pod.priorityclassname"
	AnnServiceAccount    = AnnGroup + "/storage.pod.serviceAccountName"
	AnnPopulatorProgress = AnnGroup + "/storage.populator.progress"
	AnnPopulatorKind     = AnnGroup + "/storage.populator.kind"
	AnnPrimeName         = AnnGroup + "/storage.populator.pvcPrime"
	AnnUsePopulator      = AnnGroup + "/storage.usePopulator"
	AnnRunning           = AnnGroup + "/storage.condition.running"
	AnnRunningMessage    = AnnGroup + "/storage.condition.running.message"
	AnnRunningReason     = AnnGroup + "/storage.condition.running.reason"
	AnnBound             = AnnGroup + "/storage.condition.bound"
	AnnBoundMessage      = AnnGroup + "/storage.condition.bound.message"
	AnnBoundReason       = AnnGroup + "/storage.condition.bound.reason"
	AnnContentType       = AnnGroup + "/storage.contentType"
	AnnPreallocation     = AnnGroup + "/storage.preallocation.requested"
	AnnCreatedFor        = AnnGroup + "/createdForDataVolume"
	AnnCreatedBy         = AnnGroup + "/storage.createdByController"
	AnnImmediateBinding  = AnnGroup + "/storage.bind.immediate.requested"
)

// Names and values of CDI and of the kubelet.
const (
	ImporterName       = "importer"
	ImporterLabel      = "cdi.kubevirt.io"
	VolumeImportSource = "VolumeImportSource"
	// NodeName is the node that importer pods are bound to; there is no such Node.
	NodeName = "cdi-simulator"
	// SchedulerName of importer pods keeps a real scheduler away from them.
	SchedulerName = "cdi-simulator"
	// StorageClass of claims where a DataVolume names none.
	StorageClass = "simulated"

	ReasonPodRunning    = "Pod is running"
	ReasonScratch       = "Scratch space required"
	MessageScratch      = "scratch space required and none found"
	ReasonPullFailed    = "ImagePullFailed"
	TextPullFailed      = "failed to pull image"
	ReasonUnschedulable = "Unschedulable"
	ReasonQuota         = "ErrExceededQuota"
	ReasonClaimLost     = "ClaimLost"
	ReasonNotFound      = "NotFound"
	ReasonChecksum      = "ChecksumError"
	ReasonTransfer      = "TransferRunning"
	ReasonCompleted     = "Completed"
	ReasonError         = "Error"
	MessageComplete     = "Import Complete"
	ProgressUnknown     = "N/A"
	ProgressDone        = "100.0%"
)
