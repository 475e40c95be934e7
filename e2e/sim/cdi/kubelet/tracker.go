package kubelet

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

	"github.com/pelotech/open-terrain/e2e/sim/cdi/objects"
)

const (
	gracePeriod = 30 // of importer pods, in seconds
	firstRetry  = 50 * time.Millisecond
	retries     = 8
)

// tracker tells that pods are being deleted, or are gone. It keeps what it knows about a pod that is gone, because
// somebody may ask later.
type tracker struct {
	mu   sync.Mutex
	pods map[types.UID]*trackedPod
}

type trackedPod struct {
	terminating chan struct{}
	gone        chan struct{}
	once        sync.Once
}

func (t *tracker) get(uid types.UID) *trackedPod {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pods[uid]
	if p == nil {
		p = &trackedPod{terminating: make(chan struct{}), gone: make(chan struct{})}
		t.pods[uid] = p
	}
	return p
}

// Handler feeds the kubelet with the events of pods. Once a pod is being deleted, its container stops at once, and the
// pod goes a little later.
func (k *Kubelet) Handler(ctx context.Context) toolscache.ResourceEventHandler {
	changed := func(o any) {
		pod, ok := o.(*corev1.Pod)
		if !ok || pod.DeletionTimestamp == nil || pod.Spec.NodeName != objects.NodeName {
			return
		}
		tracked := k.tracker.get(pod.UID)
		tracked.once.Do(func() {
			close(tracked.terminating)
			go func() {
				_ = pause(ctx, k.options.Termination)
				k.remove(ctx, pod, 0)
			}()
		})
	}
	return toolscache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, o any) { changed(o) }, DeleteFunc: k.gone}
}

func (k *Kubelet) gone(o any) {
	if tombstone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = tombstone.Obj
	}
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	tracked := k.tracker.get(pod.UID)
	tracked.once.Do(func() { close(tracked.terminating) })
	close(tracked.gone)
}

// Delete deletes a pod and does not wait until it is gone.
func (k *Kubelet) Delete(ctx context.Context, pod *corev1.Pod) { k.remove(ctx, pod, gracePeriod) }

// WaitGone returns when a pod is gone.
func (k *Kubelet) WaitGone(ctx context.Context, pod *corev1.Pod) error {
	select {
	case <-k.tracker.get(pod.UID).gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// remove tries again for a while when the API server does not answer.
func (k *Kubelet) remove(ctx context.Context, pod *corev1.Pod, grace int64) {
	backoff := wait.Backoff{Duration: firstRetry, Factor: 2, Steps: retries}
	_ = wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		err := k.client.Delete(ctx, pod.DeepCopy(), client.GracePeriodSeconds(grace), client.Preconditions{UID: &pod.UID})
		return err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err), nil
	})
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
