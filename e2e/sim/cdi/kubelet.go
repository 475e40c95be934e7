package cdi

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pelotech/open-terrain/e2e/sim/cdi/importer"
)

// podEnd is how an importer pod ended.
type podEnd int

const (
	endComplete podEnd = iota // the disk is there
	endScratch                // again with scratch space
	endChecksum               // the wrong disk, for good
	endFailed                 // restartPolicy Never: the pod stays as it is
	endKilled                 // somebody deleted the pod
)

const shortestBackoff = 50 * time.Millisecond

// runPod makes an importer pod and plays its kubelet to the end. The error is one of the API server or the context's.
func (p *play) runPod(ctx context.Context, scratch bool) (podEnd, error) {
	if err := p.createPod(ctx, scratch); err != nil {
		return 0, err
	}
	tracked := p.pods.get(p.pod.UID)
	alive, kill := context.WithCancel(ctx)
	defer kill()
	go func() {
		select {
		case <-tracked.terminating:
			kill()
		case <-alive.Done():
		}
	}()
	end, err := p.podLife(alive, scratch)
	select {
	case <-tracked.terminating:
		return endKilled, ctx.Err()
	default:
		return end, err
	}
}

// podLife is a pod's life from scheduling to its end.
func (p *play) podLife(ctx context.Context, scratch bool) (podEnd, error) {
	if err := p.schedule(ctx, scratch); err != nil {
		return 0, err
	}
	request, err := p.request(ctx, scratch)
	if err != nil {
		return 0, err
	}
	return p.runContainers(ctx, request)
}

func (p *play) createPod(ctx context.Context, scratch bool) error {
	pod := podFor(p.prime, p.source, scratch)
	err := p.client.Create(ctx, pod)
	if err == nil {
		p.pod = pod
		p.shared.pod.Store(pod.DeepCopy())
		return nil
	}
	if apierrors.IsAlreadyExists(err) { // of a play that was broken off
		old := &corev1.Pod{}
		if err := p.client.Get(ctx, client.ObjectKeyFromObject(pod), old); err != nil {
			return err
		}
		p.pod = old
		return errors.Join(fmt.Errorf("a former pod %s is in the way", pod.Name), p.deletePod(ctx))
	}
	reason := "ErrStartingPod"
	if strings.Contains(err.Error(), "exceeded quota") {
		reason = reasonQuota
	}
	p.set(annPodPhase, string(corev1.PodFailed))
	p.setRunning("false", reason, fmt.Sprintf("Error starting pod '%s': For more information, request access to cdi-deploy logs from your sysadmin", pod.Name))
	return errors.Join(err, p.report(ctx))
}

// schedule brings the pod to its node; a scratch claim is made and bound on the way.
func (p *play) schedule(ctx context.Context, scratch bool) error {
	p.set(annPodPhase, string(corev1.PodPending), annPodSchedulable, "true")
	if err := p.report(ctx); err != nil {
		return err
	}
	if scratch || p.behaviour().Unschedulable {
		if err := p.unschedulable(ctx); err != nil {
			return err
		}
	}
	if scratch {
		claim, err := p.createOwned(ctx, scratchFor(p.pod, p.prime), p.pod)
		if err != nil {
			return err
		}
		if err := p.bind(ctx, claim, volumeName(claim)); err != nil {
			return err
		}
	}
	if err := p.until(ctx, func() bool { return !p.behaviour().Unschedulable }); err != nil {
		return err
	}
	if err := p.step(ctx, 0.2); err != nil {
		return err
	}
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: p.pod.Namespace, Name: p.pod.Name, UID: p.pod.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: NodeName}}
	if err := p.client.SubResource("binding").Create(ctx, p.pod.DeepCopy(), binding); err != nil {
		return err
	}
	p.set(annPodSchedulable, "true")
	return p.waiting(ctx, "ContainerCreating", "")
}

func (p *play) unschedulable(ctx context.Context) error {
	before := p.pod.DeepCopy()
	p.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reasonUnschedulable, Message: "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims"}}
	if err := p.client.Status().Patch(ctx, p.pod, client.MergeFrom(before)); err != nil {
		return err
	}
	p.set(annPodSchedulable, "false")
	return p.report(ctx)
}

// waiting shows a container that has not started yet.
func (p *play) waiting(ctx context.Context, reason, message string) error {
	state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	if err := p.writePod(ctx, podStatus(corev1.PodPending, 0, state, corev1.ContainerState{})); err != nil {
		return err
	}
	p.setRunning("false", reason, message)
	return p.report(ctx)
}

func (p *play) writePod(ctx context.Context, status corev1.PodStatus) error {
	before := p.pod.DeepCopy()
	p.pod.Status = status
	return p.client.Status().Patch(ctx, p.pod, client.MergeFrom(before))
}

