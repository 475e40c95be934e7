package importer

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/pelotech/open-terrain/e2e/sim/diskimage"
)

const (
	agent       = "cdi-golang-importer"
	nbdkitAgent = "cdi-nbdkit-importer"
)

// httpSource is an image on a web server. CDI asks HEAD and GET, and looks at the header through nbdkit
// (HEAD and GETs with Range) where the server offers ranges.
type httpSource struct {
	*Request

	client *http.Client
	body   io.ReadCloser
	length int64 // 0 means unknown
	ranges bool
}

func importHTTP(ctx context.Context, r *Request) error {
	client, err := r.httpClient()
	if err != nil {
		return connectError{SourceHTTP, err}
	}
	defer client.CloseIdleConnections()
	s := &httpSource{Request: r, client: client}
	if err := s.open(ctx); err != nil {
		return connectError{SourceHTTP, err}
	}
	defer s.body.Close()
	sum, err := newHash(r.Checksum)
	if err != nil {
		return connectError{SourceHTTP, err}
	}
	stream := bufio.NewReaderSize(s.body, headerSize)
	if _, err := peek(stream); err != nil {
		return err
	}
	var tooLarge tooLarge
	if err := s.validateRemote(ctx); errors.As(err, &tooLarge) {
		return err
	}
	if !r.Scratch {
		return errScratchRequired
	}
	if err := s.validateRemote(ctx); errors.As(err, &tooLarge) {
		return fmt.Errorf("Unable to transfer source data to scratch space: %w", err) //nolint:staticcheck // CDI's words
	}
	err = s.save(stream, sum)
	if err == nil {
		err = verify(r.Checksum, sum)
	}
	if err != nil {
		return fmt.Errorf("Unable to transfer source data to scratch space: %w", err) //nolint:staticcheck // CDI's words
	}
	return r.convert()
}

// httpClient follows redirects without end, as CDI's does.
func (r *Request) httpClient() (*http.Client, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if len(r.CAs) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("Error getting system certs: %w", err)
		}
		for _, ca := range r.CAs {
			pool.AppendCertsFromPEM(ca)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: transport, CheckRedirect: func(again *http.Request, _ []*http.Request) error {
		r.authorize(again)
		return nil
	}}, nil
}

func (r *Request) authorize(request *http.Request) {
	if r.AccessKey != "" && r.SecretKey != "" {
		request.SetBasicAuth(r.AccessKey, r.SecretKey)
	}
}

func (s *httpSource) ask(ctx context.Context, method, userAgent, byteRange string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.URL, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", userAgent)
	if byteRange != "" {
		request.Header.Set("Range", byteRange)
	}
	s.authorize(request)
	return s.client.Do(request)
}

func (s *httpSource) open(ctx context.Context) error {
	head, err := s.ask(ctx, http.MethodHead, agent, "")
	headOK := err == nil && head.StatusCode == http.StatusOK
	if err == nil {
		_ = head.Body.Close()
	}
	ctx, cancel := context.WithCancel(ctx)
	get, err := s.ask(ctx, http.MethodGet, agent, "") //nolint:bodyclose // closed by importHTTP, through idleReader
	if err != nil {
		cancel()
		return fmt.Errorf("HTTP request errored: %w", err)
	}
	if get.StatusCode != http.StatusOK {
		cancel()
		_ = get.Body.Close()
		return fmt.Errorf("expected status code 200, got %d. Status: %s", get.StatusCode, get.Status)
	}
	accept := get.Header.Get("Accept-Ranges")
	s.ranges = headOK && accept != "" && accept != "none"
	if headOK {
		s.length, _ = strconv.ParseInt(head.Header.Get("Content-Length"), 10, 64)
	}
	if s.length == 0 {
		s.length = max(0, get.ContentLength)
	}
	s.body = newIdleReader(get.Body, cancel, s)
	return nil
}

// validateRemote looks at the image's header without downloading it; only its verdict on the size counts.
func (s *httpSource) validateRemote(ctx context.Context) error {
	if !s.ranges {
		return nil
	}
	head, err := s.ask(ctx, http.MethodHead, nbdkitAgent, "")
	if err != nil {
		return err
	}
	_ = head.Body.Close()
	part, err := s.ask(ctx, http.MethodGet, nbdkitAgent, "bytes=0-"+strconv.Itoa(diskimage.HeaderSize-1))
	if err != nil {
		return err
	}
	defer part.Body.Close()
	header, err := io.ReadAll(io.LimitReader(part.Body, diskimage.HeaderSize))
	if err != nil || part.StatusCode != http.StatusPartialContent {
		return err
	}
	return s.validate(s.URL, diskimage.Probe(header), s.length)
}

// idleReader gives a download up that gets no byte for too long, and tells how far it is.
type idleReader struct {
	io.ReadCloser

	cancel context.CancelFunc
	timer  *time.Timer
	source *httpSource
	read   int64
}

func newIdleReader(body io.ReadCloser, cancel context.CancelFunc, s *httpSource) *idleReader {
	timeout := s.IdleTimeout
	if timeout == 0 {
		timeout = defaultIdleTime
	}
	return &idleReader{ReadCloser: body, cancel: cancel, timer: time.AfterFunc(timeout, cancel), source: s}
}

func (i *idleReader) Read(p []byte) (int, error) {
	n, err := i.ReadCloser.Read(p)
	if n > 0 {
		timeout := i.source.IdleTimeout
		if timeout == 0 {
			timeout = defaultIdleTime
		}
		i.timer.Reset(timeout)
		i.read += int64(n)
	}
	if i.source.OnProgress != nil && i.source.length > 0 {
		i.source.OnProgress(100 * float64(i.read) / float64(i.source.length))
	}
	return n, err
}

func (i *idleReader) Close() error {
	i.timer.Stop()
	i.cancel()
	return i.ReadCloser.Close()
}
