package faultproxy_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/e2e/faultproxy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const (
	images = "/apis/pelotech.ot/v1alpha1/namespaces/a/vmdiskimages"
	status = images + "/one/status"
	slots  = "/apis/coordination.k8s.io/v1/namespaces/sync-operator/leases"
)

// server is an API server that answers everything and remembers what changed something.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	writes []string
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			body, _ := io.ReadAll(r.Body)
			s.mu.Lock()
			s.writes = append(s.writes, r.Method+" "+r.URL.Path+" "+string(body))
			s.mu.Unlock()
		}
		w.WriteHeader(http.StatusOK)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.writes...)
}

func startProxy(t *testing.T, s *server, options faultproxy.Options) *faultproxy.Proxy {
	t.Helper()
	options.Config = &rest.Config{Host: s.URL}
	proxy, err := faultproxy.Start(options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, proxy.Close()) })
	return proxy
}

// send returns the code of the answer, or 0 and an error when there is none.
func send(ctx context.Context, proxy *faultproxy.Proxy, method, path string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, method, proxy.URL()+path, strings.NewReader(`{"metadata":{"name":"made"}}`))
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

func TestWritesAreCountedInOrder(t *testing.T) {
	s := newServer(t)
	proxy := startProxy(t, s, faultproxy.Options{})
	for _, r := range [][2]string{
		{http.MethodGet, images},
		{http.MethodPost, images},
		{http.MethodPatch, status},
		{http.MethodPut, slots + "/disk-sync-slot-0"},
		{http.MethodPut, slots + "/the-leader"},
		{http.MethodPost, "/api/v1/namespaces/a/events"},
		{http.MethodDelete, "/api/v1/namespaces/a/configmaps"},
		{http.MethodDelete, "/api/v1/namespaces/a"},
		{http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"},
	} {
		code, err := send(t.Context(), proxy, r[0], r[1])
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, code)
	}
	want := []faultproxy.Request{
		{N: 1, Verb: "create", Group: "pelotech.ot", Resource: "vmdiskimages", Namespace: "a", Name: "made"},
		{N: 2, Verb: "patch", Group: "pelotech.ot", Resource: "vmdiskimages", Namespace: "a", Name: "one", Subresource: "status"},
		{N: 3, Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "sync-operator", Name: "disk-sync-slot-0"},
		{N: 4, Verb: "deletecollection", Resource: "configmaps", Namespace: "a"},
		{N: 5, Verb: "delete", Resource: "namespaces", Name: "a"},
		{N: 6, Verb: "create", Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews", Name: "made"},
	}
	for i := range want {
		want[i].Code, want[i].Applied, want[i].Rule = 200, true, -1
	}
	assert.Equal(t, want, proxy.Requests())
	assert.Len(t, s.seen(), 8, "what is not counted passes all the same")
}

func TestRulesAnswerInPlaceOfTheServer(t *testing.T) {
	for name, test := range map[string]struct {
		rule    faultproxy.Rule
		code    int
		applied bool
	}{
		"an error before the write, and no write":                 {rule: faultproxy.Rule{When: faultproxy.Before, Code: 500}, code: 500},
		"a conflict before the write":                             {rule: faultproxy.Rule{When: faultproxy.Before, Code: 409}, code: 409},
		"a cut connection before the write":                       {rule: faultproxy.Rule{When: faultproxy.Before}},
		"an error although the write took effect":                 {rule: faultproxy.Rule{When: faultproxy.After, Code: 503}, code: 503, applied: true},
		"a cut connection although the write took effect":         {rule: faultproxy.Rule{When: faultproxy.After}, applied: true},
		"a delay, and then the server's answer":                   {rule: faultproxy.Rule{When: faultproxy.Slow, Delay: 20 * time.Millisecond}, code: 200, applied: true},
		"nothing, when the verb is another":                       {rule: faultproxy.Rule{When: faultproxy.Before, Verb: "create"}, code: 200, applied: true},
		"nothing, when the resource is another":                   {rule: faultproxy.Rule{When: faultproxy.Before, Resource: "leases"}, code: 200, applied: true},
		"nothing, when the rule is for the object without status": {rule: faultproxy.Rule{When: faultproxy.Before, Subresource: "-"}, code: 200, applied: true},
		"nothing, when the name is another":                       {rule: faultproxy.Rule{When: faultproxy.Before, Name: "two"}, code: 200, applied: true},
		"nothing, when it is not yet the n-th":                    {rule: faultproxy.Rule{When: faultproxy.Before, Nth: 2}, code: 200, applied: true},
		"an error, when verb, resource, subresource and name match": {
			rule: faultproxy.Rule{When: faultproxy.Before, Code: 500, Verb: "patch", Resource: "vmdiskimages", Subresource: "status", Name: "one", Nth: 1},
			code: 500,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			proxy := startProxy(t, s, faultproxy.Options{Rules: []faultproxy.Rule{test.rule}})
			code, err := send(t.Context(), proxy, http.MethodPatch, status)
			assert.Equal(t, test.code == 0, err != nil, "error: %v", err)
			assert.Equal(t, test.code, code)
			assert.Equal(t, test.applied, len(s.seen()) == 1)
			require.Len(t, proxy.Requests(), 1)
			assert.Equal(t, test.code, proxy.Requests()[0].Code)
			assert.Equal(t, test.applied, proxy.Requests()[0].Applied)
		})
	}
}

