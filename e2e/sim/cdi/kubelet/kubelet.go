// Package kubelet plays scheduler and kubelet for importer pods: it binds them to a node that does not exist, runs the
// importer, and writes the statuses that a kubelet writes, restarts and back-off included, as the pod's restartPolicy says.
package kubelet

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pelotech/open-terrain/e2e/sim/cdi/importer"
	"github.com/pelotech/open-terrain/e2e/sim/cdi/objects"
)

const (
	shortestBackoff  = 50 * time.Millisecond
	maxBackoffFactor = 30
)

// ErrKilled is the end of a pod that somebody has deleted.
var ErrKilled = errors.New("the pod has been deleted")

// Options of a kubelet; the simulator's options say what they mean.
type Options struct {
	Step, Backoff, Termination, ProgressInterval, IdleTimeout time.Duration
	Dir                                                       string
	// Amazon is what stands in for Amazon's S3: scheme, host and a slash; empty for nothing.
	Amazon string
}

// Kubelet runs importer pods.
type Kubelet struct {
	options Options
	client  client.WithWatch
	tracker tracker
}

// New returns a kubelet. It must get the events of pods: see Handler.
func New(c client.WithWatch, o Options) *Kubelet {
	return &Kubelet{options: o, client: c, tracker: tracker{pods: map[types.UID]*trackedPod{}}}
}

// Gate is a place in a pod's life where it can be held back.
type Gate int

// Gates, in their order.
const (
	BeforeScheduling Gate = iota
	BeforeStart           // of each run of the container
	WhileRunning
)

// Run is the life of one pod.
type Run struct {
	// Pod as last written.
	Pod *corev1.Pod
	// Source and Size are what the container is told.
	Source objects.Source
	Size   int64
	// Scratch makes and binds the pod's scratch claim; nil when the pod has none.
	Scratch func(context.Context) error
	// Observe is called after each change of the pod's status.
	Observe func(context.Context) error
	// Progress is called at intervals while an http source is downloaded.
	Progress func(ctx context.Context, percent float64)
	// Hold returns when a gate is open.
	Hold func(context.Context, Gate) error
	// Unschedulable tells that BeforeScheduling is closed, which a scheduler would show.
	Unschedulable func() bool
	// Fail is the termination message of a run without a download; empty means to run the importer.
	Fail func() string
}

// Live plays a pod until it has ended for good: the error is nil and the pod's status tells how. ErrKilled comes when
// somebody deletes the pod; other errors are the API server's or the context's.
func (k *Kubelet) Live(ctx context.Context, r *Run) error {
	tracked := k.tracker.get(r.Pod.UID)
	alive, kill := context.WithCancel(ctx)
	defer kill()
	go func() {
		select {
		case <-tracked.terminating:
			kill()
		case <-alive.Done():
		}
	}()
	err := k.live(alive, r)
	select {
	case <-tracked.terminating:
		if ctx.Err() == nil {
			err = ErrKilled
		}
	default:
	}
	return err
}

func (k *Kubelet) live(ctx context.Context, r *Run) error {
	if err := k.schedule(ctx, r); err != nil {
		return err
	}
	request, err := k.request(ctx, r)
	if err != nil {
		return err
	}
	return k.runContainers(ctx, r, request)
}

func (k *Kubelet) step(ctx context.Context, part float64) error {
	return pause(ctx, time.Duration(part*float64(k.options.Step)))
}

// schedule brings the pod to its node. A pod with scratch space waits for its claim for a moment.
func (k *Kubelet) schedule(ctx context.Context, r *Run) error {
	if err := r.Observe(ctx); err != nil {
		return err
	}
	if r.Scratch != nil || r.Unschedulable() {
		status := corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims",
		}}}
		if err := k.write(ctx, r, status); err != nil {
			return err
		}
	}
	if r.Scratch != nil {
		if err := r.Scratch(ctx); err != nil {
			return err
		}
	}
	if err := errors.Join(r.Hold(ctx, BeforeScheduling), k.step(ctx, 0.2)); err != nil {
		return err
	}
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: r.Pod.Namespace, Name: r.Pod.Name, UID: r.Pod.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: objects.NodeName}}
	if err := k.client.SubResource("binding").Create(ctx, r.Pod.DeepCopy(), binding); err != nil {
		return err
	}
	return k.waiting(ctx, r, "ContainerCreating", "")
}

