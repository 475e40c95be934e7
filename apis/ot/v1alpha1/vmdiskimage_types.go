package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SourceType says how the URL of an image is fetched. The names are CDI's.
// +kubebuilder:validation:Enum=s3;http;registry;blank
type SourceType string

const (
	// SourceS3 is an object in an S3 bucket: https://host/bucket/key (path style). CDI needs a secretRef
	// with the keys accessKeyId and secretKey.
	SourceS3 SourceType = "s3"
	// SourceHTTP is a file behind http or https.
	SourceHTTP SourceType = "http"
	// SourceRegistry is a container image with the disk under /disk: docker://host/name:tag or @sha256:digest.
	SourceRegistry SourceType = "registry"
	// SourceBlank is an empty disk of diskSize. Nothing is downloaded.
	SourceBlank SourceType = "blank"
)

// VolumePolicy says what becomes of the downloaded volume once its snapshot is ready.
// +kubebuilder:validation:Enum=Retain;DeleteAfterSnapshot
type VolumePolicy string

const (
	// VolumeRetain keeps the volume beside the snapshot: a lost snapshot is made again without a download.
	VolumeRetain VolumePolicy = "Retain"
	// VolumeDeleteAfterSnapshot deletes the volume when the snapshot is ready: half the storage, but a lost
	// snapshot costs a download.
	VolumeDeleteAfterSnapshot VolumePolicy = "DeleteAfterSnapshot"
)

// NamespacesFrom says which namespaces may use an image.
// +kubebuilder:validation:Enum=Same;All;Selector
type NamespacesFrom string

const (
	// NamespacesFromSame admits the namespace of the image only.
	NamespacesFromSame NamespacesFrom = "Same"
	// NamespacesFromAll admits every namespace.
	NamespacesFromAll NamespacesFrom = "All"
	// NamespacesFromSelector admits the namespaces whose labels match the selector.
	NamespacesFromSelector NamespacesFrom = "Selector"
)