// runContainers runs the container, again and again as the pod's restartPolicy says.
func (p *play) runContainers(ctx context.Context, request importer.Request) (podEnd, error) {
	var last corev1.ContainerState
	for restarts := int32(0); ; restarts++ {
		if err := p.started(ctx, restarts, last); err != nil {
			return 0, err
		}
		began := metav1.Now()
		result := p.runImporter(ctx, request)
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		ended := terminated(result, began)
		end, again, err := p.ended(ctx, result, restarts, ended)
		if err != nil || !again {
			return end, err
		}
		last = ended
		if err := p.backOff(ctx, restarts, last); err != nil {
			return 0, err
		}
	}
}

func (p *play) started(ctx context.Context, restarts int32, last corev1.ContainerState) error {
	if err := p.holdAt(ctx, cdiv1.ImportScheduled); err != nil {
		return err
	}
	if err := p.step(ctx, 0.6); err != nil {
		return err
	}
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	if err := p.writePod(ctx, podStatus(corev1.PodRunning, restarts, state, last)); err != nil {
		return err
	}
	p.setRunning("true", reasonPodRunning, "")
	p.set(annPodPhase, string(corev1.PodRunning), annPodRestarts, strconv.Itoa(max(int(restarts), p.restartsSoFar())))
	if err := p.report(ctx); err != nil {
		return err
	}
	return errors.Join(p.holdAt(ctx, cdiv1.ImportInProgress), p.step(ctx, 1))
}

// restartsSoFar is the most restarts that any pod of the claim has had.
func (p *play) restartsSoFar() int {
	n, _ := strconv.Atoi(p.view.annotations[annPodRestarts]) // always a number that we wrote
	return n
}

func terminated(result importer.Result, began metav1.Time) corev1.ContainerState {
	reason := reasonCompleted
	if result.ExitCode != 0 {
		reason = reasonError
	}
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: result.ExitCode, Reason: reason, Message: result.Message, StartedAt: began, FinishedAt: metav1.Now(),
	}}
}

// ended shows the end of a container, first with the pod running, and tells whether it is to run again.
func (p *play) ended(ctx context.Context, result importer.Result, restarts int32, state corev1.ContainerState) (podEnd, bool, error) {
	none, end, again := corev1.ContainerState{}, endFailed, false
	phase := corev1.PodFailed
	switch {
	case result.ScratchRequired:
		end, phase = endScratch, corev1.PodSucceeded
		p.setRunning("false", reasonScratch, messageScratch)
	case result.ChecksumMismatch:
		end, phase = endChecksum, corev1.PodSucceeded
		p.setRunning("false", reasonChecksum, unwrap(result.Message))
		p.set(annPodPhase, string(corev1.PodFailed), annFatalError, "true")
		p.setBoundMessage(unwrap(result.Message))
	case result.ExitCode == 0:
		end, phase = endComplete, corev1.PodSucceeded
		p.setRunning("false", reasonCompleted, messageComplete)
	default:
		again = p.pod.Spec.RestartPolicy != corev1.RestartPolicyNever
		p.setFailure(result.Message)
		if !again {
			p.set(annPodPhase, string(corev1.PodFailed))
		}
	}
	if again {
		phase = corev1.PodRunning
	} else if end == endComplete { // the container's end is seen before the pod's
		if err := errors.Join(p.writePod(ctx, podStatus(corev1.PodRunning, restarts, state, none)), p.report(ctx), p.step(ctx, 0.5)); err != nil {
			return 0, false, err
		}
	}
	err := p.writePod(ctx, podStatus(phase, restarts, state, none))
	if end != endComplete {
		err = errors.Join(err, p.report(ctx))
	}
	return end, again, err
}

func (p *play) setFailure(message string) {
	reason := reasonError
	if strings.Contains(message, textPullFailed) {
		reason = reasonPullFailed
	}
	p.setRunning("false", reason, importer.SimplifyMessage(message))
	p.setBoundMessage(message)
}

// backOff waits before a restart. The first one comes at once.
func (p *play) backOff(ctx context.Context, restarts int32, last corev1.ContainerState) error {
	if restarts == 0 {
		return p.step(ctx, 0.3)
	}
	first := max(p.options.Backoff, shortestBackoff)
	wait := min(first<<min(restarts-1, maxBackoffFactor), maxBackoffFactor*first)
	message := fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", wait, importerName, p.pod.Name)
	state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: message}}
	if err := p.writePod(ctx, podStatus(corev1.PodRunning, restarts, state, last)); err != nil {
		return err
	}
	return p.pause(ctx, wait)
}

// deletePod deletes the pod and returns when it is gone.
func (p *play) deletePod(ctx context.Context) error {
	p.removePod(ctx, p.pod, gracePeriod)
	return p.waitForPodToGo(ctx)
}

func (p *play) waitForPodToGo(ctx context.Context) error {
	select {
	case <-p.pods.get(p.pod.UID).gone:
		p.pod = nil
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
