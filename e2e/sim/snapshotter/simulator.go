package snapshotter

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Simulator plays the snapshot controller. Make one with Start.
type Simulator struct {
	options Options
	client  client.Client // reads live: a claim may have been bound a moment ago
	cached  client.Reader
	done    chan struct{}
}

// Start runs a simulator against a cluster until ctx is done, and returns when it watches. The config is copied.
func Start(ctx context.Context, config *rest.Config, options Options) (*Simulator, error) {
	s := &Simulator{options: options.withDefaults(), done: make(chan struct{})}
	config = rest.CopyConfig(config)
	config.UserAgent, config.QPS = s.options.UserAgent, -1
	mgr, err := newManager(config)
	if err != nil {
		return nil, fmt.Errorf("snapshotter simulator: %w", err)
	}
	if s.client, err = client.New(config, client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()}); err != nil {
		return nil, fmt.Errorf("snapshotter simulator: %w", err)
	}
	s.cached = mgr.GetClient()
	if err := s.watch(mgr); err != nil {
		return nil, fmt.Errorf("snapshotter simulator: %w", err)
	}
	failed := make(chan error, 1)
	go func() {
		defer close(s.done)
		failed <- mgr.Start(ctx)
	}()
	select {
	case err := <-failed:
		return nil, fmt.Errorf("snapshotter simulator: %w", err)
	case <-mgr.Elected():
	}
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("snapshotter simulator: %w", ctx.Err())
	}
	return s, nil
}

// Wait returns when the simulator has ended, after the context of Start is done.
func (s *Simulator) Wait() { <-s.done }

func newManager(config *rest.Config) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := snapshotv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	skip := true // several simulators may run in one process
	return ctrl.NewManager(config, manager.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: &skip},
	})
}

func (s *Simulator) watch(mgr manager.Manager) error {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](s.options.Backoff, maxBackoffFactor*s.options.Backoff)
	return builder.ControllerManagedBy(mgr).Named("snapshotter").
		For(&snapshotv1.VolumeSnapshot{}, builder.WithPredicates(predicate.GenerationChangedPredicate{}, predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }})).
		Watches(&snapshotv1.VolumeSnapshot{}, handler.Funcs{DeleteFunc: s.snapshotDeleted}).
		Watches(&snapshotv1.VolumeSnapshotContent{}, handler.Funcs{CreateFunc: s.contentSeen, DeleteFunc: s.contentDeleted}).
		WithOptions(controller.Options{MaxConcurrentReconciles: s.options.Workers, RateLimiter: limiter}).
		Complete(reconcile.Func(s.reconcile))
}

// snapshotDeleted deletes the content of a snapshot that is gone.
func (s *Simulator) snapshotDeleted(_ context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	queue.Add(contentRequest(contentName(e.Object.GetUID())))
}

// contentSeen looks, when the simulator starts, whether a content's snapshot is still there.
func (s *Simulator) contentSeen(_ context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if e.IsInInitialList {
		queue.Add(contentRequest(e.Object.GetName()))
	}
}

// contentDeleted looks at the snapshot whose content is gone.
func (s *Simulator) contentDeleted(_ context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if content, ok := e.Object.(*snapshotv1.VolumeSnapshotContent); ok {
		ref := content.Spec.VolumeSnapshotRef
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}})
	}
}

// contentRequest is a request without a namespace: contents have none, snapshots always have one.
func contentRequest(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

func contentName(uid types.UID) string { return "snapcontent-" + string(uid) }
