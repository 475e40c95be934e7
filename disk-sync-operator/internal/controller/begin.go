package controller

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Starts record that attempts begin.
type Starts struct{ *Images }

// Reconcile writes that the image's attempt begins, if one is due. What follows is for the downloads.
func (r Starts) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return r.reconcile(ctx, req.NamespacedName, func(ctx context.Context, s plan.Snapshot, d plan.Decision, set plan.Settings) (reconcile.Result, error) {
		if !d.Report.Starts {
			return r.handOver(ctx, s, d, set)
		}
		if result, holds, err := r.confirm(ctx, s); !holds {
			return result, err
		}
		image, err := r.report(ctx, s, d.Report, set.Policy.MaxAttempts())
		if err != nil {
			return conflictIsLater(err)
		}
		s.Image = image
		if slices.Contains(d.Actions, plan.CreateDataVolume) {
			d.Report.Starts, d.Report.Ticket = false, 0
			r.begun.put(req.NamespacedName, begun{snapshot: s, decision: d, settings: set})
		}
		r.download(req.NamespacedName)
		return reconcile.Result{}, nil
	})
}

// Downloads create the DataVolumes of attempts that have begun.
type Downloads struct{ *Images }

// Reconcile creates the image's DataVolume, if it is missing: of an attempt that has just begun by what the starts have
// written, so that it need not wait until the cache shows it.
func (r Downloads) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	defer r.admission.begins(req.NamespacedName)
	create := func(ctx context.Context, s plan.Snapshot, d plan.Decision, set plan.Settings) (reconcile.Result, error) {
		if d.Report.Starts {
			return r.handOver(ctx, s, d, set)
		}
		if result, holds, err := r.confirm(ctx, s); !holds {
			return result, err
		}
		return r.act(ctx, s, d, set)
	}
	if b, has := r.begun.take(req.NamespacedName); has {
		return create(ctx, b.snapshot, b.decision, b.settings)
	}
	return r.reconcile(ctx, req.NamespacedName, create)
}

// confirm makes sure of slot and image before an attempt begins: a leader that was paused may remember a slot that its
// successor has passed on, or an attempt that its successor has ended, under a slot that is still kept.
func (r *Images) confirm(ctx context.Context, s plan.Snapshot) (reconcile.Result, bool, error) {
	holds, asked, err := r.admission.confirm(ctx, s.Slot, s.Hold)
	if err == nil && holds && asked {
		holds, err = r.isAs(ctx, s.Image)
	}
	if err != nil || !holds {
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, false, err
	}
	return reconcile.Result{}, true, nil
}

// begun is an attempt whose beginning has been written, on its way from the starts to the downloads.
type begun struct {
	snapshot plan.Snapshot
	decision plan.Decision
	settings plan.Settings
}

// handovers keep what is on the way. It is no more than what the caches will show in a moment, too: nothing is lost
// with it.
type handovers struct {
	mu    sync.Mutex
	under map[types.NamespacedName]begun
}

func (h *handovers) put(key types.NamespacedName, b begun) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.under == nil {
		h.under = map[types.NamespacedName]begun{}
	}
	h.under[key] = b
}

func (h *handovers) take(key types.NamespacedName) (begun, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, has := h.under[key]
	delete(h.under, key)
	return b, has
}