// waiting shows a container that has not started yet.
func (k *Kubelet) waiting(ctx context.Context, r *Run, reason, message string) error {
	state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	return k.write(ctx, r, objects.PodStatus(corev1.PodPending, 0, state, corev1.ContainerState{}))
}

func (k *Kubelet) write(ctx context.Context, r *Run, status corev1.PodStatus) error {
	before := r.Pod.DeepCopy()
	r.Pod.Status = status
	if err := k.client.Status().Patch(ctx, r.Pod, client.MergeFrom(before)); err != nil {
		return err
	}
	return r.Observe(ctx)
}

// runContainers runs the container, again and again as the restartPolicy says.
func (k *Kubelet) runContainers(ctx context.Context, r *Run, request importer.Request) error {
	var last corev1.ContainerState
	for restarts := int32(0); ; restarts++ {
		began := metav1.Now()
		if err := k.started(ctx, r, restarts, last); err != nil {
			return err
		}
		result := k.runImporter(ctx, r, request)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		last = terminated(result, began)
		if result.ExitCode == 0 || r.Pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
			return k.ended(ctx, r, restarts, last)
		}
		if err := k.write(ctx, r, objects.PodStatus(corev1.PodRunning, restarts, last, corev1.ContainerState{})); err != nil {
			return err
		}
		if err := k.backOff(ctx, r, restarts, last); err != nil {
			return err
		}
	}
}

func (k *Kubelet) started(ctx context.Context, r *Run, restarts int32, last corev1.ContainerState) error {
	if err := errors.Join(r.Hold(ctx, BeforeStart), k.step(ctx, 0.6)); err != nil {
		return err
	}
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	if err := k.write(ctx, r, objects.PodStatus(corev1.PodRunning, restarts, state, last)); err != nil {
		return err
	}
	return errors.Join(r.Hold(ctx, WhileRunning), k.step(ctx, 1))
}

func terminated(result importer.Result, began metav1.Time) corev1.ContainerState {
	reason := objects.ReasonCompleted
	if result.ExitCode != 0 {
		reason = objects.ReasonError
	}
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: result.ExitCode, Reason: reason, Message: result.Message, StartedAt: began, FinishedAt: metav1.Now(),
	}}
}

// ended shows the pod's end. Of a good import the container's end is seen before the pod's.
func (k *Kubelet) ended(ctx context.Context, r *Run, restarts int32, state corev1.ContainerState) error {
	phase := corev1.PodSucceeded
	if state.Terminated.ExitCode != 0 {
		phase = corev1.PodFailed
	}
	final := objects.PodStatus(phase, restarts, state, corev1.ContainerState{})
	if objects.OutcomeOf(&corev1.Pod{Status: final}) == objects.Complete {
		running := objects.PodStatus(corev1.PodRunning, restarts, state, corev1.ContainerState{})
		if err := errors.Join(k.write(ctx, r, running), k.step(ctx, 0.5)); err != nil {
			return err
		}
	}
	return k.write(ctx, r, final)
}

// backOff waits before a restart. The first one comes at once.
func (k *Kubelet) backOff(ctx context.Context, r *Run, restarts int32, last corev1.ContainerState) error {
	if restarts == 0 {
		return k.step(ctx, 0.3)
	}
	first := max(k.options.Backoff, shortestBackoff)
	wait := min(first<<min(restarts-1, maxBackoffFactor), maxBackoffFactor*first)
	message := fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", wait, objects.ImporterName, r.Pod.Name)
	state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: message}}
	if err := k.write(ctx, r, objects.PodStatus(corev1.PodRunning, restarts, state, last)); err != nil {
		return err
	}
	return pause(ctx, wait)
}
