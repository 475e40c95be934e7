package faultproxy

import (
	"encoding/json"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Request is one write that the operator asked for.
type Request struct {
	// N counts the writes from 1, in the order in which they came.
	N int `json:"n"`
	// Verb is create, update, patch, delete or deletecollection.
	Verb string `json:"verb"`
	// Group of the resource, empty for the core group.
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	// UID that the request insists on: the precondition of a delete, or the one in the object. Empty: any object.
	UID types.UID `json:"uid,omitempty"`
	// Code of the answer that the operator got: 0 while there is none, and when the connection was cut.
	Code int `json:"code"`
	// Applied tells that the API server answered with success, whatever the operator was told.
	Applied bool `json:"applied"`
	// Rule is the index of the rule that fired, or -1.
	Rule int `json:"rule"`
}

// parse reads what a request is about from its path; ok is false for what is no resource, such as discovery.
func parse(method, path string) (r Request, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		r.Group, parts = parts[1], parts[3:]
	default:
		return r, false
	}
	// A namespace's own path looks like the start of a longer one: namespaces/<name>[/status|/finalize].
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		r.Namespace, parts = parts[1], parts[2:]
	}
	r.Resource = parts[0]
	if len(parts) > 1 {
		r.Name = parts[1]
	}
	if len(parts) > 2 {
		r.Subresource = strings.Join(parts[2:], "/")
	}
	r.Verb = verb(method, r.Name)
	r.Rule = -1
	return r, true
}

// verb is empty for requests that do not write.
func verb(method, name string) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if name == "" {
			return "deletecollection"
		}
		return "delete"
	default:
		return ""
	}
}

// about finds the name in the body of a create, whose path has none, and the UID that a write insists on. Built-in kinds
// come as protobuf.
func about(body []byte) (string, types.UID) {
	var partial struct {
		Metadata      metav1.ObjectMeta    `json:"metadata"`
		Preconditions metav1.Preconditions `json:"preconditions"`
	}
	if err := json.Unmarshal(body, &partial); err == nil {
		if uid := partial.Preconditions.UID; uid != nil {
			return "", *uid
		}
		return partial.Metadata.Name, partial.Metadata.UID
	}
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return "", ""
	}
	switch object := decoded.(type) {
	case *metav1.DeleteOptions:
		if object.Preconditions != nil && object.Preconditions.UID != nil {
			return "", *object.Preconditions.UID
		}
	case client.Object:
		return object.GetName(), object.GetUID()
	}
	return "", ""
}