// AllowedNamespaces is the grant of an image to virtual machines of other namespaces.
// +kubebuilder:validation:XValidation:rule="(self.from == 'Selector') == has(self.selector)",message="selector is needed with from: Selector, and only there"
type AllowedNamespaces struct {
	// from is Same (the namespace of the image), All, or Selector (namespaces by label).
	// +kubebuilder:default=Same
	// +optional
	From NamespacesFrom `json:"from,omitempty"`

	// selector chooses namespaces by their labels.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// VMDiskImageSpec is the disk that is wanted.
// +kubebuilder:validation:XValidation:rule="self.sourceType == 'blank' ? !has(self.url) : has(self.url)",message="url is required unless sourceType is blank, and has no meaning with blank"
// +kubebuilder:validation:XValidation:rule="!has(self.url) || (self.sourceType == 'registry' ? self.url.matches('^(docker|oci-archive)://.+') : self.url.matches('^https?://[^/?#]+/.+'))",message="url does not fit sourceType: use http:// or https:// with a host and a path for http and s3, docker:// or oci-archive:// for registry"
// +kubebuilder:validation:XValidation:rule="!has(self.url) || !self.url.matches('[[:space:][:cntrl:]]')",message="url must not contain spaces, line breaks or control characters"
// +kubebuilder:validation:XValidation:rule="!has(self.url) || !self.url.matches('^https?://[^/?#]*@')",message="url must not contain a user or password, which logs and events would show: use secretRef"
// +kubebuilder:validation:XValidation:rule="self.sourceType != 's3' || !has(self.url) || !self.url.matches('^https?://[^/?#]+/[^/?#]*/?$')",message="url must name the bucket and the object for sourceType s3, path style: https://host/bucket/key"
// +kubebuilder:validation:XValidation:rule="!has(self.checksum) || self.sourceType == 'http'",message="checksum is checked by CDI for sourceType http only; pin a registry image by @sha256: in its url"
// +kubebuilder:validation:XValidation:rule="self.sourceType != 's3' || has(self.secretRef)",message="secretRef is required for sourceType s3: CDI cannot read a bucket without accessKeyId and secretKey"
// +kubebuilder:validation:XValidation:rule="self.sourceType != 'blank' || (!has(self.secretRef) && !has(self.certConfigMap))",message="secretRef and certConfigMap have no meaning with sourceType blank"
// +kubebuilder:validation:XValidation:rule="has(self.name) == has(oldSelf.name) && (!has(self.name) || self.name == oldSelf.name)",message="name is immutable: create another VMDiskImage instead"
type VMDiskImageSpec struct {
	// name is the logical image, for people and for lists; metadata.name when it is left out.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must be a DNS label: lower-case letters, digits and '-', starting and ending with a letter or digit"
	// +optional
	Name string `json:"name,omitempty"`

	// url is where the disk is downloaded from. Its scheme must fit sourceType: http(s):// for http and s3
	// (path style: https://host/bucket/key), docker:// or oci-archive:// for registry.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	URL string `json:"url,omitempty"`

	// sourceType is s3, http, registry or blank.
	// +required
	SourceType SourceType `json:"sourceType"`

	// diskSize is the size of the disk that a virtual machine sees, as a Kubernetes quantity (24Gi). It must be
	// at least the virtual size of the image; CDI adds the filesystem's overhead to the volume by itself.
	//
	// Exponents are not allowed: to parse 1e-2147483647 takes the API server and the operators minutes.
	// +kubebuilder:validation:XValidation:rule="string(self).matches('^[0-9]{1,15}(\\\\.[0-9]{1,9})?([KMGT]i|[kMGT])?$') && quantity(string(self)).isGreaterThan(quantity('0')) && !quantity(string(self)).isGreaterThan(quantity('64Ti'))",message="diskSize must be more than 0 and at most 64Ti, for example 24Gi"
	// +required
	DiskSize resource.Quantity `json:"diskSize"`

	// secretRef names a Secret in the same namespace with accessKeyId and secretKey (for http: basic
	// authentication; for registry: user and password).
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

	// storageClass of the volume; the cluster's default when it is left out.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClass string `json:"storageClass,omitempty"`

	// snapshotClass of the snapshot; the default of the volume's CSI driver when it is left out.
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

	// volumePolicy says what becomes of the volume once the snapshot is ready: Retain or DeleteAfterSnapshot.
	// +kubebuilder:default=Retain
	// +optional
	VolumePolicy VolumePolicy `json:"volumePolicy,omitempty"`

	// unusedTTL overrides the policy's unusedImageTTL for this image: how long an image that no virtual machine
	// references is kept. "0s" keeps it for ever.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}(\\\\.[0-9]{1,9})?s)?([0-9]{1,6}ms)?$')",message="unusedTTL must be a duration such as 30m or 72h; 0s keeps the image for ever"
	// +optional
	UnusedTTL *metav1.Duration `json:"unusedTTL,omitempty"`

	// allowedNamespaces grants the image to virtual machines of other namespaces. Default: the image's own.
	// +optional
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces,omitempty"`
}

// Failure is one failed attempt.
type Failure struct {
	// time the failure was noticed.
	// +required
	Time metav1.Time `json:"time"`
	// reason from the closed list of FailureReason.
	// +required
	Reason FailureReason `json:"reason"`
	// message in CDI's or the storage's own words.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}

// Artifact is what virtual machines clone their disks from.
type Artifact struct {
	// revision of the spec that the artifact was made from.
	// +required
	Revision string `json:"revision"`
	// dataVolume and the claim of the same name; empty once volumePolicy DeleteAfterSnapshot has deleted them.
	// +optional
	DataVolume string `json:"dataVolume,omitempty"`
	// snapshot is the VolumeSnapshot of that claim.
	// +required
	Snapshot string `json:"snapshot"`
	// restoreSize is the least size, in bytes, of a volume restored from the snapshot.
	// +optional
	RestoreSize *resource.Quantity `json:"restoreSize,omitempty"`
	// completedAt is when the snapshot became ready.
	// +required
	CompletedAt metav1.Time `json:"completedAt"`
}

// LossKind is the kind of a lost object.
// +kubebuilder:validation:Enum=DataVolume;PersistentVolumeClaim;VolumeSnapshot;VolumeSnapshotContent
type LossKind string

// The kinds of objects whose loss is healed.
const (
	LostDataVolume LossKind = "DataVolume"
	LostClaim      LossKind = "PersistentVolumeClaim"
	LostSnapshot   LossKind = "VolumeSnapshot"
	LostContent    LossKind = "VolumeSnapshotContent"
)

// Loss is a part of a finished image that was deleted or broken by somebody else.
type Loss struct {
	// time the loss was noticed.
	// +required
	Time metav1.Time `json:"time"`
	// kind of the lost object.
	// +required
	Kind LossKind `json:"kind"`
	// name of the lost object.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// snapshotUID is that of the VolumeSnapshot that cannot be used any more, if it was still there: it goes, and is not
	// taken for the one that is made instead.
	// +optional
	SnapshotUID types.UID `json:"snapshotUID,omitempty"`
}

// References counts the virtual machines that use an image. vm-operator writes it, and nothing else.
type References struct {
	// count of the virtual machines that use the image or wait for it.
	// +kubebuilder:validation:Minimum=0
	// +required
	Count int32 `json:"count"`
	// sample of their names, as namespace/name.
	// +kubebuilder:validation:MaxItems=10
	// +listType=set
	// +optional
	Sample []string `json:"sample,omitempty"`
	// lastReferencedAt is when the count last left a value above 0 or rose.
	// +optional
	LastReferencedAt *metav1.Time `json:"lastReferencedAt,omitempty"`
}

// VMDiskImageStatus is where the image stands.
type VMDiskImageStatus struct {
	// phase is Queued, Syncing, Snapshotting, Succeeded or Failed: a shadow of the conditions, for people.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// message says what the image waits for, or why it failed.
	// +optional
	Message string `json:"message,omitempty"`

	// observedGeneration is the metadata.generation that this status was made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, Synced, SnapshotReady and Stalled, and Reconciling while an image with an artifact is
	// being updated.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// revision is the hash of the spec's fields that decide the disk's content, of sync-requested-at, and of losses.
	// attempts, lastFailure and nextAttemptTime are about it.
	// +optional
	Revision string `json:"revision,omitempty"`

	// ticket is the place in the global queue: lower goes first. It is the resourceVersion that the object had when
	// it entered the queue, so that it orders images of all namespaces by their creation.
	// +optional
	Ticket int64 `json:"ticket,omitempty"`

	// queuedAt is when the image entered the queue.
	// +optional
	QueuedAt *metav1.Time `json:"queuedAt,omitempty"`

	// startedAt is when the running or last attempt got its slot.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// completedAt is when the image became Ready, or Failed for good.
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`

	// attempts started for the revision; at most retryLimit+1.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`

	// attemptUID is the UID of the DataVolume of the running attempt, once it is known.
	// +optional
	AttemptUID types.UID `json:"attemptUID,omitempty"`

	// lastFailure of this revision.
	// +optional
	LastFailure *Failure `json:"lastFailure,omitempty"`

	// nextAttemptTime is when a failed attempt goes back to the queue's tail.
	// +optional
	NextAttemptTime *metav1.Time `json:"nextAttemptTime,omitempty"`

	// progress of the running attempt in CDI's words: N/A or a percentage.
	// +optional
	Progress string `json:"progress,omitempty"`

	// progressAt is when the running attempt last showed a sign of progress.
	// +optional
	ProgressAt *metav1.Time `json:"progressAt,omitempty"`

	// artifact is what virtual machines clone from.
	// +optional
	Artifact *Artifact `json:"artifact,omitempty"`

	// lastLoss is what was lost last after the image had succeeded; it is made again without anybody's hand.
	// +optional
	LastLoss *Loss `json:"lastLoss,omitempty"`

	// losses that took a new sync. The revision depends on it, so that such a sync has attempts of its own.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Losses int32 `json:"losses,omitempty"`

	// references of virtual machines; written by vm-operator.
	// +optional
	References *References `json:"references,omitempty"`

	// expiresAt is when an unused image will be pruned, if nothing references it until then.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
}

// VMDiskImage is a VM disk that is downloaded once, through the global queue, and kept as a volume and a snapshot.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=vmdiskimages,scope=Namespaced,shortName=vmdi,categories=ot
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Attempts",type=integer,JSONPath=`.status.attempts`
// +kubebuilder:printcolumn:name="In-Use",type=integer,JSONPath=`.status.references.count`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
type VMDiskImage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the disk that is wanted.
	// +required
	Spec VMDiskImageSpec `json:"spec"`
	// status is where the image stands.
	// +optional
	Status VMDiskImageStatus `json:"status,omitempty"`
}

// VMDiskImageList is a list of VMDiskImage.
//
// +kubebuilder:object:root=true
type VMDiskImageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VMDiskImage `json:"items"`
}
