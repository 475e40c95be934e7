// Package drift compares what the operator applies with what there is: does the object that the API server holds have all of
// our fields, as we want them? Fields of others are none of our business. The operators that apply objects share it; it is pure.
//
// Three things need care:
//
//   - Numbers of a quantity are compared by value: KubeVirt stores 1.5Gi as 1536Mi.
//   - Lists are compared element by element, and have the same length: those of KubeVirt are atomic. Owner references are a set.
//   - A field that was ours and is no longer wanted is still there, and looks like somebody else's. So each object that is applied
//     carries a hash of the names of its fields (Sealed): another set of fields is another hash, the apply follows, and server-side
//     apply takes away what is left out. Only names go in, because the values are compared anyway, and may be secrets. The record
//     that the API server keeps itself, managedFields, would need no hash: but the cache leaves it out, it being larger than
//     the object.
package drift

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Of are the paths of the fields that are not in live as they are in want; empty when live has all of them.
func Of(want, live map[string]any) []string {
	var paths []string
	walk("", "", want, live, &paths)
	slices.Sort(paths)
	return paths
}

// walk compares one value; key is the last name of its path that is no index.
func walk(path, key string, want, live any, paths *[]string) {
	switch wanted := want.(type) {
	case map[string]any:
		there, ok := live.(map[string]any)
		if !ok {
			*paths = append(*paths, path)
			return
		}
		for name, value := range wanted {
			walk(join(path, name), name, value, there[name], paths)
		}
	case []any:
		walkList(path, key, wanted, live, paths)
	default:
		if !same(key, want, live) {
			*paths = append(*paths, path)
		}
	}
}

func walkList(path, key string, want []any, live any, paths *[]string) {
	there, ok := live.([]any)
	switch {
	case key == "ownerReferences":
		walkOwners(path, want, there, paths)
	case !ok && len(want) > 0, len(want) != len(there):
		*paths = append(*paths, path)
	default:
		for i := range want {
			walk(path+"["+strconv.Itoa(i)+"]", key, want[i], there[i], paths)
		}
	}
}

// walkOwners looks for each owner by its UID.
func walkOwners(path string, want, there []any, paths *[]string) {
	for _, one := range want {
		owner, _ := one.(map[string]any)
		at := slices.IndexFunc(there, func(other any) bool {
			o, ok := other.(map[string]any)
			return ok && o["uid"] == owner["uid"]
		})
		if at < 0 {
			*paths = append(*paths, path)
			return
		}
		walk(path, "", owner, there[at], paths)
	}
}

// same compares two values that are neither map nor list. What is empty is as good as absent: the API server drops it.
func same(key string, want, live any) bool {
	if live == nil {
		return want == nil || want == "" || number(want) == "0"
	}
	if n := number(want); n != "" {
		return n == number(live)
	}
	a, isText := want.(string)
	b, isTextToo := live.(string)
	if isText && isTextToo && a != b && isQuantity(key) {
		return sameQuantity(a, b)
	}
	return equality.Semantic.DeepEqual(want, live)
}

func sameQuantity(a, b string) bool {
	x, err := resource.ParseQuantity(a)
	if err != nil {
		return false
	}
	y, err := resource.ParseQuantity(b)
	return err == nil && x.Cmp(y) == 0
}

// isQuantity says that the field of that name holds a quantity: in KubeVirt's machine, in the resources of a container or of one
// of our own virtual machines.
func isQuantity(key string) bool {
	return slices.Contains([]string{"guest", "cpu", "memory", "storage", "ephemeral-storage", "diskSize"}, key)
}

// number writes a number of whatever type; empty for what is none.
func number(value any) string {
	switch n := value.(type) {
	case int:
		return strconv.Itoa(n)
	case int32:
		return strconv.FormatInt(int64(n), 10)
	case int64:
		return strconv.FormatInt(n, 10)
	case uint32:
		return strconv.FormatUint(uint64(n), 10)
	case float64:
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return ""
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
