package controller

import (
	"time"

	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
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
	// Workers is how many virtual machines are followed at a time.
	Workers int
	// ClaimInterval is the least time between two writes of an image's references.
	ClaimInterval time.Duration
	// TroubleDebounce is how long a state that usually passes must last to be a failure.
	TroubleDebounce time.Duration
	PasswordReader  PasswordReader
}

// unlimited is how long the controllers wait for their caches: CDI or KubeVirt may be installed later.
const unlimited = 100 * 365 * 24 * time.Hour

// tooLong is how long one look may take. A request whose answer never comes, because the connection died in silence, must
// not stop a worker for ever.
const tooLong = 30 * time.Second

// claimWorkers is how many images are counted at a time.
const claimWorkers = 4

// Setup adds the controllers to the manager.
func Setup(mgr manager.Manager, o Options) error {
	m, err := newMetrics(ctrlmetrics.Registry)
	if err != nil {
		return err
	}
	var counted inbox
	claims := &Claims{
		client: mgr.GetClient(), cache: mgr.GetCache(), interval: o.ClaimInterval, now: time.Now, metrics: m, wake: counted.put,
		images: map[types.NamespacedName]claimed{},
	}
	machines := &VirtualMachines{
		client: mgr.GetClient(), cache: mgr.GetCache(), live: mgr.GetAPIReader(), claims: claims,
		settings: plan.Settings{TroubleDebounce: o.TroubleDebounce}, now: time.Now, reader: o.PasswordReader,
		events: &events{recorder: mgr.GetEventRecorder("vm-operator")}, metrics: m,
	}
	indexed := newIndexes(mgr.GetFieldIndexer())
	for _, p := range []part{
		{"virtualmachine", o.Workers, machines, append(machineSources(mgr), indexed, &counted)},
		{"claim", claimWorkers, claims, append(claimSources(mgr), indexed)},
	} {
		if err := p.add(mgr); err != nil {
			return err
		}
	}
	return nil
}

// part is a worker: what it does, how many times at once, and what it is woken by.
type part struct {
	name       string
	workers    int
	reconciler reconcile.Reconciler
	sources    []source.Source
}

func (p part) add(mgr manager.Manager) error {
	c, err := controller.New(p.name, mgr, controller.Options{
		Reconciler: p.reconciler, MaxConcurrentReconciles: p.workers,
		CacheSyncTimeout: unlimited, ReconciliationTimeout: tooLong, UsePriorityQueue: new(false),
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](10*time.Millisecond, 30*time.Second),
	})
	if err != nil {
		return wrap("make the controller "+p.name, err)
	}
	for _, s := range p.sources {
		if err := c.Watch(s); err != nil {
			return wrap("watch", err)
		}
	}
	return nil
}
