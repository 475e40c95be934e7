package faultproxy

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// news is what the watches of a resource may say at the moment.
type news struct {
	// held is closed when the watches may speak again; nil while they may.
	held chan struct{}
	// over is closed when the watches that run now must end.
	over chan struct{}
	// expired tells the next watch that wants to go on from somewhere that it cannot.
	expired bool
}

// kubevirt is the group of which resources have the names of ours: their watches are named with it, as in
// virtualmachines.kubevirt.io.
const kubevirt = "kubevirt.io"

// topic is what the watches of a request are about.
func topic(q Request) string {
	if q.Group == kubevirt {
		return q.Resource + "." + q.Group
	}
	return q.Resource
}

// newsOf finds or makes the state of a resource. The caller holds the lock.
func (p *Proxy) newsOf(resource string) *news {
	if p.news[resource] == nil {
		p.news[resource] = &news{over: make(chan struct{})}
	}
	return p.news[resource]
}

// HoldWatches keeps from the operator what the watches of a resource say, until ReleaseWatches or ExpireWatches.
func (p *Proxy) HoldWatches(resource string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := p.newsOf(resource); n.held == nil {
		n.held = make(chan struct{})
	}
}

// ReleaseWatches lets the watches say what they have kept.
func (p *Proxy) ReleaseWatches(resource string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newsOf(resource).release()
}

// ExpireWatches ends the watches of a resource without a word about what they have kept, and answers the next try to go
// on with 410 Gone, so that the operator lists anew and never hears of what came and went.
func (p *Proxy) ExpireWatches(resource string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.watched, resource) // until the operator has listed anew, which client-go puts off for a second or two
	n := p.newsOf(resource)
	n.expired = true
	close(n.over)
	n.over = make(chan struct{})
	n.release()
}

func (n *news) release() {
	if n.held != nil {
		close(n.held)
		n.held = nil
	}
}

// speakAgain ends all that rules have done to watches. The caller holds the lock.
func (p *Proxy) speakAgain() {
	for _, n := range p.news {
		n.expired = false
		n.release()
	}
}

// hush carries out a rule about watches.
func (p *Proxy) hush(rule Rule) {
	p.HoldWatches(rule.Watch)
	time.AfterFunc(rule.Delay, func() {
		if rule.When == Relist {
			p.ExpireWatches(rule.Watch)
			return
		}
		p.ReleaseWatches(rule.Watch)
	})
}

func isWatch(r *http.Request) bool {
	yes, _ := strconv.ParseBool(r.URL.Query().Get("watch"))
	return yes
}

// startsAnew says that a watch begins with a list.
func startsAnew(r *http.Request) bool {
	query := r.URL.Query()
	initial, _ := strconv.ParseBool(query.Get("sendInitialEvents"))
	return initial || query.Get("resourceVersion") == ""
}

// watch passes a watch on for as long as nobody ends it.
func (p *Proxy) watch(w http.ResponseWriter, r *http.Request, request Request) {
	p.mu.Lock()
	n := p.newsOf(topic(request))
	over, expired := n.over, n.expired && !startsAnew(r)
	n.expired = n.expired && !expired
	if _, again := p.watched[topic(request)]; !again && !expired {
		p.watched[topic(request)] = time.Now()
	}
	p.mu.Unlock()
	if expired {
		writeStatus(w, apierrors.NewResourceExpired("injected by the fault proxy").Status())
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		select {
		case <-over:
			cancel()
		case <-ctx.Done():
		}
	}()
	p.forward.ServeHTTP(&hushed{ResponseWriter: w, proxy: p, resource: topic(request), over: over, gone: ctx.Done()}, r.WithContext(ctx))
}

// hushed is an answer that waits while its resource's watches are held.
type hushed struct {
	http.ResponseWriter
	proxy    *Proxy
	resource string
	over     <-chan struct{} // the watch must end
	gone     <-chan struct{} // nobody listens
}

var errHushed = errors.New("the watch was ended by the fault proxy")

func (h *hushed) Write(b []byte) (int, error) {
	h.proxy.mu.Lock()
	held := h.proxy.newsOf(h.resource).held
	h.proxy.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-h.over:
		case <-h.gone:
		case <-h.proxy.closed:
		}
	}
	select {
	case <-h.over: // closed before held is, so that nothing slips through
		return 0, errHushed
	default:
		return h.ResponseWriter.Write(b)
	}
}

// Unwrap lets the reverse proxy flush.
func (h *hushed) Unwrap() http.ResponseWriter { return h.ResponseWriter }
