package kubevirt

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	virtv1 "kubevirt.io/api/core/v1"
)

// Options of a simulator. The zero value is as fast as possible: no pauses.
type Options struct {
	// UserAgent of the simulator's requests; empty means "sim-kubevirt".
	UserAgent string
	// Step is the pause at each place where the real KubeVirt takes about a second.
	Step time.Duration
	// Termination is how long a guest takes to shut down.
	Termination time.Duration
	// Backoff is the wait before a guest is started again that could not start, or was taken away; it grows with the
	// square of the failures, up to 30 times itself. 0 means 100 ms, the real one has 10 s.
	Backoff time.Duration
	// Retry is how often it is looked again for what is missing: networks, Secrets, quota. 0 means 100 ms; really it is
	// 20 s and more.
	Retry time.Duration
	// Node makes the Node that launchers are bound to, for controllers that look for it: those of the endpoints of Services. No
	// scheduler puts anything else on it.
	Node bool
	// NodeMemory is what the one node has; nothing means 64Gi. Guests are not added up.
	NodeMemory resource.Quantity
	// Workers is how many VirtualMachines are looked at at once; 0 means 4.
	Workers int
	// Instant, when set, leaves out pods and all that is on the way: see Instant.
	Instant *Instant
	// Admission serves KubeVirt's webhooks for VirtualMachines.
	Admission bool
	// Behaviour tells how to treat a VirtualMachine; nil means normally. It is asked again at every step, may be called
	// from many goroutines at once, and its answer may change at any time: tell Simulator.Changed.
	Behaviour func(*virtv1.VirtualMachine) Behaviour
}

// Instant makes VirtualMachines run in three writes (instance, its status, the VirtualMachine's status), without finalizers
// and pods, for measurements.
type Instant struct {
	// Duration from the VirtualMachine's appearance, with its disk, to Running.
	Duration time.Duration
}

// RealTime is about as fast as the real KubeVirt.
func RealTime() Options {
	return Options{Step: time.Second, Termination: 5 * time.Second, Backoff: 10 * time.Second, Retry: 20 * time.Second}
}

// Behaviour is what happens to a VirtualMachine instead of what would.
type Behaviour struct {
	// CrashLoop lets every launcher end before the guest runs.
	CrashLoop bool
	// Unschedulable is the scheduler's message; the launcher pod gets no node while it stands here.
	Unschedulable string
	// NeverRuns leaves the instance Scheduled.
	NeverRuns bool
	// Delay from the launcher's start to Running.
	Delay time.Duration
	// End is the phase in which a guest ends that runs: Succeeded or Failed.
	End virtv1.VirtualMachineInstancePhase
	// Addresses that the guest agent reports, by the name of the network in the spec. With any, the agent is connected.
	Addresses map[string]string
	// Flap shows these states in turn instead of what there is, each for FlapEvery.
	Flap      []virtv1.VirtualMachinePrintableStatus
	FlapEvery time.Duration
	// Status has the last word on every status before it is written.
	Status func(*virtv1.VirtualMachineStatus)
}

const (
	defaultWorkers   = 4
	defaultBackoff   = 100 * time.Millisecond
	defaultRetry     = 100 * time.Millisecond
	defaultFlapEvery = 100 * time.Millisecond
	maxBackoffFactor = 30
)

func (o Options) withDefaults() Options {
	if o.UserAgent == "" {
		o.UserAgent = "sim-kubevirt"
	}
	if o.Backoff == 0 {
		o.Backoff = defaultBackoff
	}
	if o.Retry == 0 {
		o.Retry = defaultRetry
	}
	if o.NodeMemory.IsZero() {
		o.NodeMemory = resource.MustParse("64Gi")
	}
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Behaviour == nil {
		o.Behaviour = func(*virtv1.VirtualMachine) Behaviour { return Behaviour{} }
	}
	return o
}
