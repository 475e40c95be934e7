package kubevirt

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/pelotech/open-terrain/e2e/sim/kubevirt/objects"
	"github.com/pelotech/open-terrain/e2e/sim/kubevirt/webhook"
)

// Simulator plays KubeVirt. Make one with Start.
type Simulator struct {
	options Options
	cached  client.Client
	live    client.Client
	webhook *webhook.Server
	changed chan event.GenericEvent
	done    chan struct{}

	mu sync.Mutex
	// entered is when an instance was first seen in its phase.
	entered map[types.UID]entry
	// retryAt is when a guest may be started again, by the VirtualMachine's UID. Its status has it in whole seconds only.
	retryAt map[types.UID]time.Time
	// ours are the instances that the simulator has deleted: the others that go were taken away.
	ours map[types.UID]bool
	// flapped is when the last of Behaviour.Flap began to be shown.
	flapped map[types.UID]time.Time
}

type entry struct {
	phase virtv1.VirtualMachineInstancePhase
	going bool
	at    time.Time
}

// Start runs a simulator against a cluster until ctx is done, and returns when it watches. The config is copied.
func Start(ctx context.Context, config *rest.Config, options Options) (*Simulator, error) {
	s := &Simulator{
		options: options.withDefaults(), changed: make(chan event.GenericEvent), done: make(chan struct{}),
		entered: map[types.UID]entry{}, retryAt: map[types.UID]time.Time{}, ours: map[types.UID]bool{}, flapped: map[types.UID]time.Time{},
	}
	if err := s.start(ctx, config); err != nil {
		return nil, fmt.Errorf("KubeVirt simulator: %w", err)
	}
	return s, nil
}

func (s *Simulator) start(ctx context.Context, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.UserAgent, config.QPS = s.options.UserAgent, -1
	mgr, err := newManager(config)
	if err != nil {
		return err
	}
	if s.live, err = client.New(config, client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()}); err != nil {
		return err
	}
	s.cached = mgr.GetClient()
	if err := errors.Join(s.watch(ctx, mgr), s.makeNode(ctx)); err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() {
		defer close(s.done)
		failed <- mgr.Start(ctx)
		if s.webhook != nil {
			s.webhook.Close()
		}
	}()
	select {
	case err := <-failed:
		return err
	case <-mgr.Elected():
	}
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return ctx.Err()
	}
	if !s.options.Admission {
		return nil
	}
	s.webhook, err = webhook.Start(ctx, s.live)
	return err
}

// makeNode makes the node that launchers are bound to, where it is asked for.
func (s *Simulator) makeNode(ctx context.Context) error {
	if !s.options.Node {
		return nil
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: objects.NodeName}, Spec: corev1.NodeSpec{Unschedulable: true}}
	return client.IgnoreAlreadyExists(s.live.Create(ctx, node))
}

func newManager(config *rest.Config) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), cdiv1.AddToScheme(scheme), virtv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	skip := true // several simulators may run in one process
	launchers := labels.SelectorFromSet(labels.Set{objects.LabelKubeVirt: objects.Launcher})
	return ctrl.NewManager(config, manager.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: &skip},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: launchers}}},
	})
}

// Changed tells the simulator that Options.Behaviour may answer differently now.
func (s *Simulator) Changed(ctx context.Context) error {
	var all virtv1.VirtualMachineList
	if err := s.cached.List(ctx, &all); err != nil {
		return err
	}
	for i := range all.Items {
		select {
		case s.changed <- event.GenericEvent{Object: &all.Items[i]}:
		case <-s.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// SetAway takes KubeVirt's API server away, or brings it back: while it is away, every write of a VirtualMachine fails.
// It needs Options.Admission.
func (s *Simulator) SetAway(away bool) { s.webhook.SetAway(away) }

// Wait returns when the simulator has ended, after the context of Start is done.
func (s *Simulator) Wait() { <-s.done }

// since is how long ago an instance was first seen as it is now.
func (s *Simulator) since(vmi *virtv1.VirtualMachineInstance) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entered[vmi.UID]
	if going := vmi.DeletionTimestamp != nil; e.at.IsZero() || e.phase != vmi.Status.Phase || e.going != going {
		e = entry{phase: vmi.Status.Phase, going: going, at: time.Now()}
		s.entered[vmi.UID] = e
	}
	return time.Since(e.at)
}

// forget what is kept of a VirtualMachine or an instance that is gone.
func (s *Simulator) forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entered, uid)
	delete(s.retryAt, uid)
	delete(s.ours, uid)
	delete(s.flapped, uid)
}
