// Package imageserver serves disk images over HTTP, misbehaves on request, and counts what was downloaded.
//
// The first part of a path says how the file F is served:
//
//	/ok/F            with ranges, as web servers do
//	/noranges/F      without Accept-Ranges
//	/status/CODE/X   that status, for anything
//	/failfirst/N/F   503 for the first N requests of that path, then as /ok
//	/slow/RATE/F     RATE bytes a second
//	/cut/N/F         full Content-Length, the connection is closed after N bytes
//	/short/N/F       only the first N bytes, as if that were the whole file
//	/gate/NAME/F     nothing is sent until Open(NAME), then as /ok
//	/hang/F          the request is accepted, and nothing is ever sent
//	/loop/F          redirected to itself, after a short pause
//	/html/F          a page of HTML with status 200
//	/auth/U/P/F      as /ok, for user U with password P, else 401
//	/_stats          the counters as JSON
//
// A download is complete when a GET without Range was sent to its end; CDI's probe drops such a GET after the first
// bytes and must not count. The kernel takes some 200 KB before it can be known that nobody reads them, so
// files below 256 KiB count too often.
package imageserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pelotech/open-terrain/e2e/sim/selfsigned"
)

const sendBuffer = 16 << 10 // small, so that a client that stops reading is noticed

// Options of a server. The zero value serves on a free port of the loopback interface.
type Options struct {
	// Address to listen on, host:port; empty means 127.0.0.1:0.
	Address string
	// Folder whose files are served besides those that were added; may be empty.
	Folder string
	// TLS serves https with a certificate that only CA vouches for.
	TLS bool
}

// Server is a running image server.
type Server struct {
	// CA is the certificate authority in PEM, with TLS only.
	CA []byte

	root     *os.Root
	scheme   string
	listener net.Listener
	http     *http.Server
	closing  chan struct{}
	counters counters

	mu    sync.RWMutex
	files map[string][]byte
	gates map[string]chan struct{}
}

// Start listens and serves until Close.
func Start(o Options) (*Server, error) {
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	s := &Server{scheme: "http", closing: make(chan struct{}), files: map[string][]byte{}, gates: map[string]chan struct{}{}, counters: counters{paths: map[string]*PathStats{}}}
	if err := s.listen(o); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_stats", s.serveStats)
	mux.HandleFunc("/", s.serveImage)
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.http.Serve(s.listener) }() // returns when Close is called
	return s, nil
}

func (s *Server) listen(o Options) (err error) {
	if o.Folder != "" {
		if s.root, err = os.OpenRoot(o.Folder); err != nil {
			return fmt.Errorf("folder of images: %w", err)
		}
	}
	tcp, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", o.Address)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", o.Address, err)
	}
	s.listener = smallBuffers{tcp}
	if !o.TLS {
		return nil
	}
	s.scheme = "https"
	s.listener, s.CA, err = selfsigned.Wrap(s.listener)
	return err
}

// smallBuffers keeps the kernel from taking a file that the client does not read.
type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer)
	}
	return c, err
}

// Add makes a file available under name, in place of an earlier one.
func (s *Server) Add(name string, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[name] = content
}

// Open lets the requests of /gate/NAME go on, those that wait and those to come.
func (s *Server) Open(name string) {
	gate := s.gate(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-gate: // open already
	default:
		close(gate)
	}
}

func (s *Server) gate(name string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gates[name] == nil {
		s.gates[name] = make(chan struct{})
	}
	return s.gates[name]
}

// Address is the host and port that the server listens on.
func (s *Server) Address() string { return s.listener.Addr().String() }

// URL of a path such as "ok/disk.qcow2".
func (s *Server) URL(path string) string {
	return s.scheme + "://" + s.Address() + "/" + strings.TrimPrefix(path, "/")
}

// Close stops the server and ends the requests that hang.
func (s *Server) Close() error {
	close(s.closing)
	err := s.http.Close()
	if s.root != nil {
		err = errors.Join(err, s.root.Close())
	}
	return err
}

func (s *Server) content(name string) ([]byte, bool) {
	s.mu.RLock()
	content, ok := s.files[name]
	s.mu.RUnlock()
	if ok || s.root == nil {
		return content, ok
	}
	content, err := s.root.ReadFile(name)
	return content, err == nil
}
