package cdi

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
)

// podTracker tells plays that their pods are being deleted, or are gone. It keeps what it knows about a pod that is gone,
// because its play may ask later.
type podTracker struct {
	mu   sync.Mutex
	pods map[types.UID]*trackedPod
}

type trackedPod struct {
	terminating chan struct{}
	gone        chan struct{}
	once        sync.Once
}

func (t *podTracker) get(uid types.UID) *trackedPod {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pods[uid]
	if p == nil {
		p = &trackedPod{terminating: make(chan struct{}), gone: make(chan struct{})}
		t.pods[uid] = p
	}
	return p
}

// podChanged plays the kubelet of a pod that is being deleted: the container stops at once, the pod goes a little later.
func (s *Simulator) podChanged(ctx context.Context, object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok || pod.DeletionTimestamp == nil || pod.Spec.NodeName != NodeName {
		return
	}
	tracked := s.pods.get(pod.UID)
	tracked.once.Do(func() {
		close(tracked.terminating)
		go func() {
			_ = s.pause(ctx, s.options.Termination)
			s.removePod(ctx, pod, 0)
		}()
	})
}

func (s *Simulator) podGone(object any) {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	tracked := s.pods.get(pod.UID)
	tracked.once.Do(func() { close(tracked.terminating) })
	close(tracked.gone)
}

// removePod deletes a pod, and tries again for a while when the API server does not answer.
func (s *Simulator) removePod(ctx context.Context, pod *corev1.Pod, grace int64) {
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Steps: 8}
	_ = wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		err := s.client.Delete(ctx, pod.DeepCopy(), client.GracePeriodSeconds(grace), client.Preconditions{UID: &pod.UID})
		return err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err), nil
	})
}

func controllerConfig() ctrlconfig.Controller {
	skip := true
	return ctrlconfig.Controller{SkipNameValidation: &skip} // several simulators may run in one process
}
