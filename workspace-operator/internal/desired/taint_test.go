package desired_test

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/desired"
	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// taints are markers by the path of the field that they were put into: each is a DNS label that is nowhere else.
type taints map[string]string

// fill puts a marker into every text below a value, with one element in each list and map. What shall be a number or a time
// gets one.
func (m taints) fill(path string, v reflect.Value) {
	switch v.Interface().(type) {
	case resource.Quantity:
		v.Set(reflect.ValueOf(resource.MustParse("1")))
		return
	case metav1.Duration, metav1.Time:
		return
	}
	switch v.Kind() {
	case reflect.String:
		marker := fmt.Sprintf("taint%03d", len(m))
		m[marker] = path
		v.SetString(marker)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		m.fill(path, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		m.fill(path+"[]", v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		m.fill(path+"{key}", key)
		m.fill(path+"{value}", value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			m.fill(m.below(path, v.Type().Field(i)), v.Field(i))
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(7)
	}
}

func (m taints) below(path string, field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	if name == "" {
		return path
	}
	return path + "." + name
}

// tainted is a Workspace whose texts are all markers but for its own name and UID, which the API server vouches for.
func tainted(m taints, target bool) *v1alpha1.Workspace {
	w := apitest.Workspace("lab")
	for name, part := range map[string]any{"spec": &w.Spec, "status": &w.Status, "metadata.labels": &w.Labels,
		"metadata.annotations": &w.Annotations, "metadata.finalizers": &w.Finalizers, "metadata.generateName": &w.GenerateName} {
		m.fill(name, reflect.ValueOf(part).Elem())
	}
	w.UID = uid
	if !target {
		w.Spec.TargetNamespace = ""
	}
	return w
}

// variants change what one Workspace cannot be at once: of two fields one wins.
var variants = map[string]func(*v1alpha1.Workspace, taints){
	"all": func(*v1alpha1.Workspace, taints) {},
	"image by its name": func(w *v1alpha1.Workspace, _ taints) {
		w.Spec.VirtualMachines[0].Spec.VMDiskImageRef = nil
	},
	"configMapKeyRef, and no host name": func(w *v1alpha1.Workspace, _ taints) {
		w.Spec.Containers[0].Env[0].ValueFrom.SecretKeyRef = nil
		w.Spec.VirtualMachines[0].Spec.Name = ""
	},
	"a plain value, and no names of ports": func(w *v1alpha1.Workspace, _ taints) {
		w.Spec.Containers[0].Env[0].ValueFrom = nil
		w.Spec.Containers[0].Ports[0].Name = ""
	},
	"addresses": func(w *v1alpha1.Workspace, m taints) {
		w.Spec.Network.Ingress[0].From[0] = v1alpha1.WorkspacePeer{CIDR: "192.0.2.0/24", Except: []string{"192.0.2.128/25"}}
		w.Spec.Network.Egress[0].To[0] = v1alpha1.WorkspacePeer{CIDR: "198.51.100.0/24", Except: []string{"198.51.100.128/25"}}
		m["192.0.2.0/24"], m["192.0.2.128/25"] = "spec.network.ingress[].from[].cidr", "spec.network.ingress[].from[].except[]"
		m["198.51.100.0/24"], m["198.51.100.128/25"] = "spec.network.egress[].to[].cidr", "spec.network.egress[].to[].except[]"
	},
}

var aMarker = regexp.MustCompile(`taint\d{3}`)

// imageSelector is no selector of ours: by it the author of an image says which namespaces may use it.
const imageSelector = "vmDiskImageTemplate.allowedNamespaces.selector"

// Where each text of a Workspace ends is written down in testdata/taint.golden. Many places it never reaches.
func TestTaint(t *testing.T) {
	reached := map[string]bool{}
	for name, change := range variants {
		for _, target := range []bool{true, false} {
			m := taints{}
			w := tainted(m, target)
			change(w, m)
			friend := w.Spec.Network.AllowFrom[0].Workspace
			for _, child := range desired.Children(w, desired.Friends{friend: apitest.Workspace(friend, apitest.WorkspaceUID("uid-friend"))}, desired.DefaultSettings()) {
				walk(child.Object, "", func(path, text string, isKey bool) {
					for marker, from := range m {
						if strings.Contains(text, marker) {
							reached[from+" -> "+child.GetKind()+" "+aMarker.ReplaceAllString(path, "{key}")] = true
							assert.False(t, isKey && !strings.Contains(path, imageSelector), "%s: %s is a key in %s %s", name, from, child.GetKind(), path)
						}
					}
				})
				assertClean(t, child, m)
			}
		}
	}
	got := strings.Join(slices.Sorted(maps.Keys(reached)), "\n") + "\n"
	goldenText(t, "taint.golden", got)
}

// assertClean is the law. What a namespaceSelector holds is the name of a namespace, as the value of the label that the API server
// gives to it.
func assertClean(t *testing.T, child *unstructured.Unstructured, m taints) {
	t.Helper()
	assert.Empty(t, child.GetFinalizers())
	if child.GetKind() == "Namespace" {
		assertUntainted(t, child.Object, m, "a cluster-scoped object")
	}
	meta, _ := child.Object["metadata"].(map[string]any)
	for _, part := range []string{"ownerReferences", "labels", "annotations"} {
		assertUntainted(t, meta[part], m, part)
	}
	eachMap(child.Object, "", func(path string, value map[string]any) {
		switch path[strings.LastIndex(path, ".")+1:] {
		case "selector", "podSelector", "labels":
			if !strings.HasSuffix(path, imageSelector) {
				assertUntainted(t, value, m, path)
			}
		case "namespaceSelector":
			assert.Subset(t, []string{"matchLabels", "matchExpressions"}, slices.Collect(maps.Keys(value)))
			if labels, ok := value["matchLabels"].(map[string]any); ok {
				assert.Equal(t, []string{"kubernetes.io/metadata.name"}, slices.Collect(maps.Keys(labels)))
			}
		}
	})
}

func assertUntainted(t *testing.T, value any, m taints, what string) {
	t.Helper()
	walk(value, "", func(path, text string, _ bool) {
		for marker, from := range m {
			assert.NotContains(t, text, marker, "%s reaches %s: %s", from, what, path)
		}
	})
}

// walk visits each text and each key below a value.
func walk(value any, path string, visit func(path, text string, isKey bool)) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			below := strings.TrimPrefix(path+"."+key, ".")
			visit(below, key, true)
			walk(inner, below, visit)
		}
	case []any:
		for _, inner := range v {
			walk(inner, path+"[]", visit)
		}
	case string:
		visit(path, v, false)
	default:
		visit(path, fmt.Sprint(v), false)
	}
}

// eachMap visits each map that is the value of a key.
func eachMap(value any, path string, visit func(path string, value map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if m, ok := inner.(map[string]any); ok {
				visit(path+"."+key, m)
			}
			eachMap(inner, path+"."+key, visit)
		}
	case []any:
		for _, inner := range v {
			eachMap(inner, path, visit)
		}
	}
}
