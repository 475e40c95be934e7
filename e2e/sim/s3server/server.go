// Package s3server is an S3 server in memory that refuses requests that are not signed with its key, and counts downloads.
//
// gofakes3 does the S3 part; it checks no signatures, so that is done here.
package s3server

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// Options of a server. AccessKey and SecretKey are what requests must be signed with.
type Options struct {
	// Address to listen on, host:port; empty means 127.0.0.1:0.
	Address string
	// AccessKey and SecretKey; both empty means "access" and "secret".
	AccessKey, SecretKey string
}

// ObjectStats counts what was asked for of one object, and what was sent.
type ObjectStats struct {
	// Gets is the number of GETs, refused ones included.
	Gets int `json:"gets"`
	// Refused is the number of GETs with a wrong signature.
	Refused int `json:"refused"`
	// Complete is the number of GETs whose body was sent to its end: the downloads.
	Complete int `json:"complete"`
	// Bytes of bodies sent.
	Bytes int64 `json:"bytes"`
}

// Server is a running S3 server.
type Server struct {
	options  Options
	backend  *s3mem.Backend
	listener net.Listener
	http     *http.Server

	mu    sync.Mutex
	stats map[string]*ObjectStats
}

// Start listens and serves until Close.
func Start(o Options) (*Server, error) {
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	if o.AccessKey == "" && o.SecretKey == "" {
		o.AccessKey, o.SecretKey = "access", "secret"
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", o.Address, err)
	}
	s := &Server{options: o, backend: s3mem.New(), listener: listener, stats: map[string]*ObjectStats{}}
	s3 := gofakes3.New(s.backend).Server()
	s.http = &http.Server{Handler: s.guard(s3), ReadHeaderTimeout: time.Minute}
	go func() { _ = s.http.Serve(smallBuffers{listener}) }() // returns when Close is called
	return s, nil
}

// Put stores an object and makes the bucket if it is not there.
func (s *Server) Put(bucket, key string, content []byte) error {
	if ok, err := s.backend.BucketExists(bucket); err != nil || !ok {
		if err := s.backend.CreateBucket(bucket); err != nil {
			return fmt.Errorf("bucket %s: %w", bucket, err)
		}
	}
	if _, err := s.backend.PutObject(bucket, key, nil, bytes.NewReader(content), int64(len(content)), nil); err != nil {
		return fmt.Errorf("object %s/%s: %w", bucket, key, err)
	}
	return nil
}

// Root is what the URL of every object begins with.
func (s *Server) Root() string { return "http://" + s.listener.Addr().String() + "/" }

// URL of an object, path style.
func (s *Server) URL(bucket, key string) string { return s.Root() + bucket + "/" + key }

// Keys are the access key and the secret key that the server accepts.
func (s *Server) Keys() (accessKey, secretKey string) {
	return s.options.AccessKey, s.options.SecretKey
}

// Of is the statistics of an object.
func (s *Server) Of(bucket, key string) ObjectStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stats := s.stats["/"+bucket+"/"+key]; stats != nil {
		return *stats
	}
	return ObjectStats{}
}

// Close stops the server.
func (s *Server) Close() error { return s.http.Close() }

func (s *Server) update(path string, f func(*ObjectStats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stats[path] == nil {
		s.stats[path] = &ObjectStats{}
	}
	f(s.stats[path])
}

func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		isGet, path := r.Method == http.MethodGet, r.URL.Path
		if isGet {
			s.update(path, func(o *ObjectStats) { o.Gets++ })
		}
		if code, message := s.check(r); code != "" {
			if isGet {
				s.update(path, func(o *ObjectStats) { o.Refused++ })
			}
			refuse(w, r, code, message)
			return
		}
		counting := &countingWriter{ResponseWriter: w}
		next.ServeHTTP(counting, r)
		_ = http.NewResponseController(w).Flush() // what is not sent does not count
		if isGet {
			s.update(path, func(o *ObjectStats) {
				o.Bytes += counting.sent
				if counting.complete() {
					o.Complete++
				}
			})
		}
	})
}

// refuse answers with S3's error document.
func refuse(w http.ResponseWriter, r *http.Request, code, message string) {
	body, _ := xml.Marshal(struct {
		XMLName   xml.Name `xml:"Error"`
		Code      string
		Message   string
		Resource  string
		RequestID string `xml:"RequestId"`
	}{Code: code, Message: message, Resource: r.URL.Path, RequestID: "0000000000000001"}) // strings only: cannot fail
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(http.StatusForbidden)
	_, _ = io.WriteString(w, xml.Header+string(body))
}

type countingWriter struct {
	http.ResponseWriter
	status int
	sent   int64
	failed bool
}

func (c *countingWriter) WriteHeader(status int) {
	if c.status != 0 {
		return // gofakes3 says it twice when the client is gone
	}
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

func (c *countingWriter) Write(b []byte) (int, error) {
	c.status = max(c.status, http.StatusOK)
	n, err := c.ResponseWriter.Write(b)
	c.sent += int64(n)
	c.failed = c.failed || err != nil
	return n, err
}

func (c *countingWriter) complete() bool {
	length, err := strconv.ParseInt(c.Header().Get("Content-Length"), 10, 64)
	return !c.failed && (c.status == 0 || c.status == http.StatusOK) && (err != nil || length == c.sent)
}

// smallBuffers keeps the kernel from taking an object that the client does not read.
type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(16 << 10)
	}
	return c, err
}
