package trace

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// Objects are how many there are, by resource.
type Objects map[string]int

// Workspaces is what the history says of the children of workspaces, whoever made them.
type Workspaces struct {
	Created Objects `json:"created"`
	// Unisolated are the virtual machines and Deployments that were made in a namespace without a policy.
	Unisolated int `json:"unisolated"`
	// Digest of what the children are, without what the API server chose.
	Digest string `json:"digest"`
	// Pace of the status, where the operator ran.
	Pace *Pace `json:"pace,omitempty"`
}

// JudgeWorkspaces reads a history in which no child is deleted.
func JudgeWorkspaces(events []history.Event) Workspaces {
	found := Workspaces{Created: Objects{}}
	isolated, texts := map[string]bool{}, []string{}
	for _, event := range events {
		namespace := event.Namespace
		if event.Resource == "namespaces" {
			namespace = event.Name
		}
		if !event.Created() || !strings.HasPrefix(namespace, otv1alpha1.WorkspaceNamespace("")) {
			continue
		}
		found.Created[event.Resource]++
		texts = append(texts, textOf(event))
		switch event.Resource {
		case "networkpolicies":
			isolated[namespace] = true
		case "virtualmachines", "deployments":
			if !isolated[namespace] {
				found.Unisolated++
			}
		}
	}
	slices.Sort(texts)
	sum := sha256.Sum256([]byte(strings.Join(texts, "\n")))
	found.Digest = hex.EncodeToString(sum[:])
	return found
}

// textOf is what a child is: its spec, without addresses, and with the same UID in the selectors of all workspaces.
func textOf(event history.Event) string {
	all, err := runtime.DefaultUnstructuredConverter.ToUnstructured(event.Object)
	if err != nil {
		return err.Error()
	}
	spec, _ := all["spec"].(map[string]any)
	for _, chosen := range []string{"clusterIP", "clusterIPs"} {
		delete(spec, chosen)
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		return err.Error()
	}
	text := string(raw)
	if uid := event.Object.GetLabels()[otv1alpha1.LabelWorkspaceUID]; uid != "" {
		text = strings.ReplaceAll(text, uid, "UID")
	}
	return fmt.Sprintf("%s %s %s", event.Resource, event.NamespacedName(), text)
}

// Violations says what makes a run void.
func (w Workspaces) Violations(want Objects) []string {
	var c complaints
	for _, resource := range slices.Sorted(maps.Keys(want)) {
		c.add(w.Created[resource] != want[resource], "%d %s were made, not %d", w.Created[resource], resource, want[resource])
	}
	c.add(w.Unisolated > 0, "%d members were made before a policy", w.Unisolated)
	return c
}

// Pace is how often the status of workspaces was written.
type Pace struct {
	Writes int `json:"writes"`
	// Most is the number of the workspace that had the most.
	Most int `json:"most"`
	// Between are the writes that change neither phase nor admission nor place in the queue; Hasty those of them that came less
	// than a second after the one before.
	Between int `json:"between"`
	Hasty   int `json:"hasty"`
	// Unknown are the workspaces whose writes and requests are not as many: their pace is not known.
	Unknown int `json:"unknown"`
}

// PaceOf reads the history of the statuses; it has no times, so that those of the requests are given, by workspace.
func PaceOf(events []history.Event, written map[string][]time.Time) *Pace {
	between := map[string][]bool{}
	for _, event := range events {
		after, is := history.As[*otv1alpha1.Workspace](event)
		before, was := history.PrevAs[*otv1alpha1.Workspace](event)
		if is && was && !equality.Semantic.DeepEqual(before.Status, after.Status) {
			between[event.Name] = append(between[event.Name], !matters(&before.Status, &after.Status))
		}
	}
	p := &Pace{}
	for name, writes := range between {
		p.Writes, p.Most = p.Writes+len(writes), max(p.Most, len(writes))
		times := written[name]
		if len(times) != len(writes) {
			p.Unknown++
			continue
		}
		for i, isBetween := range writes {
			if !isBetween {
				continue
			}
			p.Between++
			if i > 0 && times[i].Sub(times[i-1]) < time.Second {
				p.Hasty++
			}
		}
	}
	return p
}

// matters says that people wait for this change: it may come at any time.
func matters(before, after *otv1alpha1.WorkspaceStatus) bool {
	for _, condition := range []string{otv1alpha1.ConditionAdmitted, otv1alpha1.ConditionReady, otv1alpha1.ConditionStalled, otv1alpha1.ConditionDeletionBlocked} {
		if meta.IsStatusConditionTrue(before.Conditions, condition) != meta.IsStatusConditionTrue(after.Conditions, condition) {
			return true
		}
	}
	place := func(st *otv1alpha1.WorkspaceStatus) int32 {
		if st.Queue == nil {
			return 0
		}
		return st.Queue.Position
	}
	return before.Phase != after.Phase || place(before) != place(after)
}
