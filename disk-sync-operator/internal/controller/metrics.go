package controller

import (
	"strconv"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the operator's own, beside those of controller-runtime. No label holds the name of an object.
type metrics struct {
	admissionWait prometheus.Histogram
	duration      *prometheus.HistogramVec
	attempts      *prometheus.CounterVec
	losses        *prometheus.CounterVec
	prunedImages  prometheus.Counter
	prunedBytes   prometheus.Counter
	policyInfo    *prometheus.GaugeVec
	policyValid   prometheus.Gauge
}

const (
	resultSucceeded = "succeeded"
	resultFailed    = "failed"
)

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	minutes := []float64{1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800}
	m := &metrics{
		admissionWait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "disksync_admission_wait_seconds", Help: "Time that images waited in the queue until they got a slot.", Buckets: minutes,
		}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "disksync_sync_duration_seconds", Help: "Duration of attempts, from the slot to a complete volume or to the failure, by result.", Buckets: minutes,
		}, []string{"result"}),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "disksync_attempts_total", Help: "Attempts that have ended, by result and, of failed ones, by reason.",
		}, []string{"result", "reason"}),
		losses: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "disksync_losses_total", Help: "Parts of finished images that somebody else deleted or broke, by kind; they are made again.",
		}, []string{"kind"}),
		prunedImages: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "disksync_pruned_images_total", Help: "Images that were deleted because nothing used them for their time to live.",
		}),
		prunedBytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "disksync_pruned_bytes_total", Help: "Size of the volumes and snapshots of pruned images, also of those that the storage keeps (deletionPolicy Retain).",
		}),
		policyInfo: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "disksync_policy_info", Help: "The policy in force, in labels; always 1.",
		}, []string{"concurrency", "retry_limit", "retry_backoff", "attempt_timeout", "stall_timeout"}),
		policyValid: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "disksync_policy_valid", Help: "1 when the ConfigMap's policy is in force, 0 when it has a bad value and a former policy stays in force.",
		}),
	}
	for _, c := range []prometheus.Collector{m.admissionWait, m.duration, m.attempts, m.losses, m.prunedImages, m.prunedBytes, m.policyInfo, m.policyValid} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// policy shows the policy in force, and whether it is the ConfigMap's.
func (m *metrics) policy(p policy.Policy, valid bool) {
	m.policyInfo.Reset()
	m.policyInfo.WithLabelValues(strconv.Itoa(p.Concurrency), strconv.Itoa(p.RetryLimit),
		p.RetryBackoff.String(), p.AttemptTimeout.String(), p.StallTimeout.String()).Set(1)
	m.policyValid.Set(0)
	if valid {
		m.policyValid.Set(1)
	}
}

// pruned counts an image that was pruned.
func (m *metrics) pruned(bytes int64) {
	m.prunedImages.Inc()
	m.prunedBytes.Add(float64(bytes))
}

// transition counts the loss, or the end of an attempt, that has been written.
func (m *metrics) transition(before, after *v1alpha1.VMDiskImage) {
	if loss := after.Status.LastLoss; loss != nil && (before.Status.LastLoss == nil || *before.Status.LastLoss != *loss) {
		m.losses.WithLabelValues(string(loss.Kind)).Inc()
	}
	result, reason := attemptEnd(before, after)
	if result == "" {
		return
	}
	m.attempts.WithLabelValues(result, reason).Inc()
	if start := after.Status.StartedAt; start != nil {
		m.duration.WithLabelValues(result).Observe(max(0, lastTransition(after).Sub(start.Time).Seconds()))
	}
}

// attemptEnd is the result of the attempt that ended with this write, and why it failed; empty when none did.
func attemptEnd(before, after *v1alpha1.VMDiskImage) (result, reason string) {
	failure, former := after.Status.LastFailure, before.Status.LastFailure
	switch {
	case failure != nil && failure.Reason == v1alpha1.FailureSourceNotAllowed: // no attempt was made
		return "", ""
	case failure != nil && (former == nil || *former != *failure):
		return resultFailed, string(failure.Reason)
	case before.Status.Phase == v1alpha1.PhaseSyncing && after.Status.Phase == v1alpha1.PhaseSnapshotting:
		return resultSucceeded, ""
	}
	return "", ""
}

func lastTransition(image *v1alpha1.VMDiskImage) time.Time {
	var last time.Time
	for _, c := range image.Status.Conditions {
		if c.LastTransitionTime.After(last) {
			last = c.LastTransitionTime.Time
		}
	}
	return last
}

// queueCollector shows the queue as it is when it is asked.
type queueCollector struct {
	state             func() queueState
	depth, age, slots *prometheus.Desc
}

func newQueueCollector(state func() queueState) *queueCollector {
	return &queueCollector{
		state: state,
		depth: prometheus.NewDesc("disksync_queue_depth", "Images that wait for a slot.", nil, nil),
		age:   prometheus.NewDesc("disksync_queue_oldest_age_seconds", "How long the first in the queue has been waiting; 0 with an empty queue.", nil, nil),
		slots: prometheus.NewDesc("disksync_slots", "Slots by state: held, free (within the limit), limit.", []string{"state"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *queueCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.depth
	ch <- c.age
	ch <- c.slots
}

// Collect implements prometheus.Collector.
func (c *queueCollector) Collect(ch chan<- prometheus.Metric) {
	st := c.state()
	ch <- prometheus.MustNewConstMetric(c.depth, prometheus.GaugeValue, float64(st.depth))
	ch <- prometheus.MustNewConstMetric(c.age, prometheus.GaugeValue, st.oldest.Seconds())
	for state, n := range map[string]int{"held": st.held, "free": max(0, st.limit-st.held), "limit": st.limit} {
		ch <- prometheus.MustNewConstMetric(c.slots, prometheus.GaugeValue, float64(n), state)
	}
}
