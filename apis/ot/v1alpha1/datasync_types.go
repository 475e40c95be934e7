package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DataSyncVM is one disk of a workspace: a VMDiskImage is made of it. It has the fields of a VMDiskImage's spec, and the
// rules that go with them (a test holds the two together), but what the policy has a default for may be left out.
// +kubebuilder:validation:XValidation:rule="self.sourceType == 'blank' ? !has(self.url) : has(self.url)",message="url is required unless sourceType is blank, and has no meaning with blank"
// +kubebuilder:validation:XValidation:rule="!has(self.url) || (self.sourceType == 'registry' ? self.url.matches('^(docker|oci-archive)://.+') : self.url.matches('^https?://[^/?#]+/.+'))",message="url does not fit sourceType: use http:// or https:// with a host and a path for http and s3, docker:// or oci-archive:// for registry"
// +kubebuilder:validation:XValidation:rule="!has(self.url) || !self.url.matches('[[:space:][:cntrl:]]')",message="url must not contain spaces, line breaks or control characters"
// +kubebuilder:validation:XValidation:rule="!has(self.url) || !self.url.matches('^https?://[^/?#]*@')",message="url must not contain a user or password, which logs and events would show: use secretRef"
// +kubebuilder:validation:XValidation:rule="self.sourceType != 's3' || !has(self.url) || !self.url.matches('^https?://[^/?#]+/[^/?#]*/?$')",message="url must name the bucket and the object for sourceType s3, path style: https://host/bucket/key"
// +kubebuilder:validation:XValidation:rule="!has(self.checksum) || self.sourceType == 'http'",message="checksum is checked by CDI for sourceType http only; pin a registry image by @sha256: in its url"
// +kubebuilder:validation:XValidation:rule="self.sourceType != 'blank' || (!has(self.secretRef) && !has(self.certConfigMap))",message="secretRef and certConfigMap have no meaning with sourceType blank"
type DataSyncVM struct {
	// name of the entry, unique in the list. The image is named after it and the DataSync: see status.entries.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must be a DNS label: lower-case letters, digits and '-', starting and ending with a letter or digit"
	// +required
	Name string `json:"name"`

	// url is where the disk is downloaded from. Its scheme must fit sourceType: http(s):// for http and s3
	// (path style: https://host/bucket/key), docker:// or oci-archive:// for registry.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	URL string `json:"url,omitempty"`

	// sourceType is s3, http, registry or blank.
	// +required
	SourceType SourceType `json:"sourceType"`

	// diskSize is the size of the disk that a virtual machine sees, as a Kubernetes quantity (24Gi); the policy's
	// defaultDiskSize when it is left out.
	//
	// In quotes where it is a plain number.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,15}(\\\\.[0-9]{1,9})?([KMGT]i|[kMGT])?$') && quantity(self).isGreaterThan(quantity('0')) && !quantity(self).isGreaterThan(quantity('64Ti'))",message="diskSize must be more than 0 and at most 64Ti, for example 24Gi"
	// +optional
	DiskSize *resource.Quantity `json:"diskSize,omitempty"`

	// secretRef names a Secret in the same namespace with accessKeyId and secretKey. Of sourceType s3, and of no other,
	// the policy's defaultSecretRef when it is left out: the keys of a bucket are for no other server.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	SecretRef string `json:"secretRef,omitempty"`

	// certConfigMap names a ConfigMap in the same namespace whose values are certificates (PEM) to trust besides
	// those of the system.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	CertConfigMap string `json:"certConfigMap,omitempty"`

	// checksum is that of the downloaded file, before decompression: md5:, sha1:, sha256: or sha512: and the
	// digest in lower-case hexadecimal. Nothing else notices a truncated file or an error page.
	// +kubebuilder:validation:MaxLength=136
	// +kubebuilder:validation:XValidation:rule="self.matches('^(md5:[0-9a-f]{32}|sha1:[0-9a-f]{40}|sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$')",message="checksum must be md5:, sha1:, sha256: or sha512: followed by the digest in lower-case hexadecimal (32, 40, 64 or 128 digits)"
	// +optional
	Checksum string `json:"checksum,omitempty"`

	// storageClass of the volume; the policy's defaultStorageClass when it is left out, and else the cluster's default.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClass string `json:"storageClass,omitempty"`

	// snapshotClass of the snapshot; the policy's defaultSnapshotClass when it is left out, and else the default of the
	// volume's CSI driver.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	SnapshotClass string `json:"snapshotClass,omitempty"`

	// accessModes of the volume; CDI's StorageProfile decides when they are left out.
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:Enum=ReadWriteOnce;ReadOnlyMany;ReadWriteMany;ReadWriteOncePod
	// +listType=set
	// +optional
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty"`

	// volumeMode of the volume, Block or Filesystem; CDI's StorageProfile decides when it is left out.
	// +kubebuilder:validation:Enum=Block;Filesystem
	// +optional
	VolumeMode corev1.PersistentVolumeMode `json:"volumeMode,omitempty"`

	// volumePolicy says what becomes of the volume once the snapshot is ready: Retain (the default) or
	// DeleteAfterSnapshot.
	// +optional
	VolumePolicy VolumePolicy `json:"volumePolicy,omitempty"`

	// unusedTTL is accepted for completeness: the image of an entry is kept for as long as the entry is there.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}(\\\\.[0-9]{1,9})?s)?([0-9]{1,6}ms)?$')",message="unusedTTL must be a duration such as 30m or 72h; 0s keeps the image for ever"
	// +optional
	UnusedTTL *metav1.Duration `json:"unusedTTL,omitempty"`

	// allowedNamespaces grants the image to virtual machines of other namespaces. Default: the image's own.
	// +optional
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces,omitempty"`
}

