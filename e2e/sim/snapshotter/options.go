// Package snapshotter plays the snapshot controller, its sidecar and a CSI driver on a cluster that has the
// CustomResourceDefinitions of external-snapshotter but nothing that acts on them.
//
// A VolumeSnapshot of a bound claim gets a VolumeSnapshotContent and is ready after a delay. The class decides, as the
// parameters of a test driver do: readyAfter (a duration) and failWith (the driver's error). Errors have the words of
// external-snapshotter v8.6 and are tried again with back-off for ever.
//
// Deletions go as there. A snapshot has the finalizer volumesnapshot-as-source-protection, and with deletionPolicy Delete
// volumesnapshot-bound-protection, too: it goes when no claim of its namespace that is Pending restores from it, and its
// content with it; with Retain the content stays. A content has a finalizer as well: one that is deleted by hand stays as
// long as its snapshot, which notices nothing. Only when somebody takes that finalizer away, too, the snapshot is no longer
// ready (VolumeSnapshotContent is missing), and another content is made of the claim if there still is one.
//
// What is not played: pre-provisioned contents, groups, events, and the finalizer on claims of which a snapshot is being
// taken. With Options.Instant there are no finalizers.
package snapshotter

import "time"

// Parameters of a VolumeSnapshotClass that the simulator obeys.
const (
	// ParameterReadyAfter is a duration such as 20s.
	ParameterReadyAfter = "readyAfter"
	// ParameterFailWith is the message of the driver's error.
	ParameterFailWith = "failWith"
)

// Options of a simulator. The zero value is as fast as possible.
type Options struct {
	// UserAgent of the simulator's requests; empty means "sim-snapshotter".
	UserAgent string
	// ReadyAfter is the time until a snapshot is ready where the class does not say.
	ReadyAfter time.Duration
	// Backoff before an error is tried again; it doubles up to 300 times itself. 0 means 100 ms, the real one has 1 s.
	Backoff time.Duration
	// Workers is how many snapshots are looked at at once; 0 means 4.
	Workers int
	// Instant makes snapshots ready in two writes (content, status of the snapshot), for measurements.
	Instant bool
	// Behaviour tells how to treat a snapshot, by namespace and name; nil means as its class says. It may be called from
	// many goroutines at once, and is asked again at every try.
	Behaviour func(namespace, name string) Behaviour
}

// Behaviour is what happens to a VolumeSnapshot instead of what its class says.
type Behaviour struct {
	// FailWith is the driver's error; empty means none.
	FailWith string
	// NeverReady leaves the snapshot with its content and readyToUse false.
	NeverReady bool
}

const (
	defaultWorkers   = 4
	defaultBackoff   = 100 * time.Millisecond
	maxBackoffFactor = 300
)

func (o Options) withDefaults() Options {
	if o.UserAgent == "" {
		o.UserAgent = "sim-snapshotter"
	}
	if o.Backoff == 0 {
		o.Backoff = defaultBackoff
	}
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Behaviour == nil {
		o.Behaviour = func(string, string) Behaviour { return Behaviour{} }
	}
	return o
}
