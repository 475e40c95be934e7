package endstate

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// mask hides what must differ.
type mask struct {
	replace []replacement
	// drop are the paths of fields that are left out, besides those that always are.
	drop [][]string
}

type replacement struct {
	pattern *regexp.Regexp
	by      string
}

var always = []replacement{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(regexp.QuoteMeta(otv1alpha1.DiskSyncSlotPrefix) + `\d+`), otv1alpha1.DiskSyncSlotPrefix + "N"},
	{regexp.MustCompile(`\d+ were ahead`), "N were ahead"},
	{regexp.MustCompile(`\b[0-9a-f]{2}(:[0-9a-f]{2}){5}\b`), "MAC"},
	{regexp.MustCompile(`\b10\.0\.\d+\.\d+\b`), "ADDRESS"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "SERVER"},
}

// random are fields that differ without a pattern. Progress is what was last seen of it.
var random = [][]string{
	{"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "managedFields"}, {"metadata", "generation"}, {"metadata", "creationTimestamp"},
	{"spec", "volumeSnapshotRef", "resourceVersion"}, {"status", "ticket"}, {"status", "progress"}, {"status", "progressAt"},
}

// path are fields of an image that tell how it came to where it is.
var path = [][]string{
	{"status", "attempts"}, {"status", "lastFailure"}, {"status", "lastLoss"}, {"status", "losses"}, {"status", "message"}, {"status", "attemptUID"},
	{"status", "observedGeneration"}, {"status", "startedAt"}, {"status", "references", "lastReferencedAt"},
}

func strict(events []history.Event) mask {
	m := mask{}
	m.addNamespaces(events)
	m.addChildren(events)
	for _, ofImage := range revisions(events) {
		for i, revision := range ofImage {
			m.replace = append(m.replace, replacement{regexp.MustCompile(`\b` + revision + `\b`), fmt.Sprintf("r%d", i+1)})
		}
	}
	return m
}

func plain(events []history.Event) mask {
	m := mask{drop: path}
	m.addNamespaces(events)
	m.addChildren(events)
	current := map[history.Key]string{}
	for _, e := range events {
		if image, ok := history.As[*otv1alpha1.VMDiskImage](e); ok {
			current[e.Key] = otv1alpha1.RevisionOf(image)
		}
	}
	for _, revision := range current {
		m.replace = append(m.replace, replacement{regexp.MustCompile(`\b` + revision + `\b`), "current"})
	}
	return m
}

func (m *mask) addNamespaces(events []history.Event) {
	var seen []string
	for _, e := range events {
		if (e.Resource == "vmdiskimages" || e.Resource == "virtualmachines") && !slices.Contains(seen, e.Namespace) {
			seen = append(seen, e.Namespace)
			m.replace = append(m.replace, replacement{regexp.MustCompile(`\b` + regexp.QuoteMeta(e.Namespace) + `\b`), "NAMESPACE"})
		}
	}
}

// addChildren hides the hashes in the names of what virtual machines have.
func (m *mask) addChildren(events []history.Event) {
	for _, e := range events {
		if vm, ok := history.As[*otv1alpha1.VirtualMachine](e); ok && e.Created() {
			child := regexp.MustCompile(`\b` + regexp.QuoteMeta(otv1alpha1.VirtualMachineChild(vm)) + `\b`)
			m.replace = append(m.replace, replacement{child, vm.Name + "-CHILD"})
		}
	}
}

func (m mask) names(text string) string {
	for _, r := range append(slices.Clone(always), m.replace...) {
		text = r.pattern.ReplaceAllString(text, r.by)
	}
	return text
}

// text of an object with all that matters, as YAML; empty for what does not matter.
func (m mask) text(object client.Object) string {
	if object == nil {
		return ""
	}
	if lease, ok := object.(*coordinationv1.Lease); ok {
		return m.slot(lease)
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err.Error()
	}
	switch object.(type) {
	case *otv1alpha1.VMDiskImage, *otv1alpha1.DataSync, *otv1alpha1.VirtualMachine:
	default:
		raw = essence(raw)
	}
	for _, fields := range append(slices.Clone(random), m.drop...) {
		unstructured.RemoveNestedField(raw, fields...)
	}
	sortConditions(raw)
	m.conditions(raw)
	text, err := yaml.Marshal(m.within(raw)) // masked before: YAML puts what looks like a number into quotes
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// within masks all strings of a value.
func (m mask) within(value any) any {
	switch v := value.(type) {
	case string:
		return m.names(v)
	case []any:
		for i := range v {
			v[i] = m.within(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = m.within(v[key])
		}
	}
	return value
}

// slot is told of when it is held. Slots are made as they are needed, so that one that is free is as good as none.
func (m mask) slot(lease *coordinationv1.Lease) string {
	if !strings.HasPrefix(lease.Name, otv1alpha1.DiskSyncSlotPrefix) || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return ""
	}
	return "held by " + m.names(*lease.Spec.HolderIdentity) + "\n"
}

// essence of what others look after, too: what was asked for, and whether it is there.
func essence(raw map[string]any) map[string]any {
	kept := map[string]any{"kind": raw["kind"], "spec": raw["spec"]}
	for _, fields := range [][]string{
		{"metadata", "labels"}, {"metadata", "ownerReferences"}, {"metadata", "finalizers"}, {"metadata", "deletionTimestamp"},
		{"status", "phase"}, {"status", "readyToUse"}, {"status", "restoreSize"},
	} {
		if value, ok, err := unstructured.NestedFieldNoCopy(raw, fields...); err == nil && ok {
			_ = unstructured.SetNestedField(kept, deepCopy(value), fields...)
		}
	}
	return kept
}

func deepCopy(value any) any {
	raw, _ := json.Marshal(value) // it came from JSON
	var copied any
	_ = json.Unmarshal(raw, &copied)
	return copied
}

func sortConditions(raw map[string]any) {
	conditions, _, _ := unstructured.NestedSlice(raw, "status", "conditions")
	slices.SortFunc(conditions, func(a, b any) int { return strings.Compare(kindOf(a), kindOf(b)) })
	if len(conditions) > 0 {
		_ = unstructured.SetNestedSlice(raw, conditions, "status", "conditions")
	}
}

func kindOf(condition any) string {
	fields, _ := condition.(map[string]any)
	text, _ := fields["type"].(string)
	return text
}

// conditions lose their words and their generations where the way does not matter.
func (m mask) conditions(raw map[string]any) {
	if m.drop == nil {
		return
	}
	conditions, _, _ := unstructured.NestedSlice(raw, "status", "conditions")
	for _, c := range conditions {
		if fields, ok := c.(map[string]any); ok {
			delete(fields, "message")
			delete(fields, "observedGeneration")
		}
	}
	if len(conditions) > 0 {
		_ = unstructured.SetNestedSlice(raw, conditions, "status", "conditions")
	}
}
