package controller

import (
	"sync"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// metrics are the operator's own, beside those of controller-runtime. No label holds the name of an object.
type metrics struct {
	states       *states
	provisioning prometheus.Histogram
	claimWrites  prometheus.Counter
	repairs      *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		states: newStates(),
		provisioning: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "vmoperator_provisioning_duration_seconds", Help: "Time that virtual machines took to become Ready, from their creation or from when they were Ready last.",
			Buckets: []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400},
		}),
		claimWrites: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "vmoperator_claim_writes_total", Help: "Writes of references on images.",
		}),
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vmoperator_repairs_total", Help: "Children of virtual machines that were Ready which had to be made again or made right, by kind.",
		}, []string{"kind"}),
	}
	for _, c := range []prometheus.Collector{m.states, m.provisioning, m.claimWrites, m.repairs} {
		if err := registry.Register(c); err != nil {
			return nil, wrap("register the metrics", err)
		}
	}
	return m, nil
}

// transition observes how long it took to become Ready.
func (m *metrics) transition(before, after *v1alpha1.VirtualMachine, now time.Time) {
	if before.Status.Phase == after.Status.Phase || after.Status.Phase != v1alpha1.VirtualMachineReady {
		return
	}
	since := after.CreationTimestamp.Time
	if was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionReady); was != nil {
		since = was.LastTransitionTime.Time
	}
	m.provisioning.Observe(max(0, now.Sub(since).Seconds()))
}

// repaired counts a change of a child that nobody asked for: of a virtual machine that is Ready with the spec that it has.
func (m *metrics) repaired(vm *v1alpha1.VirtualMachine, action plan.Action) {
	kind := map[plan.Action]plan.Child{
		plan.CreateDisk: plan.Disk, plan.KeepDisk: plan.Disk, plan.ApplySecret: plan.Secret, plan.ApplyMachine: plan.Machine,
	}[action]
	lost := vm.Status.Disk != nil && vm.Status.Disk.LostAt != nil
	ready := vm.Status.Phase == v1alpha1.VirtualMachineReady && vm.Status.ObservedGeneration == vm.Generation
	if kind != "" && (ready || action == plan.CreateDisk && lost) {
		m.repairs.WithLabelValues(string(kind)).Inc()
	}
}

// states counts VirtualMachines by phase and by the reason of their Ready condition, for whoever asks.
type states struct {
	mu    sync.Mutex
	known map[types.NamespacedName]state
	desc  *prometheus.Desc
}

type state struct{ phase, reason string }

func newStates() *states {
	return &states{
		known: map[types.NamespacedName]state{},
		desc:  prometheus.NewDesc("vmoperator_virtualmachines", "Virtual machines by phase, and by the reason of Ready.", []string{"phase", "reason"}, nil),
	}
}

func (s *states) note(vm *v1alpha1.VirtualMachine) {
	next := state{phase: string(vm.Status.Phase)}
	if c := meta.FindStatusCondition(vm.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		next.reason = c.Reason
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[client.ObjectKeyFromObject(vm)] = next
}

func (s *states) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, key)
}

// Describe implements prometheus.Collector.
func (s *states) Describe(ch chan<- *prometheus.Desc) { ch <- s.desc }

// Collect implements prometheus.Collector.
func (s *states) Collect(ch chan<- prometheus.Metric) {
	counts := map[state]int{}
	s.mu.Lock()
	for _, st := range s.known {
		counts[st]++
	}
	s.mu.Unlock()
	for st, n := range counts {
		ch <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, float64(n), st.phase, st.reason)
	}
}