func TestTheNthMatchIsStruckAndNoOther(t *testing.T) {
	s := newServer(t)
	proxy := startProxy(t, s, faultproxy.Options{Rules: []faultproxy.Rule{
		{Resource: "vmdiskimages", Nth: 2, When: faultproxy.Before, Code: 500},
	}})
	var codes []int
	for _, path := range []string{status, slots + "/disk-sync-slot-0", status, status} {
		code, err := send(t.Context(), proxy, http.MethodPatch, path)
		require.NoError(t, err)
		codes = append(codes, code)
	}
	assert.Equal(t, []int{200, 200, 500, 200}, codes)
}

func TestTheLeadersLeaseIsStruckOnlyByName(t *testing.T) {
	s := newServer(t)
	proxy := startProxy(t, s, faultproxy.Options{Rules: []faultproxy.Rule{
		{When: faultproxy.Before, Code: 503},
		{When: faultproxy.Before, Code: 500, Resource: "leases", Name: "paused"},
	}})
	code, err := send(t.Context(), proxy, http.MethodPut, slots+"/the-leader")
	require.NoError(t, err)
	assert.Equal(t, 200, code)
	code, err = send(t.Context(), proxy, http.MethodPut, slots+"/paused")
	require.NoError(t, err)
	assert.Equal(t, 500, code)
	assert.Empty(t, proxy.Requests())
}

func TestErrorsAreThoseOfAnAPIServer(t *testing.T) {
	for name, test := range map[string]struct {
		code int
		is   func(error) bool
	}{
		"409": {code: 409, is: apierrors.IsConflict},
		"429": {code: 429, is: apierrors.IsTooManyRequests},
		"500": {code: 500, is: apierrors.IsInternalError},
		"503": {code: 503, is: apierrors.IsServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			proxy := startProxy(t, s, faultproxy.Options{Rules: []faultproxy.Rule{{When: faultproxy.Before, Code: test.code}}})
			err := restClient(t, proxy).Patch("application/merge-patch+json").AbsPath(status).Body([]byte("{}")).MaxRetries(0).Do(t.Context()).Error()
			require.Error(t, err)
			assert.True(t, test.is(err), "%v", err)
			if test.code == 429 {
				var answer apierrors.APIStatus
				require.True(t, errors.As(err, &answer))
				assert.EqualValues(t, 1, answer.Status().Details.RetryAfterSeconds)
			}
		})
	}
}

func TestSeverIsForEver(t *testing.T) {
	for name, test := range map[string]struct {
		when        faultproxy.When
		takesEffect bool
	}{
		"after the write took effect": {when: faultproxy.Sever, takesEffect: true},
		"before the write":            {when: faultproxy.SeverBefore},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			var called atomic.Int32
			proxy := startProxy(t, s, faultproxy.Options{
				Rules:   []faultproxy.Rule{{Verb: "patch", When: test.when}},
				OnSever: func() { called.Add(1) },
			})
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			var group sync.WaitGroup
			for range 2 {
				group.Go(func() {
					_, err := send(ctx, proxy, http.MethodPatch, status)
					assert.ErrorIs(t, err, context.DeadlineExceeded)
				})
			}
			<-proxy.Severed()
			_, err := send(ctx, proxy, http.MethodGet, images)
			assert.ErrorIs(t, err, context.DeadlineExceeded, "reads are silent, too")
			group.Wait()
			assert.EqualValues(t, 1, called.Load())
			assert.Equal(t, test.takesEffect, len(s.seen()) > 0)
		})
	}
}

