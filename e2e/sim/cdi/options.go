package cdi

import (
	"time"

	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// Options of a simulator. The zero value is as fast as possible: no pauses, no back-off.
type Options struct {
	// UserAgent of the simulator's requests; empty means "sim-cdi".
	UserAgent string
	// Step is the pause at each place where the real CDI takes about a second.
	Step time.Duration
	// ProgressInterval between two looks at a running download; 0 means 2 s, as CDI does.
	ProgressInterval time.Duration
	// Backoff is the kubelet's wait before the second restart of a container (the first comes at once); it doubles up
	// to 30 times itself. A real kubelet starts with 10 s.
	Backoff time.Duration
	// Termination is how long a pod takes to go once it is deleted; its download stops at once.
	Termination time.Duration
	// IdleTimeout of http downloads that get no bytes; 0 means CDI's 10 minutes.
	IdleTimeout time.Duration
	// Workers is how many DataVolumes are looked at at once; 0 means 4. Imports run beside each other in any number.
	Workers int
	// Instant, when set, replaces imports: see Instant.
	Instant *Instant
	// Webhook refuses DataVolumes where a claim of that name is there already that is no DataVolume's.
	Webhook bool
	// Dir is where downloads go; empty means the system's temporary folder.
	Dir string
	// Amazon is what stands in for Amazon's S3, such as http://127.0.0.1:9000/; empty for nothing.
	Amazon string
	// Behaviour tells how to treat a DataVolume; nil means normally. It is asked again at every step, may be called
	// from many goroutines at once, and its answer may change at any time: tell Simulator.Changed.
	Behaviour func(*cdiv1.DataVolume) Behaviour
}

// Instant makes DataVolumes succeed without pods, prime claims and downloads, in three writes (claim, its status,
// the DataVolume's status), for measurements.
type Instant struct {
	// Duration from the DataVolume's appearance to Succeeded.
	Duration time.Duration
}

// RealTime is about as fast as the real CDI and kubelet.
func RealTime() Options {
	return Options{Step: time.Second, ProgressInterval: defaultProgressInterval, Backoff: 10 * time.Second, Termination: 1500 * time.Millisecond}
}

// Behaviour is what happens to a DataVolume instead of a normal import.
type Behaviour struct {
	// StopAt is a phase that is reached and not left while it stands here: Pending, PendingPopulation, ImportScheduled,
	// ImportInProgress, or a phase of a clone, such as CloneFromSnapshotSourceInProgress.
	StopAt cdiv1.DataVolumePhase
	// QuotaExceeded refuses the claim with this message, such as `persistentvolumeclaims "x" is forbidden: exceeded quota: q`.
	QuotaExceeded string
	// Unschedulable leaves the importer pod without a node.
	Unschedulable bool
	// Fail ends every run of the importer with this termination message, without a download. A message with
	// "failed to pull image" has the reason ImagePullFailed, others Error. In instant mode, too.
	Fail string
	// LoseClaim makes the claim Lost as soon as the import has succeeded.
	LoseClaim bool
	// LatePodDeletion leaves the importer pod of a deleted DataVolume to the garbage collector, as if CDI were late. With
	// foreground deletion and scratch space nothing goes then: the pod waits for the scratch claim (owner reference with
	// blockOwnerDeletion), and the claim's protection waits for the pod.
	LatePodDeletion bool
	// Duration replaces Instant.Duration when it is not nil.
	Duration *time.Duration
	// Status has the last word on every status before it is written.
	Status func(*cdiv1.DataVolumeStatus)
}

const (
	defaultProgressInterval = 2 * time.Second
	defaultWorkers          = 4
	maxBackoffFactor        = 30
)

func (o Options) withDefaults() Options {
	if o.UserAgent == "" {
		o.UserAgent = "sim-cdi"
	}
	if o.ProgressInterval == 0 {
		o.ProgressInterval = defaultProgressInterval
	}
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Behaviour == nil {
		o.Behaviour = func(*cdiv1.DataVolume) Behaviour { return Behaviour{} }
	}
	return o
}
