package desired

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pelotech/open-terrain/apis/drift"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// exact are the fields that nobody else may add to, by kind: one more would be another meaning. A namespaceSelector beside our
// podSelector would let in the whole cluster; a Service finds less for each label more. All of these are atomic lists and
// selectors, so that an apply takes away what is not ours.
var exact = map[string][]string{
	"NetworkPolicy": {"spec"},
	"Service":       {"spec.selector"},
	"Deployment":    {"spec.selector"},
}

// Differences are the paths of the fields of a live child, typed or not, that are not as it shall be. It is empty when an apply
// would change nothing.
func Differences(want *unstructured.Unstructured, live runtime.Object) []string {
	wanted, there := fields(want), fields(live)
	paths := drift.Of(wanted, there)
	for _, path := range exact[want.GetKind()] {
		paths = append(paths, both(wanted, there, path)...)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Fixed are the paths among the differences that the API server does not let anybody change: the child has to be deleted, and
// made anew.
func Fixed(want *unstructured.Unstructured, live runtime.Object) []string {
	wanted, there := fields(want), fields(live)
	var paths []string
	switch want.GetKind() {
	case "VirtualMachine":
		paths = both(wanted, there, "spec.vmDiskImageRef")
	case "Deployment":
		paths = both(wanted, there, "spec.selector")
	case "Service":
		headless := func(service map[string]any) bool { return under(service, "spec")["clusterIP"] == corev1.ClusterIPNone }
		if headless(wanted) != headless(there) {
			paths = []string{"spec.clusterIP"}
		}
		if portsClash(portsOf(wanted), portsOf(there)) {
			paths = append(paths, "spec.ports")
		}
	}
	return paths
}

// portsClash says that a port of somebody else has the name of one of ours: an apply adds ours beside it, and is refused.
func portsClash(wanted, there []corev1.ServicePort) bool {
	for _, port := range wanted {
		for _, other := range there {
			if port.Name == other.Name && (port.Port != other.Port || port.Protocol != other.Protocol) {
				return true
			}
		}
	}
	return false
}

// portsOf a Service; it need not be one that the API server would take.
func portsOf(service map[string]any) []corev1.ServicePort {
	var spec corev1.ServiceSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(under(service, "spec"), &spec); err != nil {
		return nil
	}
	return spec.Ports
}

// both are the paths below one that differ, whichever of the two has more.
func both(wanted, there map[string]any, path string) []string {
	a, b := under(wanted, path), under(there, path)
	var paths []string
	for _, more := range append(drift.Of(a, b), drift.Of(b, a)...) {
		paths = append(paths, path+"."+more)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// fields is an object as a map, without its type, which objects from a cache have not.
func fields(object runtime.Object) map[string]any {
	var all map[string]any
	if u, ok := object.(*unstructured.Unstructured); ok {
		all = u.Object
	} else {
		var err error
		if all, err = runtime.DefaultUnstructuredConverter.ToUnstructured(object); err != nil {
			panic(fmt.Errorf("read an object: %w", err)) // a type of the API: cannot fail
		}
	}
	rest := make(map[string]any, len(all))
	for name, value := range all {
		if name != "apiVersion" && name != "kind" {
			rest[name] = value
		}
	}
	return rest
}

// under is the map at a path; empty when there is none.
func under(object map[string]any, path string) map[string]any {
	for name := range strings.SplitSeq(path, ".") {
		object, _ = object[name].(map[string]any)
	}
	return object
}
