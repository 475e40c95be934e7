// Package webhook plays KubeVirt's API server as far as it stands before the writes of VirtualMachines: what it adds, and
// what it refuses, in its words.
package webhook

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pelotech/open-terrain/e2e/sim/selfsigned"
)

const (
	// The API server names the webhooks in its refusals.
	mutator   = "virtualmachines-mutator.kubevirt.io"
	validator = "virtualmachine-validator.kubevirt.io"

	name    = "kubevirt-simulator"
	timeout = 5 * time.Second
)

// Server serves the webhooks.
type Server struct {
	client client.Client
	server *http.Server
	away   atomic.Bool
}

// Start serves the webhooks on the loopback interface until Close, and registers them.
func Start(ctx context.Context, c client.Client) (*Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	listener, ca, err := selfsigned.Wrap(listener)
	if err != nil {
		return nil, err
	}
	s := &Server{client: c}
	mux := http.NewServeMux()
	mux.Handle("/mutate", handler(Mutate))
	mux.Handle("/validate", s.unlessAway(handler(Validate)))
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: timeout}
	go func() { _ = s.server.Serve(listener) }() // returns when it is closed
	return s, s.register(ctx, "https://"+address, ca)
}

// SetAway takes the validating webhook away, or brings it back.
func (s *Server) SetAway(away bool) { s.away.Store(away) }

// Close takes the webhooks from the cluster, where they would stand in the way of every write, and ends the server.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	s.unregister(ctx)
	_ = s.server.Close()
}

func (s *Server) unregister(ctx context.Context) {
	meta := metav1.ObjectMeta{Name: name} // at worst they stay: the cluster is about to be stopped
	_ = s.client.Delete(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta})
	_ = s.client.Delete(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta})
}

func (s *Server) register(ctx context.Context, url string, ca []byte) error {
	s.unregister(ctx) // those of a former simulator
	fail, none := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	to := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{URL: new(url + path), CABundle: ca}
	}
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{virtv1.GroupVersion.Group}, APIVersions: []string{"v1"}, Resources: []string{"virtualmachines"}},
	}}
	meta, versions := metav1.ObjectMeta{Name: name}, []string{"v1"}
	if err := s.client.Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.MutatingWebhook{{
		Name: mutator, ClientConfig: to("/mutate"), Rules: rules, FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: versions,
	}}}); err != nil {
		return err
	}
	return s.client.Create(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: validator, ClientConfig: to("/validate"), Rules: rules, FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: versions,
	}}})
}

// unlessAway breaks the connection off, which the API server tells as a failure to call the webhook.
func (s *Server) unlessAway(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.away.Load() {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
}

func handler(answer func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "an AdmissionReview is wanted", http.StatusBadRequest)
			return
		}
		review.Response = answer(review.Request)
		review.Response.UID, review.Request = review.Request.UID, nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	})
}

func denied(err error) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: err.Error(), Code: http.StatusBadRequest}}
}
