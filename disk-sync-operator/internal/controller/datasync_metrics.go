package controller

import (
	"sync"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// dataSyncPhases counts DataSyncs by phase, for whoever asks.
type dataSyncPhases struct {
	mu     sync.Mutex
	phases map[types.NamespacedName]v1alpha1.DataSyncPhase
	desc   *prometheus.Desc
}

func newDataSyncPhases() *dataSyncPhases {
	return &dataSyncPhases{
		phases: map[types.NamespacedName]v1alpha1.DataSyncPhase{},
		desc:   prometheus.NewDesc("disksync_datasyncs", "DataSyncs by phase.", []string{"phase"}, nil),
	}
}

func (p *dataSyncPhases) note(key types.NamespacedName, phase v1alpha1.DataSyncPhase) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phases[key] = phase
}

func (p *dataSyncPhases) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.phases, key)
}

// Describe implements prometheus.Collector.
func (p *dataSyncPhases) Describe(ch chan<- *prometheus.Desc) { ch <- p.desc }

// Collect implements prometheus.Collector.
func (p *dataSyncPhases) Collect(ch chan<- prometheus.Metric) {
	counts := map[v1alpha1.DataSyncPhase]int{
		v1alpha1.DataSyncQueued: 0, v1alpha1.DataSyncSyncing: 0, v1alpha1.DataSyncSucceeded: 0, v1alpha1.DataSyncFailed: 0,
	}
	p.mu.Lock()
	for _, phase := range p.phases {
		counts[phase]++
	}
	p.mu.Unlock()
	for phase, n := range counts {
		ch <- prometheus.MustNewConstMetric(p.desc, prometheus.GaugeValue, float64(n), string(phase))
	}
}
