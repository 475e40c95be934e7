package plan

import (
	"slices"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// quietly leaves status as it is for a moment, when it was written just now and what there is to tell is one of the steps in
// between. Phase, place in the queue, admission, a deletion and what blocks it are told at once. Members that are only just being
// made have nothing to tell yet: in a moment they have.
func quietly(s Snapshot, set Settings, d *Decision, now time.Time) {
	until := s.ToldAt.Add(set.StatusInterval)
	if makesMembers(s, d) {
		until = now.Add(set.StatusInterval)
	}
	if d.Report.Silent || s.ToldAt.IsZero() || !now.Before(until) || now.Before(s.ToldAt) || matters(s.Workspace, d.Report) {
		return
	}
	d.Report = Report{Silent: true}
	d.WakeAt = earliest(d.WakeAt, until)
}

// makesMembers says that the first members are made, and that nothing has gone wrong with it.
func makesMembers(s Snapshot, d *Decision) bool {
	return len(s.VirtualMachines)+len(s.Deployments)+len(s.Refusals) == 0 && !s.Failing &&
		slices.ContainsFunc(d.Actions, func(a Action) bool {
			return a.Verb == Apply && (a.Kind == VirtualMachine || a.Kind == Deployment)
		})
}

func matters(ws *v1alpha1.Workspace, r Report) bool {
	st := ws.Status
	stalled := meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionStalled)
	ready := meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionReady)
	place := int32(0)
	if st.Queue != nil {
		place = st.Queue.Position
	}
	return st.ObservedGeneration == 0 || ready != r.Ready || stalled != (r.Stalled != nil) || place != int32(r.Position) ||
		(st.AdmittedAt == nil) != (r.AdmittedAt == nil) || (st.ProvisionedAt == nil) != (r.ProvisionedAt == nil) ||
		meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionDeletionBlocked) != (r.Blocked != nil)
}
