package history

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Key names an object.
type Key struct {
	// Group of the resource, as the API server stores it: empty for the core group and for the built-in groups,
	// whose keys in etcd do not have it (leases, deployments).
	Group string
	// Resource in plural, for example datavolumes.
	Resource string
	// Namespace is empty for objects of the cluster.
	Namespace string
	Name      string
}

// NamespacedName is the key without the resource.
func (k Key) NamespacedName() types.NamespacedName {
	return types.NamespacedName{Namespace: k.Namespace, Name: k.Name}
}

// Event is one change of one object. The objects are shared: do not change them.
type Event struct {
	Key
	// Revision of etcd, which is also the resourceVersion of Object: a total order over all kinds.
	Revision int64
	// Seen is when the recorder got it, a few milliseconds after it happened: etcd keeps no times.
	Seen time.Time
	// Kind is empty when the object could not be decoded.
	Kind string
	// Object after the change, nil when it was deleted. It is typed when the recorder's scheme knows the kind,
	// otherwise unstructured; nil when a built-in kind is not in the scheme.
	Object client.Object
	// Prev is the object before the change, nil when it was created.
	Prev client.Object
	// Deleted tells that this change removed the object.
	Deleted bool
}

// Created tells that this change made the object.
func (e Event) Created() bool { return e.Prev == nil && !e.Deleted }

// As returns the object after the change as a T, or the zero T and false when it is something else or was deleted.
func As[T client.Object](e Event) (T, bool) {
	object, ok := e.Object.(T)
	return object, ok
}

// PrevAs is As for the object before the change.
func PrevAs[T client.Object](e Event) (T, bool) {
	object, ok := e.Prev.(T)
	return object, ok
}
