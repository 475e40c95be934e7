package imageserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pelotech/open-terrain/e2e/sim/diskimage"
)

func start(t *testing.T, o Options) (*Server, diskimage.Image) {
	t.Helper()
	s, err := Start(o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	image := diskimage.QCOW2(64<<20, 512<<10, 1)
	s.Add("d.qcow2", image.Bytes)
	return s, image
}

func get(t *testing.T, url string, header ...string) (*http.Response, []byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

func TestGoodDownloadIsComplete(t *testing.T) {
	s, image := start(t, Options{})
	resp, body, err := get(t, s.URL("ok/d.qcow2"))
	require.NoError(t, err)
	assert.Equal(t, image.Bytes, body)
	assert.Equal(t, "bytes", resp.Header.Get("Accept-Ranges"))
	want := PathStats{Requests: 1, PlainGets: 1, Complete: 1, Bytes: int64(len(image.Bytes))}
	assert.Eventually(t, func() bool { return want == s.Of("/ok/d.qcow2") }, time.Second, time.Millisecond)
}

func TestDroppedDownloadIsNotComplete(t *testing.T) {
	s, _ := start(t, Options{})
	resp, err := http.Get(s.URL("ok/d.qcow2"))
	require.NoError(t, err)
	_, err = io.ReadFull(resp.Body, make([]byte, 512))
	require.NoError(t, err)
	time.Sleep(100 * time.Millisecond) // the server gets all the time it needs to fill the buffers
	assert.Less(t, s.Of("/ok/d.qcow2").Bytes, int64(512<<10))
	require.NoError(t, resp.Body.Close())
	assert.Eventually(t, func() bool { return s.Of("/ok/d.qcow2").Active == 0 }, time.Second, time.Millisecond)
	assert.Zero(t, s.Of("/ok/d.qcow2").Complete)
	assert.Equal(t, 1, s.Of("/ok/d.qcow2").PlainGets)
}

func TestRange(t *testing.T) {
	s, image := start(t, Options{})
	resp, body, err := get(t, s.URL("ok/d.qcow2"), "Range", "bytes=100-199")
	require.NoError(t, err)
	assert.Equal(t, http.StatusPartialContent, resp.StatusCode)
	assert.Equal(t, image.Bytes[100:200], body)
	_, body, err = get(t, s.URL("noranges/d.qcow2"), "Range", "bytes=100-199")
	require.NoError(t, err)
	assert.Len(t, body, len(image.Bytes), "a server without ranges sends all")
	assert.Equal(t, 1, s.Of("/ok/d.qcow2").RangeGets)
	assert.Zero(t, s.Of("/ok/d.qcow2").Complete)
}

func TestStatuses(t *testing.T) {
	s, _ := start(t, Options{})
	for name, tc := range map[string]struct {
		path   string
		header []string
		want   []int
	}{
		"a status on request":                   {"status/403/x", nil, []int{403, 403}},
		"a status that is no number":            {"status/many/x", nil, []int{400}},
		"a file that does not exist":            {"ok/nosuch", nil, []int{404}},
		"a way of serving that does not exist":  {"what/d.qcow2", nil, []int{404}},
		"the first two requests fail":           {"failfirst/2/d.qcow2", nil, []int{503, 503, 200, 200}},
		"a count that is no number":             {"cut/x/d.qcow2", nil, []int{400}},
		"without a password":                    {"auth/me/secret/d.qcow2", nil, []int{401}},
		"with the password":                     {"auth/me/secret/d.qcow2", []string{"Authorization", "Basic bWU6c2VjcmV0"}, []int{200}},
		"with the password, but no such a file": {"auth/me/secret/nosuch", []string{"Authorization", "Basic bWU6c2VjcmV0"}, []int{404}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, want := range tc.want {
				resp, _, err := get(t, s.URL(tc.path), tc.header...)
				require.NoError(t, err)
				assert.Equal(t, want, resp.StatusCode)
			}
		})
	}
}

func TestCutAndShort(t *testing.T) {
	s, image := start(t, Options{})
	_, body, err := get(t, s.URL("cut/300000/d.qcow2"))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Len(t, body, 300000)
	assert.Zero(t, s.Of("/cut/300000/d.qcow2").Complete)

	_, body, err = get(t, s.URL("short/300000/d.qcow2"))
	require.NoError(t, err)
	assert.Equal(t, image.Bytes[:300000], body)
}

func TestSlow(t *testing.T) {
	s, _ := start(t, Options{})
	s.Add("small", make([]byte, 3000))
	began := time.Now()
	_, body, err := get(t, s.URL("slow/10000/small"))
	require.NoError(t, err)
	assert.Len(t, body, 3000)
	assert.InDelta(t, 0.3, time.Since(began).Seconds(), 0.15)
}

func TestHangEndsWithTheClient(t *testing.T) {
	s, _ := start(t, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL("hang/d.qcow2"), nil)
	require.NoError(t, err)
	_, err = http.DefaultClient.Do(r) //nolint:bodyclose // there is no answer
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Eventually(t, func() bool { return s.Of("/hang/d.qcow2").Active == 0 }, time.Second, time.Millisecond)
	assert.Zero(t, s.Of("/hang/d.qcow2").Bytes)
}

func TestLoopAndPage(t *testing.T) {
	s, _ := start(t, Options{})
	_, _, err := get(t, s.URL("loop/d.qcow2"))
	require.ErrorContains(t, err, "stopped after 10 redirects")
	resp, body, err := get(t, s.URL("html/d.qcow2"))
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, resp.StatusCode)
	assert.Contains(t, string(body), "<html>")
}

func TestTLSNeedsTheCA(t *testing.T) {
	s, image := start(t, Options{TLS: true})
	_, _, err := get(t, s.URL("ok/d.qcow2"))
	require.ErrorContains(t, err, "certificate signed by unknown authority")
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(s.CA))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	resp, err := client.Get(s.URL("ok/d.qcow2"))
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, image.Bytes, body)
}

func TestFolderAndStatsEndpoint(t *testing.T) {
	s, _ := start(t, Options{Folder: "testdata"})
	_, body, err := get(t, s.URL("ok/hello.txt"))
	require.NoError(t, err)
	assert.Equal(t, "hello\n", string(body))
	resp, _, err := get(t, s.URL("ok/..%2fserver.go"))
	require.NoError(t, err)
	assert.Equal(t, http.StatusNotFound, resp.StatusCode, "nothing outside the folder")
	_, body, err = get(t, s.URL("_stats"))
	require.NoError(t, err)
	assert.Contains(t, string(body), `"/ok/hello.txt":{"requests":1,"heads":0,"plainGets":1,"rangeGets":0,"complete":1,"failed":0,"bytes":6,"active":0}`)
}
