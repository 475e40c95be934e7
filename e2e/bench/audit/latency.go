package audit

import (
	"cmp"
	"slices"
	"time"
)

// Latency is how long the API server took for one kind of request of one user agent.
type Latency struct {
	Agent    string `json:"agent"`
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	Requests int    `json:"requests"`
	// Median, P99 and Sum in milliseconds.
	Median float64 `json:"medianMs"`
	P99    float64 `json:"p99Ms"`
	Sum    float64 `json:"sumMs"`
}

type kind struct{ agent, verb, resource string }

// Latencies of all requests that began in a span of time, those that cost most first.
func Latencies(entries []Entry, from, to time.Time) []Latency {
	byKind := map[kind][]float64{}
	for _, e := range entries {
		if e.Began.Before(from) || e.Began.After(to) {
			continue
		}
		k := kind{e.Agent, e.Verb, e.Resource}
		byKind[k] = append(byKind[k], float64(e.Ended.Sub(e.Began).Microseconds())/1000)
	}
	all := make([]Latency, 0, len(byKind))
	for k, times := range byKind {
		slices.Sort(times)
		l := Latency{Agent: k.agent, Verb: k.verb, Resource: k.resource, Requests: len(times)}
		l.Median, l.P99 = times[len(times)/2], times[len(times)*99/100]
		for _, t := range times {
			l.Sum += t
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b Latency) int { return cmp.Compare(b.Sum, a.Sum) })
	return all
}
