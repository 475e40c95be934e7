package controller

import "github.com/prometheus/client_golang/prometheus"

// queueCollector tells how the queue stands at the moment that it is asked.
type queueCollector struct {
	state                      func() queueState
	depth, held, limit, oldest *prometheus.Desc
}

func newQueueCollector(state func() queueState) *queueCollector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("workspaceoperator_"+name, help, nil, nil)
	}
	return &queueCollector{
		state: state,
		depth: desc("queue_depth", "Workspaces that wait for a slot."),
		held:  desc("slots_held", "Slots that are held."),
		limit: desc("slots_limit", "Slots that may be held at once: workspaceConcurrency."),

		oldest: desc("queue_oldest_seconds", "How long the first in the queue has been waiting."),
	}
}

// Describe implements prometheus.Collector.
func (c *queueCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.depth, c.held, c.limit, c.oldest} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *queueCollector) Collect(ch chan<- prometheus.Metric) {
	st := c.state()
	for d, value := range map[*prometheus.Desc]float64{
		c.depth: float64(st.depth), c.held: float64(st.held), c.limit: float64(st.limit), c.oldest: st.oldest.Seconds(),
	} {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	}
}
