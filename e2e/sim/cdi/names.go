package cdi

// Annotations that CDI puts on claims and pods.
const (
	annGroup             = "cdi.kubevirt.io"
	annPodPhase          = annGroup + "/storage.pod.phase"
	annPodRestarts       = annGroup + "/storage.pod.restarts"
	annPodSchedulable    = annGroup + "/storage.pod.schedulable"
	annFatalError        = annGroup + "/storage.import.fatalError"
	annImportPod         = annGroup + "/storage.import.importPodName"
	annSource            = annGroup + "/storage.import.source"
	annEndpoint          = annGroup + "/storage.import.endpoint"
	annSecret            = annGroup + "/storage.import.secretName"
	annCertConfigMap     = annGroup + "/storage.import.certConfigMap"
	annChecksum          = annGroup + "/storage.import.checksum"
	annRequiresScratch   = annGroup + "/storage.import.requiresScratch"
	annPriorityClass     = annGroup + "/storage.pod.priorityclassname"
	annServiceAccount    = annGroup + "/storage.pod.serviceAccountName"
	annPopulatorProgress = annGroup + "/storage.populator.progress"
	annPopulatorKind     = annGroup + "/storage.populator.kind"
	annPrimeName         = annGroup + "/storage.populator.pvcPrime"
	annUsePopulator      = annGroup + "/storage.usePopulator"
	annRunning           = annGroup + "/storage.condition.running"
	annRunningMessage    = annGroup + "/storage.condition.running.message"
	annRunningReason     = annGroup + "/storage.condition.running.reason"
	annBound             = annGroup + "/storage.condition.bound"
	annBoundMessage      = annGroup + "/storage.condition.bound.message"
	annBoundReason       = annGroup + "/storage.condition.bound.reason"
	annContentType       = annGroup + "/storage.contentType"
	annPreallocation     = annGroup + "/storage.preallocation.requested"
	annCreatedFor        = annGroup + "/createdForDataVolume"
	annCreatedBy         = annGroup + "/storage.createdByController"
	annImmediateBinding  = annGroup + "/storage.bind.immediate.requested"
)

// Names and values of CDI and of the kubelet.
const (
	importerName       = "importer"
	importerLabel      = "cdi.kubevirt.io"
	volumeImportSource = "VolumeImportSource"
	// NodeName is the node that importer pods are bound to; there is no such Node.
	NodeName = "cdi-simulator"
	// SchedulerName of importer pods keeps a real scheduler away from them.
	SchedulerName = "cdi-simulator"
	// StorageClass of claims where a DataVolume names none.
	StorageClass = "simulated"

	reasonPodRunning    = "Pod is running"
	reasonScratch       = "Scratch space required"
	messageScratch      = "scratch space required and none found"
	reasonPullFailed    = "ImagePullFailed"
	textPullFailed      = "failed to pull image"
	reasonUnschedulable = "Unschedulable"
	reasonQuota         = "ErrExceededQuota"
	reasonClaimLost     = "ClaimLost"
	reasonNotFound      = "NotFound"
	reasonChecksum      = "ChecksumError"
	reasonTransfer      = "TransferRunning"
	reasonCompleted     = "Completed"
	reasonError         = "Error"
	messageComplete     = "Import Complete"
	progressUnknown     = "N/A"
	progressDone        = "100.0%"
)
