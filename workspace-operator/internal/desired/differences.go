package desired

import (
	"fmt"
	"slices"
	"strconv"
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
	}
	return paths
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

// Lists are lists as they shall be, in a merge patch; nil when there are none. An apply takes no element away that somebody else
// has added, and is refused where one does not go with ours; a merge patch replaces a list. These are the outermost lists around
// the differences: all of them when the apply was refused, otherwise where there is an element too many.
func Lists(want *unstructured.Unstructured, live runtime.Object, refused bool) map[string]any {
	patch := map[string]any{}
	for _, path := range Differences(want, live) {
		if refused || isList(want.Object, path) {
			outermost, _, _ := strings.Cut(path, "[")
			put(patch, want.Object, strings.Split(outermost, "."))
		}
	}
	if len(patch) == 0 {
		return nil
	}
	return patch
}

// isList says whether a path of the differences leads to a list.
func isList(object any, path string) bool {
	for name := range strings.FieldsFuncSeq(path, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		switch v := object.(type) {
		case map[string]any:
			object = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(v) {
				return false
			}
			object = v[i]
		}
	}
	_, is := object.([]any)
	return is
}

// put copies the list at a path of the spec; what is no list, or elsewhere, is left out.
func put(patch, object map[string]any, path []string) {
	last := len(path) - 1
	list, is := under(object, strings.Join(path[:last], "."))[path[last]].([]any)
	if !is || path[0] != "spec" {
		return
	}
	for _, name := range path[:last] {
		below, is := patch[name].(map[string]any)
		if !is {
			below = map[string]any{}
			patch[name] = below
		}
		patch = below
	}
	patch[path[last]] = list
}
