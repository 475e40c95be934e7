package imageserver

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pelotech/open-terrain/e2e/sim/diskimage"
)

const (
	chunk     = 32 << 10
	slowTick  = 100 * time.Millisecond
	loopPause = 50 * time.Millisecond // a redirect loop without it keeps a core busy
)

// answer is what is to be sent: a body, and how to misbehave with it.
type answer struct {
	body        []byte
	contentType string
	ranges      bool
	rate        int // bytes a second; 0 means as fast as possible
	cutAfter    int // bytes of the file after which the connection is closed; -1 means never
}

func (s *Server) serveImage(w http.ResponseWriter, r *http.Request) {
	s.counters.begin(r)
	defer s.counters.update(r.URL.Path, func(p *PathStats) { p.Active-- })
	mode, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch mode {
	case "status":
		s.fail(w, r, statusOf(rest))
	case "hang":
		s.wait(r, nil)
	case "gate":
		name, file, _ := strings.Cut(rest, "/")
		if s.wait(r, s.gate(name)) {
			s.serveFile(w, r, "ok", file)
		}
	case "loop":
		time.Sleep(loopPause)
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
	case "html":
		s.send(w, r, answer{body: diskimage.HTML().Bytes, contentType: "text/html; charset=utf-8", ranges: true, cutAfter: -1})
	default:
		s.serveFile(w, r, mode, rest)
	}
}

func statusOf(path string) int {
	code, err := strconv.Atoi(strings.Split(path, "/")[0])
	if err != nil || code < 100 || code > 999 {
		return http.StatusBadRequest
	}
	return code
}

// wait returns true when the gate opens, false when the request or the server ends before.
func (s *Server) wait(r *http.Request, gate <-chan struct{}) bool {
	select {
	case <-gate:
		return true
	case <-r.Context().Done():
	case <-s.closing:
	}
	return false
}

// serveFile serves a file, or a failure on the way to it.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, mode, rest string) {
	n, name, code := locate(r, mode, rest)
	if code == http.StatusOK && mode == "failfirst" && s.Of(r.URL.Path).Requests <= n {
		code = http.StatusServiceUnavailable
	}
	body, ok := s.content(name)
	if code == http.StatusOK && !ok {
		code = http.StatusNotFound
	}
	if code != http.StatusOK {
		if code == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Basic realm="images"`)
		}
		s.fail(w, r, code)
		return
	}
	a := answer{body: body, contentType: "application/octet-stream", ranges: mode != "noranges", cutAfter: -1}
	switch mode {
	case "slow":
		a.rate = max(1, n)
	case "cut":
		a.cutAfter = n
	case "short":
		a.body = body[:min(n, len(body))]
	}
	s.send(w, r, a)
}

// locate takes a path apart into a number, where its mode has one, and the file's name; code is 200 when that makes sense.
func locate(r *http.Request, mode, rest string) (n int, name string, code int) {
	switch mode {
	case "ok", "noranges":
		return 0, rest, http.StatusOK
	case "failfirst", "slow", "cut", "short":
		number, file, _ := strings.Cut(rest, "/")
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			return 0, "", http.StatusBadRequest
		}
		return n, file, http.StatusOK
	case "auth":
		if name := authorized(r, rest); name != "" {
			return 0, name, http.StatusOK
		}
		return 0, "", http.StatusUnauthorized
	default:
		return 0, "", http.StatusNotFound
	}
}

// authorized returns the file of the path U/P/F if the request carries user U and password P, else "".
func authorized(r *http.Request, rest string) string {
	parts := strings.SplitN(rest, "/", 3)
	user, password, ok := r.BasicAuth()
	if len(parts) != 3 || !ok || user != parts[0] || password != parts[1] {
		return ""
	}
	return parts[2]
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request, code int) {
	if code >= http.StatusBadRequest {
		s.counters.update(r.URL.Path, func(p *PathStats) { p.Failed++ })
	}
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(code)
}

func (s *Server) send(w http.ResponseWriter, r *http.Request, a answer) {
	first, last, code := 0, len(a.body)-1, http.StatusOK
	header := w.Header()
	header.Set("Content-Type", a.contentType)
	if a.ranges {
		header.Set("Accept-Ranges", "bytes")
		if from, to, ok := parseRange(r.Header.Get("Range"), len(a.body)); ok {
			first, last, code = from, to, http.StatusPartialContent
			header.Set("Content-Range", "bytes "+strconv.Itoa(first)+"-"+strconv.Itoa(last)+"/"+strconv.Itoa(len(a.body)))
		}
	}
	header.Set("Content-Length", strconv.Itoa(last+1-first))
	w.WriteHeader(code)
	if r.Method != http.MethodGet {
		return
	}
	end, cut := last+1, false
	if a.cutAfter >= 0 && end > a.cutAfter {
		end, cut = max(first, a.cutAfter), true
	}
	whole := s.stream(w, r, a.body[first:end], a.rate)
	if cut {
		panic(http.ErrAbortHandler) // closes the connection without an end
	}
	if whole && code == http.StatusOK {
		s.counters.update(r.URL.Path, func(p *PathStats) { p.Complete++ })
	}
}

// stream writes body in pieces and tells whether the client took it to its end.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, body []byte, rate int) bool {
	step, flush := chunk, http.NewResponseController(w)
	if rate > 0 {
		step = max(1, rate/int(time.Second/slowTick))
	}
	for len(body) > 0 {
		n, err := w.Write(body[:min(step, len(body))])
		if err == nil && (rate > 0 || n == len(body)) {
			err = flush.Flush()
		}
		s.counters.update(r.URL.Path, func(p *PathStats) { p.Bytes += int64(n) })
		if err != nil {
			return false
		}
		body = body[n:]
		if rate > 0 && len(body) > 0 && !s.wait(r, tick()) {
			return false
		}
	}
	return true
}

// tick is open after a moment.
func tick() <-chan struct{} {
	c := make(chan struct{})
	time.AfterFunc(slowTick, func() { close(c) })
	return c
}

// parseRange understands one range of the form bytes=A-B or bytes=A-.
func parseRange(header string, size int) (first, last int, ok bool) {
	value, found := strings.CutPrefix(header, "bytes=")
	from, to, dash := strings.Cut(value, "-")
	if !found || !dash {
		return 0, 0, false
	}
	first, err := strconv.Atoi(from)
	if err != nil || first < 0 || first >= size {
		return 0, 0, false
	}
	last = size - 1
	if to != "" {
		if last, err = strconv.Atoi(to); err != nil || last < first {
			return 0, 0, false
		}
	}
	return first, min(last, size-1), true
}
