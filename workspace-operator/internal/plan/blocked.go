package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// heldTime is how long something may be on its way out before it is told what holds it.
	heldTime = 10 * time.Second
	// foregroundTime is the same for what waits for that which it has made: a guest may take minutes to shut itself down.
	foregroundTime = 5 * time.Minute
)

// blocked names the first object that somebody deleted and that does not go, with the finalizer that holds it; nil when there
// is none. And it says when that may change without an event.
func blocked(v view, now time.Time) (held *Verdict, wakeAt time.Time) {
	for _, r := range leftovers(v) {
		if r.DeletedAt == nil {
			continue
		}
		until := r.DeletedAt.Add(r.patience())
		if now.Before(until) {
			wakeAt = earliest(wakeAt, until)
			continue
		}
		if held == nil {
			held = new(bad(Waits, v1alpha1.WorkspaceHeldByFinalizer, "%s", r.sentence()))
		}
	}
	if held == nil {
		held, wakeAt = namespaceHeld(v, now, wakeAt)
	}
	return held, wakeAt
}

// leftovers are all that is ours and may be on its way out: pods first, for what made them waits for them.
func leftovers(v view) []Remnant {
	all := slices.Clone(v.Remnants)
	for _, child := range v.ownedOf(VirtualMachine, Deployment, Service, NetworkPolicy) {
		live := v.live(child)
		all = append(all, Remnant{Kind: string(child.Kind), Name: child.Name, Finalizers: live.GetFinalizers(), DeletedAt: live.GetDeletionTimestamp()})
	}
	return all
}

// waitsForItsOwn says that nothing holds the object but what it has made.
func (r Remnant) waitsForItsOwn() bool {
	return len(r.Finalizers) > 0 && !slices.ContainsFunc(r.Finalizers, func(f string) bool { return f != metav1.FinalizerDeleteDependents })
}

func (r Remnant) patience() time.Duration {
	if r.waitsForItsOwn() {
		return foregroundTime
	}
	return heldTime
}

func (r Remnant) sentence() string {
	what := fmt.Sprintf("The %s %s was deleted and is still there", r.Kind, r.Name)
	switch {
	case r.waitsForItsOwn():
		return what + ": something that it has made does not go"
	case len(r.Finalizers) == 1:
		return what + ": the finalizer " + r.Finalizers[0] + " holds it"
	case len(r.Finalizers) > 1:
		return what + ": the finalizers " + strings.Join(r.Finalizers, ", ") + " hold it"
	case r.Node != "":
		return what + ": its node " + r.Node + " does not say that it has stopped"
	}
	return what
}

// namespaceHeld reads from our own namespace what the namespace controller says against its end.
func namespaceHeld(v view, now, wakeAt time.Time) (*Verdict, time.Time) {
	if v.Namespace == nil || v.Namespace.DeletionTimestamp == nil || !owned(v.Snapshot, v.Namespace) {
		return nil, wakeAt
	}
	var says []string
	for _, kind := range []corev1.NamespaceConditionType{
		corev1.NamespaceFinalizersRemaining, corev1.NamespaceContentRemaining, corev1.NamespaceDeletionContentFailure,
		corev1.NamespaceDeletionDiscoveryFailure, corev1.NamespaceDeletionGVParsingFailure,
	} {
		for _, c := range v.Namespace.Status.Conditions {
			if c.Type == kind && c.Status == corev1.ConditionTrue {
				says = append(says, c.Message)
			}
		}
	}
	switch until := v.Namespace.DeletionTimestamp.Add(heldTime); {
	case now.Before(until):
		return nil, earliest(wakeAt, until)
	case len(says) == 0:
		return nil, wakeAt
	}
	return new(bad(Waits, v1alpha1.WorkspaceHeldByFinalizer, "The Namespace %s was deleted and is still there: %s", v.Namespace.Name, strings.Join(says, "; "))), wakeAt
}
