package faultproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"
	"sync"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Options of a proxy.
type Options struct {
	// Config of the API server; its credentials become those of whoever uses the proxy.
	Config *rest.Config
	// Rules are tried in order; the first one that strikes decides.
	Rules []Rule
	// OnSever is called once, when a rule has severed and the silence has begun: a test kills the process here.
	OnSever func()
	// Uncounted tells which writes are neither counted nor recorded. Nil means LeaderElectionAndEvents.
	Uncounted func(Request) bool
}

// LeaderElectionAndEvents are the writes that depend on time alone: Events, and Leases other than slots.
func LeaderElectionAndEvents(r Request) bool {
	return r.Resource == "events" || r.Resource == "leases" && !strings.HasPrefix(r.Name, otv1alpha1.DiskSyncSlotPrefix)
}

// Proxy is a running proxy. It is safe for concurrent use.
type Proxy struct {
	options Options
	server  *http.Server
	address string
	forward *httputil.ReverseProxy

	closed   chan struct{}
	released chan struct{}
	dropped  chan struct{}
	severed  chan struct{}
	sever    sync.Once
	release  sync.Once
	drop     sync.Once

	mu       sync.Mutex
	requests []Request
	matched  []int // how often each rule has matched
	held     []Request
	changed  chan struct{} // closed and replaced when held changes
	underWay int           // counted writes without an answer
	struck   time.Time     // when a rule last struck
	news     map[string]*news
	watched  map[string]time.Time // when the first watch of each resource came
}

// Start listens on a free port of the loopback interface.
func Start(options Options) (*Proxy, error) {
	for i, rule := range options.Rules {
		if err := rule.validate(); err != nil {
			return nil, fmt.Errorf("rule %d: %w", i, err)
		}
	}
	if options.Uncounted == nil {
		options.Uncounted = LeaderElectionAndEvents
	}
	forward, err := newForward(options.Config)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		options: options, forward: forward, address: listener.Addr().String(),
		closed: make(chan struct{}), released: make(chan struct{}), dropped: make(chan struct{}), severed: make(chan struct{}),
		changed: make(chan struct{}), matched: make([]int, len(options.Rules)), news: map[string]*news{}, watched: map[string]time.Time{},
	}
	p.server = &http.Server{
		Handler: p, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute,
	}
	go func() { _ = p.server.Serve(listener) }() // ends with Close
	return p, nil
}

func newForward(config *rest.Config) (*httputil.ReverseProxy, error) {
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("address of the API server: %w", err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("credentials for the API server: %w", err)
	}
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorLog:      log.New(io.Discard, "", 0),
		// An API server that is away looks to the operator like one that is away.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { cut() },
	}, nil
}

// cut closes the connection without an answer.
func cut() { panic(http.ErrAbortHandler) }

// URL of the proxy.
func (p *Proxy) URL() string { return "http://" + p.address }

// WriteKubeconfig writes a kubeconfig for the proxy to a file.
func (p *Proxy) WriteKubeconfig(path string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["proxy"] = &clientcmdapi.Cluster{Server: p.URL()}
	config.AuthInfos["proxy"] = clientcmdapi.NewAuthInfo()
	config.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy", AuthInfo: "proxy"}
	config.CurrentContext = "proxy"
	content, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// Rearm gives a proxy that has not severed other rules, and counts and records from 1 again: for the next story of the
// same process. No write may be under way.
func (p *Proxy) Rearm(rules []Rule) error {
	for i, rule := range rules {
		if err := rule.validate(); err != nil {
			return fmt.Errorf("rule %d: %w", i, err)
		}
	}
	select {
	case <-p.severed:
		return errors.New("a severed proxy stays silent")
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.options.Rules, p.matched, p.requests = rules, make([]int, len(rules)), nil
	p.speakAgain()
	return nil
}

// Resting says that no counted write waits for its answer, that no watch is held, and that no rule has struck for a while.
func (p *Proxy) Resting(since time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.news {
		if n.held != nil {
			return false
		}
	}
	return p.underWay == 0 && time.Since(p.struck) > since
}

// Awake says that the process has been watching these resources for a while: it knows what there is.
func (p *Proxy) Awake(since time.Duration, resources ...string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, resource := range resources {
		if first, yes := p.watched[resource]; !yes || time.Since(first) < since {
			return false
		}
	}
	return true
}

// Requests returns the counted writes so far: that of number n is at n-1.
func (p *Proxy) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Request(nil), p.requests...)
}

// Severed is closed when a rule has severed the operator from the API server.
func (p *Proxy) Severed() <-chan struct{} { return p.severed }

// WaitHeld returns a request that is parked, and waits for one if there is none.
func (p *Proxy) WaitHeld(ctx context.Context) (Request, error) {
	for {
		p.mu.Lock()
		held, changed := p.held, p.changed
		p.mu.Unlock()
		if len(held) > 0 {
			return held[0], nil
		}
		select {
		case <-ctx.Done():
			return Request{}, fmt.Errorf("no request is held: %w", ctx.Err())
		case <-p.closed:
			return Request{}, errors.New("the proxy is closed")
		case <-changed:
		}
	}
}

// Release lets the parked requests go on, and parks none any more.
func (p *Proxy) Release() { p.release.Do(func() { close(p.released) }) }

// Drop cuts the connections of the parked requests, which the API server never sees, and parks none any more.
func (p *Proxy) Drop() { p.drop.Do(func() { close(p.dropped) }) }

// Close ends the proxy and cuts all connections.
func (p *Proxy) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.closed:
		return nil
	default:
		close(p.closed)
		return p.server.Close()
	}
}

// ServeHTTP passes reads on, and writes as the rules say.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.silenceIfSevered(r)
	request, ok := parse(r.Method, r.URL.Path)
	switch {
	case ok && isWatch(r):
		p.watch(w, r, request)
		return
	case !ok || request.Verb == "":
		p.forward.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		cut()
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	name, uid := about(body)
	if request.Name == "" && request.Verb == "create" {
		request.Name = name
	}
	request.UID = uid
	request, rule := p.admit(request)
	defer p.done(request)
	p.act(w, r, request, rule)
}

func (p *Proxy) done(request Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if request.N != 0 {
		p.underWay--
	}
}

// admit counts and records a write, and chooses the rule that strikes.
func (p *Proxy) admit(request Request) (Request, *Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	counted := !p.options.Uncounted(request)
	if counted {
		request.N = len(p.requests) + 1
	}
	var striking *Rule
	for i := range p.options.Rules {
		rule := &p.options.Rules[i]
		if !rule.matches(request) {
			continue
		}
		p.matched[i]++
		if striking == nil && rule.strikes(p.matched[i]) {
			striking, request.Rule, p.struck = rule, i, time.Now()
		}
	}
	if counted {
		p.underWay++
		p.requests = append(p.requests, request)
	}
	return request, striking
}

// answered notes the code that the operator got, unless it is 0, and whether the API server did what it asked for.
func (p *Proxy) answered(request Request, code int, applied bool) {
	if request.N == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if request.N > len(p.requests) {
		return // of before Rearm
	}
	noted := &p.requests[request.N-1]
	noted.Code, noted.Applied = code, applied
}
