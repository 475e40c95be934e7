package controller

import (
	"sync"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/plan"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
)

// metrics are the operator's own, beside those of controller-runtime. No label holds the name of an object.
type metrics struct {
	states        *states
	provisioning  prometheus.Histogram
	admissionWait prometheus.Histogram
	policyValid   prometheus.Gauge
	repairs       *prometheus.CounterVec
	statusWrites  prometheus.Counter
}

var waits = []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		states: newStates(),
		provisioning: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "workspaceoperator_provisioning_duration_seconds", Help: "Time that workspaces took to become Ready, from their admission or from when they were Ready last.", Buckets: waits,
		}),
		admissionWait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "workspaceoperator_admission_wait_seconds", Help: "Time that workspaces waited for a slot.", Buckets: waits,
		}),
		policyValid: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "workspaceoperator_policy_valid", Help: "1 when workspaceConcurrency of the ConfigMap is in force, 0 when it is bad and a former one is.",
		}),
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "workspaceoperator_repairs_total", Help: "Children of workspaces that were Ready which had to be made again or made right, by kind.",
		}, []string{"kind"}),
		statusWrites: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "workspaceoperator_status_writes_total", Help: "Writes of the status of workspaces.",
		}),
	}
	for _, c := range []prometheus.Collector{m.states, m.provisioning, m.admissionWait, m.policyValid, m.repairs, m.statusWrites} {
		if err := registry.Register(c); err != nil {
			return nil, wrap("register the metrics", err)
		}
	}
	return m, nil
}

func (m *metrics) policy(valid bool) {
	value := 0.0
	if valid {
		value = 1
	}
	m.policyValid.Set(value)
}

// transition observes how long it took to become Ready.
func (m *metrics) transition(before, after *v1alpha1.Workspace, now time.Time) {
	m.statusWrites.Inc()
	if before.Status.Phase == after.Status.Phase || after.Status.Phase != v1alpha1.WorkspaceReady {
		return
	}
	since := after.CreationTimestamp.Time
	if after.Status.AdmittedAt != nil {
		since = after.Status.AdmittedAt.Time
	}
	if was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionReady); was != nil && before.Status.ProvisionedAt != nil {
		since = was.LastTransitionTime.Time
	}
	m.provisioning.Observe(max(0, now.Sub(since).Seconds()))
}

// repaired counts a change of a child that nobody asked for: of a workspace that is Ready with the spec that it has.
func (m *metrics) repaired(ws *v1alpha1.Workspace, kind plan.Kind) {
	if ws.Status.Phase == v1alpha1.WorkspaceReady && ws.Status.ObservedGeneration == ws.Generation {
		m.repairs.WithLabelValues(string(kind)).Inc()
	}
}

// states counts workspaces by phase and by the reason of their Ready condition, for whoever asks.
type states struct {
	mu    sync.Mutex
	known map[string]state
	desc  *prometheus.Desc
}

type state struct{ phase, reason string }

func newStates() *states {
	return &states{
		known: map[string]state{},
		desc:  prometheus.NewDesc("workspaceoperator_workspaces", "Workspaces by phase, and by the reason of Ready.", []string{"phase", "reason"}, nil),
	}
}

func (s *states) note(workspace *v1alpha1.Workspace) {
	next := state{phase: string(workspace.Status.Phase)}
	if c := meta.FindStatusCondition(workspace.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		next.reason = c.Reason
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[workspace.Name] = next
}

func (s *states) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, name)
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
