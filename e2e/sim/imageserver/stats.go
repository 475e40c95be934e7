package imageserver

import (
	"encoding/json"
	"net/http"
	"sync"
)

// PathStats counts what was asked for at one path, and what was sent.
type PathStats struct {
	// Requests of any method.
	Requests int `json:"requests"`
	// Heads is the number of HEAD requests.
	Heads int `json:"heads"`
	// PlainGets is the number of GETs without Range. One good import by CDI makes two: the first is a probe that
	// it drops after the first bytes.
	PlainGets int `json:"plainGets"`
	// RangeGets is the number of GETs with Range.
	RangeGets int `json:"rangeGets"`
	// Complete is the number of plain GETs whose body was sent to its end: the downloads.
	Complete int `json:"complete"`
	// Failed is the number of answers of 400 and above.
	Failed int `json:"failed"`
	// Bytes of bodies sent, over all methods.
	Bytes int64 `json:"bytes"`
	// Active is the number of requests that are being answered now.
	Active int `json:"active"`
}

type counters struct {
	mu    sync.Mutex
	paths map[string]*PathStats
}

func (c *counters) update(path string, f func(*PathStats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paths[path] == nil {
		c.paths[path] = &PathStats{}
	}
	f(c.paths[path])
}

func (c *counters) snapshot() map[string]PathStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]PathStats, len(c.paths))
	for path, stats := range c.paths {
		all[path] = *stats
	}
	return all
}

func (c *counters) begin(r *http.Request) {
	c.update(r.URL.Path, func(s *PathStats) {
		s.Requests++
		s.Active++
		switch {
		case r.Method == http.MethodHead:
			s.Heads++
		case r.Method == http.MethodGet && r.Header.Get("Range") != "":
			s.RangeGets++
		case r.Method == http.MethodGet:
			s.PlainGets++
		}
	})
}

// Stats of all paths that were asked for since the start, by path.
func (s *Server) Stats() map[string]PathStats { return s.counters.snapshot() }

// Of is the statistics of one path, such as /ok/disk.qcow2.
func (s *Server) Of(path string) PathStats { return s.counters.snapshot()[path] }

func (s *Server) serveStats(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.Stats())
}
