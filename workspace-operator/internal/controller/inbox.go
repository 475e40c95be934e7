package controller

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// inbox is a source that the other workers put keys into, first in, first out. What comes before its controller runs is
// kept.
type inbox struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	early []reconcile.Request
}

// Start implements source.Source.
func (i *inbox) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.queue = queue
	for _, request := range i.early {
		queue.Add(request)
	}
	i.early = nil
	return nil
}

func (i *inbox) put(key types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	request := reconcile.Request{NamespacedName: key}
	if i.queue == nil {
		i.early = append(i.early, request)
		return
	}
	i.queue.Add(request)
}
