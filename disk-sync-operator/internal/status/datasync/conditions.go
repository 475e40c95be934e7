package datasync

import (
	"fmt"
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	plan "github.com/pelotech/open-terrain/disk-sync-operator/internal/plan/datasync"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditions are all three, always: a reader never has to guess what a missing one means.
func conditions(st *v1alpha1.DataSyncStatus, d plan.Decision) []metav1.Condition {
	return []metav1.Condition{readyCondition(st), stalledCondition(st), blockedCondition(d)}
}

func readyCondition(st *v1alpha1.DataSyncStatus) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Message: st.Message}
	switch st.Phase {
	case v1alpha1.DataSyncSucceeded:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonEntriesReady
	case v1alpha1.DataSyncFailed:
		c.Reason = v1alpha1.ReasonEntriesFailed
	case v1alpha1.DataSyncQueued:
		c.Reason = v1alpha1.ReasonQueued
	default:
		c.Reason = v1alpha1.ReasonSyncing
	}
	return c
}

func stalledCondition(st *v1alpha1.DataSyncStatus) metav1.Condition {
	if st.Phase == v1alpha1.DataSyncFailed {
		return metav1.Condition{
			Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonEntriesFailed, Message: st.Message,
		}
	}
	return metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonProgressing}
}

// blockedCondition names the images that are kept, and who uses them.
func blockedCondition(d plan.Decision) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionDeletionBlocked, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNothingBlocked,
	}
	if len(d.Blocked) == 0 {
		return c
	}
	named := make([]string, 0, len(d.Blocked))
	for _, image := range d.Blocked {
		refs := image.Status.References
		text := fmt.Sprintf("%s (virtual machines: %d", image.Name, refs.Count)
		if len(refs.Sample) > 0 {
			text += ", such as " + strings.Join(refs.Sample, ", ")
		}
		named = append(named, text+")")
	}
	c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonInUse
	c.Message = clip("Images of former entries that are in use; each is deleted once it is released: "+strings.Join(named, "; "), maxMessage)
	return c
}

func setCondition(conditions *[]metav1.Condition, c metav1.Condition, generation int64, now metav1.Time) {
	c.ObservedGeneration, c.LastTransitionTime = generation, now
	meta.SetStatusCondition(conditions, c)
}
