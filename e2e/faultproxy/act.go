package faultproxy

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const retryAfterSeconds = 1

// act does to one write what the rule says; a nil rule passes it on.
func (p *Proxy) act(w http.ResponseWriter, r *http.Request, request Request, rule *Rule) {
	if rule == nil {
		p.pass(w, r, request)
		return
	}
	if rule.When == Stale || rule.When == Relist {
		p.hush(*rule)
		p.pass(w, r, request)
		return
	}
	p.delay(r, rule.Delay)
	switch rule.When {
	case Before:
		p.refuse(w, r, request, rule.Code, false)
	case After:
		p.refuse(w, r, request, rule.Code, p.apply(r, request))
	case Sever:
		p.apply(r, request)
		p.silence(r)
	case SeverBefore:
		p.silence(r)
	case Hold:
		p.hold(r, request)
		p.pass(w, r, request)
	case Slow:
		p.pass(w, r, request)
	}
}

func (p *Proxy) delay(r *http.Request, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
		cut()
	case <-p.closed:
		cut()
	}
}

// pass lets the API server answer.
func (p *Proxy) pass(w http.ResponseWriter, r *http.Request, request Request) {
	p.silenceIfSevered(r)
	noted := &noting{ResponseWriter: w, note: func(code int) { p.answered(request, code, code < 300) }}
	p.forward.ServeHTTP(noted, r)
}

// apply lets the write take effect even if the operator goes away meanwhile, and keeps the answer.
func (p *Proxy) apply(r *http.Request, request Request) bool {
	lost := &lostAnswer{header: http.Header{}}
	p.forward.ServeHTTP(lost, r.WithContext(context.WithoutCancel(r.Context())))
	applied := lost.code < 300
	p.answered(request, 0, applied)
	return applied
}

// refuse answers with an error as the API server would word it, or cuts the connection when the code is 0.
func (p *Proxy) refuse(w http.ResponseWriter, r *http.Request, request Request, code int, applied bool) {
	p.answered(request, code, applied)
	if code == 0 {
		cut()
	}
	retryAfter := 0
	if code == http.StatusTooManyRequests {
		retryAfter = retryAfterSeconds
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	resource := schema.GroupResource{Group: request.Group, Resource: request.Resource}
	status := apierrors.NewGenericServerResponse(code, r.Method, resource, request.Name, "injected by the fault proxy", retryAfter, false).Status()
	writeStatus(w, status)
}

func writeStatus(w http.ResponseWriter, status metav1.Status) {
	status.Kind, status.APIVersion = "Status", "v1"
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // the operator may have gone
}

// hold parks a request until Release or Drop. A request whose sender has gone is dropped.
func (p *Proxy) hold(r *http.Request, request Request) {
	p.setHeld(func(held []Request) []Request { return append(slices.Clip(held), request) })
	defer p.setHeld(func(held []Request) []Request {
		return slices.DeleteFunc(slices.Clone(held), func(h Request) bool { return h == request })
	})
	select {
	case <-p.released:
	case <-p.dropped:
		cut()
	case <-r.Context().Done():
		cut()
	case <-p.closed:
		cut()
	}
}

func (p *Proxy) setHeld(change func([]Request) []Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = change(p.held)
	close(p.changed)
	p.changed = make(chan struct{})
}

// silence severs the operator and never returns.
func (p *Proxy) silence(r *http.Request) {
	p.sever.Do(func() {
		close(p.severed)
		if p.options.OnSever != nil {
			p.options.OnSever()
		}
	})
	p.silenceIfSevered(r)
}

// silenceIfSevered says nothing for as long as anyone listens.
func (p *Proxy) silenceIfSevered(r *http.Request) {
	select {
	case <-p.severed:
	default:
		return
	}
	select {
	case <-r.Context().Done():
	case <-p.closed:
	}
	cut()
}

// noting tells about the status code of an answer before it is sent, so that whoever got the answer finds it noted.
type noting struct {
	http.ResponseWriter
	note func(code int)
}

func (n *noting) WriteHeader(code int) {
	n.note(code)
	n.ResponseWriter.WriteHeader(code)
}

// Unwrap lets the reverse proxy flush.
func (n *noting) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// lostAnswer keeps the status code and drops the rest.
type lostAnswer struct {
	header http.Header
	code   int
}

func (l *lostAnswer) Header() http.Header         { return l.header }
func (l *lostAnswer) WriteHeader(code int)        { l.code = code }
func (l *lostAnswer) Write(b []byte) (int, error) { return len(b), nil }