// DataSyncSpec is the data that a workspace needs.
type DataSyncSpec struct {
	// workspaceId is the identifier of the workspace, for people and pipelines.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="workspaceId must be letters, digits, '-', '_' and '.', starting and ending with a letter or digit"
	// +required
	WorkspaceID string `json:"workspaceId"`

	// vms are the disks. Each gets a VMDiskImage of its own; one that is taken off the list loses it, unless it is in use.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	// +required
	VMs []DataSyncVM `json:"vms"`
}

// DataSyncCounts are the entries by phase.
type DataSyncCounts struct {
	// total number of entries.
	// +required
	Total int32 `json:"total"`
	// queued entries: they wait for a slot, or for the time of the next attempt.
	// +required
	Queued int32 `json:"queued"`
	// syncing entries.
	// +required
	Syncing int32 `json:"syncing"`
	// snapshotting entries.
	// +required
	Snapshotting int32 `json:"snapshotting"`
	// succeeded entries.
	// +required
	Succeeded int32 `json:"succeeded"`
	// failed entries.
	// +required
	Failed int32 `json:"failed"`
}

// DataSyncEntry is where one entry stands.
type DataSyncEntry struct {
	// name of the entry in spec.vms.
	// +required
	Name string `json:"name"`
	// image is the name of its VMDiskImage, in the same namespace.
	// +required
	Image string `json:"image"`
	// phase of the image, for what the entry asks now.
	// +required
	Phase Phase `json:"phase"`
	// message says what the entry waits for, or why it failed.
	// +optional
	Message string `json:"message,omitempty"`
}

// DataSyncStatus is where the DataSync stands.
type DataSyncStatus struct {
	// phase is Queued, Syncing, Succeeded or Failed, for people.
	// +optional
	Phase DataSyncPhase `json:"phase,omitempty"`

	// message says what is going on, or which entries failed.
	// +optional
	Message string `json:"message,omitempty"`

	// observedGeneration is the metadata.generation that this status was made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, Stalled and DeletionBlocked.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ready is how many of the entries have succeeded, such as 3/4.
	// +optional
	Ready string `json:"ready,omitempty"`

	// counts of the entries by phase.
	// +optional
	Counts *DataSyncCounts `json:"counts,omitempty"`

	// entries are those of spec.vms, in its order.
	// +listType=map
	// +listMapKey=name
	// +optional
	Entries []DataSyncEntry `json:"entries,omitempty"`
}

// DataSync is the data that a workspace needs: a set of VM disks, each downloaded through the global queue and kept as a
// VMDiskImage of its own.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=datasyncs,scope=Namespaced,shortName=dsync,categories=ot
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.counts.failed`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
type DataSync struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the data that is wanted.
	// +required
	Spec DataSyncSpec `json:"spec"`
	// status is where the DataSync stands.
	// +optional
	Status DataSyncStatus `json:"status,omitempty"`
}

// DataSyncList is a list of DataSync.
//
// +kubebuilder:object:root=true
type DataSyncList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DataSync `json:"items"`
}
