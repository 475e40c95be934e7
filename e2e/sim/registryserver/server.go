// Package registryserver is a container registry in memory that holds disk images and counts the downloads of their layers.
package registryserver

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/pelotech/open-terrain/e2e/sim/selfsigned"
)

// Options of a registry. The zero value serves http on a free port of the loopback interface.
type Options struct {
	// Address to listen on, host:port; empty means 127.0.0.1:0.
	Address string
	// TLS serves https with a certificate that only Server.CA vouches for.
	TLS bool
}

// Server is a running registry.
type Server struct {
	// CA is the certificate authority in PEM, with TLS only.
	CA []byte

	listener net.Listener
	http     *http.Server

	mu    sync.Mutex
	blobs map[string]int // GETs of blobs, by repository
}

// Start listens and serves until Close.
func Start(o Options) (*Server, error) {
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", o.Address, err)
	}
	var ca []byte
	if o.TLS {
		if listener, ca, err = selfsigned.Wrap(listener); err != nil {
			return nil, err
		}
	}
	s := &Server{CA: ca, listener: listener, blobs: map[string]int{}}
	next := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s.http = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if repository, _, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/"), "/blobs/sha256:"); ok && r.Method == http.MethodGet {
			s.mu.Lock()
			s.blobs[repository]++
			s.mu.Unlock()
		}
		next.ServeHTTP(w, r)
	})}
	go func() { _ = s.http.Serve(listener) }() // returns when Close is called
	return s, nil
}

// PutDisk pushes an image whose only layer holds content as file, a path such as disk/disk.qcow2, under repository:tag.
func (s *Server) PutDisk(ctx context.Context, reference, file string, content []byte) error {
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return archive(file, content) })
	if err != nil {
		return fmt.Errorf("layer with %s: %w", file, err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return fmt.Errorf("image %s: %w", reference, err)
	}
	ref, err := name.ParseReference(s.listener.Addr().String()+"/"+reference, name.Insecure)
	if err != nil {
		return fmt.Errorf("image %s: %w", reference, err)
	}
	// It is our own server: its certificate proves nothing to us.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}} //nolint:gosec // see above
	defer transport.CloseIdleConnections()
	if err := remote.Write(ref, image, remote.WithContext(ctx), remote.WithTransport(transport)); err != nil {
		return fmt.Errorf("pushing %s: %w", reference, err)
	}
	return nil
}

func archive(file string, content []byte) (io.ReadCloser, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: path.Dir(file) + "/", Typeflag: tar.TypeDir, Mode: 0o755}); err != nil {
		return nil, err
	}
	if err := w.WriteHeader(&tar.Header{Name: file, Size: int64(len(content)), Mode: 0o444}); err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	return io.NopCloser(&b), w.Close()
}

// URL of an image, as a DataVolume's registry source wants it.
func (s *Server) URL(reference string) string {
	return "docker://" + s.listener.Addr().String() + "/" + reference
}

// BlobGets is the number of GETs of blobs (layers and configurations) of a repository.
func (s *Server) BlobGets(repository string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blobs[repository]
}

// Close stops the registry.
func (s *Server) Close() error { return s.http.Close() }
