package faultproxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/e2e/faultproxy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// streaming is an API server whose watches say what is put into news; writes are fine.
func streaming(t *testing.T, options faultproxy.Options) (*faultproxy.Proxy, chan string) {
	t.Helper()
	news := make(chan string, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			return
		}
		flusher, _ := w.(http.Flusher)
		w.WriteHeader(http.StatusOK)
		flusher.Flush()
		for {
			select {
			case line := <-news:
				fmt.Fprintln(w, line)
				flusher.Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(s.CloseClientConnections)
	options.Config = &rest.Config{Host: s.URL}
	proxy, err := faultproxy.Start(options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, proxy.Close()) })
	return proxy, news
}

func watchAt(t *testing.T, proxy *faultproxy.Proxy, query string) (int, chan string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, proxy.URL()+images+"?watch=true"+query, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request) //nolint:bodyclose // by the goroutine
	require.NoError(t, err)
	lines := make(chan string, 10)
	go func() {
		defer close(lines)
		defer response.Body.Close()
		scanner := bufio.NewScanner(response.Body)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
	}()
	return response.StatusCode, lines
}

func silent(t *testing.T, lines chan string) {
	t.Helper()
	select {
	case line, open := <-lines:
		assert.Fail(t, "it says something", "%q %t", line, open)
	case <-time.After(100 * time.Millisecond):
	}
}

func TestAHeldWatchSaysLaterWhatItKept(t *testing.T) {
	proxy, news := streaming(t, faultproxy.Options{})
	_, lines := watchAt(t, proxy, "&resourceVersion=7")
	news <- "one"
	assert.Equal(t, "one", <-lines)
	proxy.HoldWatches("datavolumes")
	news <- "two"
	assert.Equal(t, "two", <-lines, "another resource is not held")
	proxy.HoldWatches("vmdiskimages")
	assert.False(t, proxy.Resting(0))
	news <- "three"
	silent(t, lines)
	proxy.ReleaseWatches("vmdiskimages")
	assert.Equal(t, "three", <-lines)
}

func TestAProcessIsAwakeWhenItWatchesEverything(t *testing.T) {
	proxy, _ := streaming(t, faultproxy.Options{})
	assert.False(t, proxy.Awake(0, "vmdiskimages"))
	watchAt(t, proxy, "&resourceVersion=7")
	assert.True(t, proxy.Awake(0, "vmdiskimages"))
	assert.False(t, proxy.Awake(time.Hour, "vmdiskimages"), "for a while")
	assert.False(t, proxy.Awake(0, "vmdiskimages", "datavolumes"))
	proxy.ExpireWatches("vmdiskimages")
	assert.False(t, proxy.Awake(0, "vmdiskimages"), "until it has listed anew")
	watchAt(t, proxy, "&resourceVersion=7")
	assert.False(t, proxy.Awake(0, "vmdiskimages"))
	watchAt(t, proxy, "&sendInitialEvents=true&resourceVersion=")
	assert.True(t, proxy.Awake(0, "vmdiskimages"))
}

func TestAnExpiredWatchHasToListAnew(t *testing.T) {
	proxy, news := streaming(t, faultproxy.Options{})
	_, lines := watchAt(t, proxy, "&resourceVersion=7")
	proxy.HoldWatches("vmdiskimages")
	news <- "never heard"
	silent(t, lines)
	proxy.ExpireWatches("vmdiskimages")
	_, open := <-lines
	assert.False(t, open, "the watch has ended")
	code, _ := watchAt(t, proxy, "&sendInitialEvents=true&resourceVersion=")
	assert.Equal(t, http.StatusOK, code, "a watch that begins with a list may")
	code, _ = watchAt(t, proxy, "&resourceVersion=7")
	assert.Equal(t, http.StatusGone, code, "one that goes on may not")
	code, _ = watchAt(t, proxy, "&resourceVersion=9")
	assert.Equal(t, http.StatusOK, code, "but once")
}

func TestAWriteMakesWatchesStale(t *testing.T) {
	for when, heard := range map[faultproxy.When]bool{faultproxy.Stale: true, faultproxy.Relist: false} {
		t.Run(string(when), func(t *testing.T) {
			proxy, news := streaming(t, faultproxy.Options{Rules: []faultproxy.Rule{
				{Resource: "leases", When: when, Watch: "vmdiskimages", Delay: 300 * time.Millisecond},
			}})
			_, lines := watchAt(t, proxy, "&resourceVersion=7")
			code, err := send(t.Context(), proxy, http.MethodPut, slots+"/disk-sync-slot-0")
			require.NoError(t, err)
			assert.Equal(t, http.StatusOK, code, "the write passes")
			news <- "late"
			silent(t, lines)
			line, open := <-lines
			assert.Equal(t, heard, open)
			assert.Equal(t, heard, line == "late")
		})
	}
}

func TestABurstStrikesMatchesInARow(t *testing.T) {
	proxy := startProxy(t, newServer(t), faultproxy.Options{Rules: []faultproxy.Rule{{Nth: 2, Times: 2, When: faultproxy.Before, Code: 500}}})
	var codes []int
	for range 4 {
		code, err := send(t.Context(), proxy, http.MethodPatch, status)
		require.NoError(t, err)
		codes = append(codes, code)
	}
	assert.Equal(t, []int{200, 500, 500, 200}, codes)
	assert.False(t, proxy.Resting(time.Hour), "a fault has just struck")
	assert.Eventually(t, func() bool { return proxy.Resting(0) }, time.Second, time.Millisecond)
}

func TestTheUIDThatAWriteInsistsOn(t *testing.T) {
	for name, test := range map[string]struct{ method, body string }{
		"of a delete, as a precondition": {method: http.MethodDelete, body: `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u-1"}}`},
		"of an apply, in the object":     {method: http.MethodPatch, body: `{"metadata":{"name":"one","uid":"u-1"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := startProxy(t, newServer(t), faultproxy.Options{})
			request, err := http.NewRequestWithContext(t.Context(), test.method, proxy.URL()+images+"/one", strings.NewReader(test.body))
			require.NoError(t, err)
			response, err := http.DefaultClient.Do(request)
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, response.Body)
			require.NoError(t, response.Body.Close())
			assert.EqualValues(t, "u-1", proxy.Requests()[0].UID)
		})
	}
}

func TestKubeVirtsWatchesAreNamedWithTheirGroup(t *testing.T) {
	proxy, news := streaming(t, faultproxy.Options{})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, proxy.URL()+"/apis/kubevirt.io/v1/virtualmachines?watch=true", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	proxy.HoldWatches("virtualmachines") // ours
	news <- "one"
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "one\n", line)
	proxy.HoldWatches("virtualmachines.kubevirt.io")
	news <- "two"
	heard := make(chan string, 1)
	go func() {
		line, _ := lines.ReadString('\n')
		heard <- line
	}()
	select {
	case line := <-heard:
		assert.Fail(t, "it was held", line)
	case <-time.After(100 * time.Millisecond):
	}
	proxy.ReleaseWatches("virtualmachines.kubevirt.io")
	assert.Equal(t, "two\n", <-heard)
}