func TestHoldParksUntilRelease(t *testing.T) {
	s := newServer(t)
	proxy := startProxy(t, s, faultproxy.Options{Rules: []faultproxy.Rule{{Resource: "leases", When: faultproxy.Hold}}})
	answer := make(chan int)
	go func() {
		code, _ := send(t.Context(), proxy, http.MethodPut, slots+"/disk-sync-slot-3")
		answer <- code
	}()
	held, err := proxy.WaitHeld(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "disk-sync-slot-3", held.Name)
	assert.Empty(t, s.seen(), "the server has not seen it")

	code, err := send(t.Context(), proxy, http.MethodPatch, status)
	require.NoError(t, err)
	assert.Equal(t, 200, code, "the rest goes on")

	proxy.Release()
	assert.Equal(t, 200, <-answer)
	code, err = send(t.Context(), proxy, http.MethodPut, slots+"/disk-sync-slot-3")
	require.NoError(t, err)
	assert.Equal(t, 200, code, "nothing is parked any more")
}

func TestARequestThatGivesUpWhileItIsHeldNeverHappens(t *testing.T) {
	s := newServer(t)
	proxy := startProxy(t, s, faultproxy.Options{Rules: []faultproxy.Rule{{When: faultproxy.Hold}}})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := send(ctx, proxy, http.MethodPatch, status)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := proxy.WaitHeld(ctx)
		return err != nil
	}, 5*time.Second, 10*time.Millisecond)
	proxy.Release()
	assert.Empty(t, s.seen())
}

func TestADroppedRequestNeverHappens(t *testing.T) {
	s := newServer(t)
	proxy := startProxy(t, s, faultproxy.Options{Rules: []faultproxy.Rule{{Resource: "vmdiskimages", Nth: 1, When: faultproxy.Hold}}})
	answer := make(chan error)
	go func() {
		_, err := send(t.Context(), proxy, http.MethodPatch, status)
		answer <- err
	}()
	_, err := proxy.WaitHeld(t.Context())
	require.NoError(t, err)
	proxy.Drop()
	require.Error(t, <-answer, "the connection is cut")
	assert.Empty(t, s.seen())
	code, err := send(t.Context(), proxy, http.MethodPatch, status)
	require.NoError(t, err)
	assert.Equal(t, 200, code, "the next one goes through")
}

func TestBadRulesAreRefused(t *testing.T) {
	for name, rule := range map[string]faultproxy.Rule{
		"no moment":              {},
		"an unknown moment":      {When: "later"},
		"a code of success":      {When: faultproxy.Before, Code: 200},
		"a code without a reply": {When: faultproxy.Sever, Code: 500},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := faultproxy.Start(faultproxy.Options{Config: &rest.Config{}, Rules: []faultproxy.Rule{rule}})
			assert.ErrorContains(t, err, "rule 0")
		})
	}
}

func restClient(t *testing.T, proxy *faultproxy.Proxy) rest.Interface {
	t.Helper()
	config := &rest.Config{Host: proxy.URL(), APIPath: "/apis"}
	config.GroupVersion = &metav1.Unversioned
	config.NegotiatedSerializer = serializer()
	c, err := rest.RESTClientFor(config)
	require.NoError(t, err)
	return c
}

func TestRearm(t *testing.T) {
	proxy := startProxy(t, newServer(t), faultproxy.Options{Rules: []faultproxy.Rule{{Nth: 1, When: faultproxy.Before, Code: 500}, {Nth: 3, When: faultproxy.Sever}}})
	code, err := send(t.Context(), proxy, http.MethodPost, images)
	require.NoError(t, err)
	assert.Equal(t, 500, code)

	require.NoError(t, proxy.Rearm([]faultproxy.Rule{{Nth: 1, When: faultproxy.Before, Code: 409}}))
	assert.Empty(t, proxy.Requests(), "the record begins anew")
	code, err = send(t.Context(), proxy, http.MethodPost, images)
	require.NoError(t, err)
	assert.Equal(t, 409, code, "and so does the count")
	for range 2 {
		code, err = send(t.Context(), proxy, http.MethodPost, images)
		require.NoError(t, err)
		assert.Equal(t, 200, code, "the former rules are gone")
	}
	require.Error(t, proxy.Rearm([]faultproxy.Rule{{When: "never"}}))

	require.NoError(t, proxy.Rearm([]faultproxy.Rule{{When: faultproxy.SeverBefore}}))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = send(ctx, proxy, http.MethodPost, images)
	require.Error(t, err)
	require.Error(t, proxy.Rearm(nil), "who is dead stays dead")
}
