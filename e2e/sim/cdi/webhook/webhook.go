// Package webhook plays the one check of CDI's webhook that depends on the cluster: a DataVolume is refused where a claim of
// its name is there already that is no DataVolume's.
package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pelotech/open-terrain/e2e/sim/selfsigned"
)

const (
	hook    = "datavolume-validate.cdi.kubevirt.io" // the API server names it in its refusals
	timeout = 5 * time.Second
)

// Start serves the webhook on the loopback interface until ctx is done, and registers it. One that is registered and gone
// refuses nothing.
func Start(ctx context.Context, c client.Client) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	listener, ca, err := selfsigned.Wrap(listener)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler(c), ReadHeaderTimeout: timeout}
	go func() { _ = server.Serve(listener) }() // returns when it is closed
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return register(ctx, c, "https://"+address, ca)
}

func register(ctx context.Context, c client.Client, url string, ca []byte) error {
	ignore, none := admissionregistrationv1.Ignore, admissionregistrationv1.SideEffectClassNone
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "cdi-simulator"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: hook, ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{cdiv1.SchemeGroupVersion.Group}, APIVersions: []string{"v1beta1"}, Resources: []string{"datavolumes"}},
			}},
			FailurePolicy: &ignore, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		}},
	}
	if err := client.IgnoreNotFound(c.Delete(ctx, configuration.DeepCopy())); err != nil { // of a former simulator
		return err
	}
	return c.Create(ctx, configuration)
}

func handler(c client.Reader) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "an AdmissionReview is wanted", http.StatusBadRequest)
			return
		}
		review.Response = answer(r.Context(), c, review.Request)
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	})
}

func answer(ctx context.Context, c client.Reader, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	message := ""
	var claim corev1.PersistentVolumeClaim
	err := c.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: request.Name}, &claim)
	owner := metav1.GetControllerOf(&claim)
	switch {
	case client.IgnoreNotFound(err) != nil:
		message = err.Error()
	case err == nil && (owner == nil || owner.Kind != "DataVolume"):
		message = fmt.Sprintf(" DataVolume.Name Destination PVC %s/%s already exists", request.Namespace, request.Name)
	}
	if message == "" {
		return &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
	}
	return &admissionv1.AdmissionResponse{UID: request.UID, Result: &metav1.Status{
		Message: message, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
	}}
}
