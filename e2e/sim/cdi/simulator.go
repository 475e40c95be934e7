package cdi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pelotech/open-terrain/e2e/sim/cdi/clone"
	"github.com/pelotech/open-terrain/e2e/sim/cdi/kubelet"
	"github.com/pelotech/open-terrain/e2e/sim/cdi/objects"
	"github.com/pelotech/open-terrain/e2e/sim/cdi/volumes"
	"github.com/pelotech/open-terrain/e2e/sim/cdi/webhook"
)

// Simulator plays CDI. Make one with Start.
type Simulator struct {
	options Options
	client  client.WithWatch
	live    client.Reader
	cached  client.Reader
	kubelet *kubelet.Kubelet
	volumes volumes.Provisioner
	// life is the context of Start: plays outlive the events that start them.
	life context.Context //nolint:containedctx // see above

	mu      sync.Mutex
	changed chan struct{}
	plays   map[types.NamespacedName]*running
	instant map[types.NamespacedName]*instantState
	done    chan struct{}
}

// running is a play that has been started for a DataVolume, perhaps also ended.
type running struct {
	uid    types.UID
	cancel context.CancelFunc
	ended  chan struct{}
	pod    atomic.Pointer[corev1.Pod]
}

// Start runs a simulator against a cluster until ctx is done, and returns when it watches. The config is copied.
func Start(ctx context.Context, config *rest.Config, options Options) (*Simulator, error) {
	s := &Simulator{
		life: ctx, options: options.withDefaults(), changed: make(chan struct{}), plays: map[types.NamespacedName]*running{},
		instant: map[types.NamespacedName]*instantState{}, done: make(chan struct{}),
	}
	config = rest.CopyConfig(config)
	config.UserAgent, config.QPS = s.options.UserAgent, -1
	mgr, err := newManager(config)
	if err != nil {
		return nil, fmt.Errorf("CDI simulator: %w", err)
	}
	if s.client, err = client.NewWithWatch(config, client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()}); err != nil {
		return nil, fmt.Errorf("CDI simulator: %w", err)
	}
	s.volumes = volumes.Provisioner{Client: s.client}
	o := s.options
	s.kubelet = kubelet.New(s.client, kubelet.Options{Step: o.Step, Backoff: o.Backoff, Termination: o.Termination, ProgressInterval: o.ProgressInterval, IdleTimeout: o.IdleTimeout, Dir: o.Dir, Amazon: o.Amazon})
	s.live, s.cached = mgr.GetAPIReader(), mgr.GetClient()
	if err := s.watch(ctx, mgr); err != nil {
		return nil, fmt.Errorf("CDI simulator: %w", err)
	}
	failed := make(chan error, 1)
	go func() {
		defer close(s.done)
		failed <- mgr.Start(ctx)
	}()
	select {
	case err := <-failed:
		return nil, fmt.Errorf("CDI simulator: %w", err)
	case <-mgr.Elected():
	}
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("CDI simulator: %w", ctx.Err())
	}
	if s.options.Webhook {
		if err := webhook.Start(ctx, s.client); err != nil {
			return nil, fmt.Errorf("CDI simulator: %w", err)
		}
	}
	return s, nil
}

func newManager(config *rest.Config) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := errors.Join(cdiv1.AddToScheme(scheme), snapshotv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	skip := true // several simulators may run in one process
	importers := labels.SelectorFromSet(labels.Set{objects.ImporterLabel: objects.ImporterName})
	return ctrl.NewManager(config, manager.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: &skip},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: importers}}},
	})
}

func (s *Simulator) watch(ctx context.Context, mgr manager.Manager) error {
	pods, err := mgr.GetCache().GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		return err
	}
	if _, err := pods.AddEventHandler(s.kubelet.Handler(ctx)); err != nil {
		return err
	}
	return builder.ControllerManagedBy(mgr).Named("cdi").
		For(&cdiv1.DataVolume{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(&corev1.PersistentVolumeClaim{}, handler.Funcs{DeleteFunc: s.claimDeleted}).
		WithOptions(controller.Options{MaxConcurrentReconciles: s.options.Workers}).
		Complete(reconcile.Func(s.reconcile))
}

// Changed tells the simulator that Options.Behaviour may answer differently now.
func (s *Simulator) Changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// Wait returns when the simulator has ended, after the context of Start is done.
func (s *Simulator) Wait() { <-s.done }

// until returns when a condition holds; it is looked at again after each Changed.
func (s *Simulator) until(ctx context.Context, condition func() bool) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if condition() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Simulator) pause(ctx context.Context, d time.Duration) error {
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

func (s *Simulator) reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var dv cdiv1.DataVolume
	err := s.cached.Get(ctx, request.NamespacedName, &dv)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	if err != nil || dv.DeletionTimestamp != nil {
		if err != nil || !s.options.Behaviour(&dv).LatePodDeletion {
			s.deletePodOf(ctx, request.NamespacedName)
		}
		s.stop(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	if s.options.Instant != nil && !clone.Is(&dv) {
		return s.playInstantly(ctx, &dv)
	}
	if !finished(&dv) {
		s.ensure(&dv)
	}
	return reconcile.Result{}, nil
}

// stop ends what is going on for a DataVolume and forgets it.
func (s *Simulator) stop(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.plays[key]; r != nil {
		r.cancel()
		delete(s.plays, key)
	}
	delete(s.instant, key)
}

// deletePodOf deletes the importer pod of a DataVolume that is being deleted, before the garbage collector does.
func (s *Simulator) deletePodOf(ctx context.Context, key types.NamespacedName) {
	s.mu.Lock()
	r := s.plays[key]
	s.mu.Unlock()
	if r == nil {
		return
	}
	if pod := r.pod.Load(); pod != nil {
		s.kubelet.Delete(ctx, pod)
	}
}

// ensure starts the play of a DataVolume if there is none yet.
func (s *Simulator) ensure(dv *cdiv1.DataVolume) {
	key := client.ObjectKeyFromObject(dv)
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.plays[key]
	if before != nil && before.uid == dv.UID {
		return
	}
	ctx, cancel := context.WithCancel(s.life)
	r := &running{uid: dv.UID, cancel: cancel, ended: make(chan struct{})}
	s.plays[key] = r
	go func() {
		defer close(r.ended)
		defer cancel()
		if before != nil {
			before.cancel()
			<-before.ended
		}
		s.perform(ctx, dv.DeepCopy(), r)
	}()
}

// claimDeleted imports again when the claim of a DataVolume that stays is gone, as CDI does.
func (s *Simulator) claimDeleted(ctx context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	owner := metav1.GetControllerOf(e.Object)
	if owner == nil || owner.Kind != "DataVolume" {
		return
	}
	key := types.NamespacedName{Namespace: e.Object.GetNamespace(), Name: owner.Name}
	var dv cdiv1.DataVolume
	if err := s.live.Get(ctx, key, &dv); err != nil || dv.UID != owner.UID || dv.DeletionTimestamp != nil {
		return
	}
	s.stop(key)
	if s.options.Instant == nil || clone.Is(&dv) {
		s.ensure(&dv)
		return
	}
	s.mu.Lock()
	s.instant[key] = &instantState{uid: dv.UID, since: time.Now()}
	s.mu.Unlock()
	queue.Add(reconcile.Request{NamespacedName: key})
}
