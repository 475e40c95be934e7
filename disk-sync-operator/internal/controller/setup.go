package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Options of the controllers.
type Options struct {
	// Namespace of the operator: of the policy and of the slots.
	Namespace string
	// ProgressInterval is the least time between two status writes that only report progress.
	ProgressInterval time.Duration
	// Workers is how many images are followed at a time.
	Workers int
}

// unlimited is how long the controllers wait for their caches: CDI or the snapshotter may be installed later.
const unlimited = 100 * 365 * 24 * time.Hour

// tooLong is how long one look may take. A request whose answer never comes, because the connection died in silence, must
// not stop a worker for ever: the starts and the downloads have one each.
const tooLong = 30 * time.Second

// Setup adds the controllers to the manager.
func Setup(ctx context.Context, mgr manager.Manager, o Options) error {
	m, err := newMetrics(ctrlmetrics.Registry)
	if err != nil {
		return fmt.Errorf("register the metrics: %w", err)
	}
	if err := errors.Join(indexClaims(ctx, mgr), indexDataSyncs(ctx, mgr)); err != nil {
		return err
	}
	recorder := &events{recorder: mgr.GetEventRecorder("disk-sync-operator")}
	policies := &Policies{client: mgr.GetClient(), key: policyKey(o.Namespace), events: recorder, metrics: m}
	admission := &Admission{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), namespace: o.Namespace, policy: policies.Current, now: time.Now, metrics: m,
		images: map[string]entry{}, fresh: map[string]bool{}, ended: map[string]struct{}{}, granted: map[string]grant{},
	}
	if err := ctrlmetrics.Registry.Register(newQueueCollector(admission.state)); err != nil {
		return fmt.Errorf("register the metrics: %w", err)
	}
	images := &Images{
		client: mgr.GetClient(), cache: mgr.GetCache(), live: mgr.GetAPIReader(), policy: policies.InForce, admission: admission,
		progress: o.ProgressInterval, now: time.Now, events: recorder, metrics: m, sightings: &sightings{}, begun: &handovers{},
	}
	if err := addDataSyncs(mgr, policies, recorder); err != nil {
		return err
	}
	return wire(mgr, o, policies, admission, images)
}

// addDataSyncs adds the worker that follows DataSyncs: it needs nothing of the others but the policy.
func addDataSyncs(mgr manager.Manager, policies *Policies, recorder *events) error {
	phases := newDataSyncPhases()
	if err := ctrlmetrics.Registry.Register(phases); err != nil {
		return fmt.Errorf("register the metrics: %w", err)
	}
	dataSyncs := &DataSyncs{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), policy: policies.Current, now: time.Now, events: recorder, phases: phases,
	}
	return part{"datasync", 2, dataSyncs, dataSyncSources(mgr)}.add(mgr)
}

// part is a worker: what it does, how many times at once, and what it is woken by.
type part struct {
	name       string
	workers    int
	reconciler reconcile.Reconciler
	sources    []source.Source
}

func (p part) add(mgr manager.Manager) error {
	// The priority queue would change the order of starts; the other workers do not depend on any.
	c, err := controller.New(p.name, mgr, controller.Options{
		Reconciler: p.reconciler, MaxConcurrentReconciles: p.workers,
		CacheSyncTimeout: unlimited, ReconciliationTimeout: tooLong, UsePriorityQueue: new(false),
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](10*time.Millisecond, 30*time.Second),
	})
	if err != nil {
		return fmt.Errorf("make the controller %s: %w", p.name, err)
	}
	for _, s := range p.sources {
		if err := c.Watch(s); err != nil {
			return fmt.Errorf("watch %s: %w", s, err)
		}
	}
	return nil
}

// wire connects the workers: each has an inbox that the others put keys into.
func wire(mgr manager.Manager, o Options, policies *Policies, admission *Admission, images *Images) error {
	var rounds, followed, starts, downloads inbox
	children := newIndexes(mgr.GetFieldIndexer())
	admission.poke = func() { rounds.put(types.NamespacedName{Name: "round"}) }
	admission.admitted, admission.wake = starts.put, followed.put
	images.start, images.download = starts.put, downloads.put
	policies.changed = func() {
		admission.poke()
		for _, key := range admission.holders() {
			followed.put(key) // their deadlines may be others now
		}
	}
	policies.expiryChanged = func(ctx context.Context) error {
		keys, err := images.expiring(ctx)
		for _, key := range keys {
			followed.put(key)
		}
		return err
	}
	parts := []part{
		{"vmdiskimage", o.Workers, images, append(imageSources(mgr, admission), children, &followed)},
		{"start", 1, Starts{images}, append(servedSources(mgr), children, &starts)},
		{"download", 1, Downloads{images}, append(servedSources(mgr), children, &downloads)},
		{"admission", 1, admission, append(admissionSources(mgr, admission), &rounds)},
		{"policy", 1, policies, policySources(mgr)},
	}
	for _, p := range parts {
		if err := p.add(mgr); err != nil {
			return err
		}
	}
	return nil
}
