// Package endstate compares how two histories end: what exists, and how much of each kind was made and deleted on the way
// (I13). What must differ from one telling to the next is masked: UIDs, times, versions, tickets, the numbers of slots,
// namespaces, and the hashes of revisions, which become r1, r2 in the order in which the image's
// status told of them.
package endstate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// State is the end of a history.
type State struct {
	// Objects are the masked ones that exist, by their masked key.
	Objects map[string]string
	// Made and Gone count the objects of a resource that were created and deleted.
	Made, Gone map[string]int
}

// compared are the resources whose objects must be those of the reference, and counted those of them whose creations and
// deletions must be, too. The only extras are VolumeSnapshotContents: the snapshotter makes a lost one again, if it comes
// before the operator. Names are derived from what is wanted, so that whoever tries again finds what he made before.
var (
	compared = append([]string{"volumesnapshotcontents"}, counted...)
	counted  = []string{
		"vmdiskimages", "datasyncs", "datavolumes", "persistentvolumeclaims", "volumesnapshots",
		"virtualmachines", "virtualmachines.kubevirt.io", "virtualmachineinstances.kubevirt.io", "secrets",
	}
)

// Of is the state at the end of events.
func Of(events []history.Event) State {
	return of(events, strict(events))
}

// Plain is the state at the end of events without how it came about: no counts, and nothing that tells of attempts,
// losses and former revisions. The revision that an image's spec asks for is called "current".
func Plain(events []history.Event) State {
	s := of(events, plain(events))
	s.Made, s.Gone = nil, nil
	return s
}

func of(events []history.Event, m mask) State {
	s := State{Objects: map[string]string{}, Made: map[string]int{}, Gone: map[string]int{}}
	objects := map[history.Key]client.Object{}
	for _, e := range events {
		if !slices.Contains(compared, resourceOf(e.Key)) || CDIs(e.Key) {
			if e.Resource == "leases" {
				objects[e.Key] = e.Object
			}
			continue
		}
		s.count(e)
		objects[e.Key] = e.Object
		if e.Deleted {
			delete(objects, e.Key)
		}
	}
	texts := map[string][]string{} // names may be the same once they are masked
	for key, object := range objects {
		if text := m.text(object); text != "" {
			name := m.names(resourceOf(key) + " " + key.Name)
			texts[name] = append(texts[name], text)
		}
	}
	for name, list := range texts {
		slices.Sort(list)
		s.Objects[name] = strings.Join(list, "")
	}
	return s
}

func (s State) count(e history.Event) {
	switch {
	case !slices.Contains(counted, resourceOf(e.Key)):
	case e.Deleted:
		s.Gone[resourceOf(e.Key)]++
	case e.Created():
		s.Made[resourceOf(e.Key)]++
	}
}

// resourceOf is the resource, with its group where it is KubeVirt's: one has the name of ours.
func resourceOf(key history.Key) string {
	if key.Group == virtv1.GroupVersion.Group {
		return key.Resource + "." + key.Group
	}
	return key.Resource
}

// CDIs says that an object is CDI's own business: how it fills a claim is not what is compared.
func CDIs(key history.Key) bool {
	return key.Resource == "persistentvolumeclaims" && strings.HasPrefix(key.Name, "prime-")
}

// Diff says what is different from a reference, one line each; nothing when they are the same.
func (s State) Diff(reference State) []string {
	var lines []string
	for _, key := range union(s.Objects, reference.Objects) {
		is, there := s.Objects[key]
		was, expected := reference.Objects[key]
		switch {
		case !there:
			lines = append(lines, "missing: "+key)
		case !expected:
			lines = append(lines, "too much: "+key+"\n"+is)
		case is != was:
			lines = append(lines, "different: "+key+"\n"+difference(is, was))
		}
	}
	lines = append(lines, counts("created", s.Made, reference.Made)...)
	return append(lines, counts("deleted", s.Gone, reference.Gone)...)
}

func counts(what string, is, was map[string]int) []string {
	var lines []string
	for _, resource := range union(is, was) {
		if is[resource] != was[resource] {
			lines = append(lines, fmt.Sprintf("%d %s were %s, and %d in the reference", is[resource], resource, what, was[resource]))
		}
	}
	return lines
}

func union[V any](a, b map[string]V) []string {
	keys := slices.Collect(maps.Keys(a))
	for key := range b {
		if _, both := a[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// difference shows the lines that only one of two texts has.
func difference(is, was string) string {
	var text strings.Builder
	a, b := strings.Split(is, "\n"), strings.Split(was, "\n")
	for _, line := range a {
		if !slices.Contains(b, line) {
			fmt.Fprintln(&text, "  is  "+line)
		}
	}
	for _, line := range b {
		if !slices.Contains(a, line) {
			fmt.Fprintln(&text, "  was "+line)
		}
	}
	return text.String()
}

// revisions that each image's status told of, in that order.
func revisions(events []history.Event) map[history.Key][]string {
	seen := map[history.Key][]string{}
	for _, e := range events {
		image, ok := history.As[*otv1alpha1.VMDiskImage](e)
		if ok && image.Status.Revision != "" && !slices.Contains(seen[e.Key], image.Status.Revision) {
			seen[e.Key] = append(seen[e.Key], image.Status.Revision)
		}
	}
	return seen
}
