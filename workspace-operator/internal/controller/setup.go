package controller

import (
	"time"

	"github.com/pelotech/open-terrain/workspace-operator/internal/plan"
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
	// Namespace of the operator: of the slots.
	Namespace string
	// PolicyNamespace is that of the policy's ConfigMap.
	PolicyNamespace string
	// Workers is how many workspaces are followed at a time.
	Workers int
	// Settings are what the plan goes by.
	Settings plan.Settings
}

// unlimited is how long the controllers wait for their caches: the kinds of the vm-operator may be installed later.
const unlimited = 100 * 365 * 24 * time.Hour

// tooLong is how long one look may take. A request whose answer never comes, because the connection died in silence, must
// not stop a worker for ever.
const tooLong = 30 * time.Second

// Setup adds the controllers to the manager.
func Setup(mgr manager.Manager, o Options) error {
	m, err := newMetrics(ctrlmetrics.Registry)
	if err != nil {
		return err
	}
	recorder := &events{recorder: mgr.GetEventRecorder("workspace-operator")}
	policies := &Policies{client: mgr.GetClient(), key: policyKey(o.PolicyNamespace), events: recorder, metrics: m}
	admission := &Admission{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), namespace: o.Namespace, policy: policies.Current, now: time.Now, metrics: m,
		known: map[string]*entry{},
	}
	if err := ctrlmetrics.Registry.Register(newQueueCollector(admission.state)); err != nil {
		return wrap("register the metrics", err)
	}
	workspaces := &Workspaces{
		client: mgr.GetClient(), cache: mgr.GetCache(), live: mgr.GetAPIReader(), admission: admission, settings: o.Settings,
		now: time.Now, events: recorder, metrics: m,
	}
	return wire(mgr, o, policies, admission, workspaces)
}

// wire connects the workers: each has an inbox that the others put keys into.
func wire(mgr manager.Manager, o Options, policies *Policies, admission *Admission, workspaces *Workspaces) error {
	var rounds, followed inbox
	indexes := newIndexes(mgr.GetFieldIndexer())
	admission.poke = func() { rounds.put(types.NamespacedName{Name: "round"}) }
	admission.wake, policies.changed = followed.put, admission.poke
	for _, p := range []part{
		{"workspace", o.Workers, workspaces, append(workspaceSources(mgr), indexes, &followed)},
		{"admission", 1, admission, append(admissionSources(mgr, admission), &rounds)},
		{"policy", 1, policies, policySources(mgr)},
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
