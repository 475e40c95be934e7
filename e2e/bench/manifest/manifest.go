// Package manifest turns objects that a program has applied back into what it applied, and writes them as files that kubectl and
// Helm take.
package manifest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Of is an object as the field manager applied it, or created it: the fields that are its own. Of what was created these are
// defaults, too.
func Of(object *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	i := slices.IndexFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager && entry.Subresource == "" && entry.FieldsV1 != nil
	})
	if i < 0 {
		return nil, fmt.Errorf("%s %s/%s has no fields of %s", object.GetKind(), object.GetNamespace(), object.GetName(), manager)
	}
	var fields map[string]any
	if err := json.Unmarshal(object.GetManagedFields()[i].FieldsV1.GetRawBytes(), &fields); err != nil {
		return nil, fmt.Errorf("read the managed fields: %w", err)
	}
	picked, _ := pick(object.Object, fields).(map[string]any)
	applied := &unstructured.Unstructured{Object: picked}
	applied.SetAPIVersion(object.GetAPIVersion())
	applied.SetKind(object.GetKind())
	applied.SetName(object.GetName())
	applied.SetNamespace(object.GetNamespace())
	return applied, nil
}

// pick leaves of a value what the fields name, in the format of FieldsV1: f: is a field, k: the item of a list with these keys,
// v: an item with this value, and "." the map or item itself.
func pick(value any, fields map[string]any) any {
	_, itself := fields["."]
	if len(fields) == 0 {
		return value
	}
	switch value := value.(type) {
	case map[string]any:
		picked := map[string]any{}
		for name, below := range fields {
			if field, is := strings.CutPrefix(name, "f:"); is && value[field] != nil {
				picked[field] = pick(value[field], asMap(below))
			}
		}
		return picked
	case []any:
		var picked []any
		for _, item := range value {
			if one, owned := pickItem(item, fields); owned {
				picked = append(picked, one)
			}
		}
		if picked == nil && itself {
			return []any{}
		}
		return picked
	}
	return value
}

func pickItem(item any, fields map[string]any) (any, bool) {
	for name, below := range fields {
		if text, is := strings.CutPrefix(name, "v:"); is && same(item, decoded(text)) {
			return item, true
		}
		text, is := strings.CutPrefix(name, "k:")
		if !is {
			continue
		}
		matches := true
		for key, want := range asMap(decoded(text)) {
			matches = matches && same(asMap(item)[key], want)
		}
		if matches {
			return pick(item, asMap(below)), true
		}
	}
	return nil, false
}

func decoded(text string) any {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return nil
	}
	return value
}

// same compares what may be numbers of different types.
func same(a, b any) bool {
	return equality.Semantic.DeepEqual(a, b) || fmt.Sprint(a) == fmt.Sprint(b)
}

func asMap(value any) map[string]any {
	m, _ := value.(map[string]any)
	return m
}
