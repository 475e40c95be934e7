package status_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/plan"
	"github.com/pelotech/open-terrain/workspace-operator/internal/status"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	now   = metav1.NewTime(time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC))
	later = metav1.NewTime(now.Add(time.Hour))
)

func ws() *v1alpha1.Workspace {
	w := apitest.Workspace("lab", apitest.Member("db", "db-image"), apitest.Runs("api", "api:1"))
	w.Generation = 3
	return w
}

func yes(reason v1alpha1.WorkspaceReason) plan.Verdict {
	return plan.Verdict{Good: true, Reason: reason, Message: string(reason)}
}

func no(weight plan.Weight, reason v1alpha1.WorkspaceReason, message string) plan.Verdict {
	return plan.Verdict{Reason: reason, Message: message, Weight: weight}
}

// waiting is a report of a workspace whose virtual machine waits for its image; ready one of a workspace that has all.
func waiting(mods ...func(*plan.Report)) plan.Report {
	image := no(plan.Patient, v1alpha1.WorkspaceImagePending, "the image is Queued")
	return made(plan.Report{
		Admitted: yes(v1alpha1.WorkspaceAdmitted), Namespace: yes(v1alpha1.WorkspaceNamespaceReady), Isolated: yes(v1alpha1.WorkspaceIsolated),
		VirtualMachinesReady: image, ContainersReady: yes(v1alpha1.WorkspaceMembersReady), Blocking: image, AdmittedAt: &now,
		VirtualMachines: []plan.Member{{Name: "db", Verdict: image, Phase: v1alpha1.VirtualMachineProvisioning, ImagePhase: v1alpha1.PhaseQueued}},
		Containers:      []plan.Member{{Name: "api", Verdict: yes(v1alpha1.WorkspaceMembersReady)}},
	}, mods)
}

func ready(mods ...func(*plan.Report)) plan.Report {
	all := yes(v1alpha1.WorkspaceMembersReady)
	return made(plan.Report{
		Admitted: yes(v1alpha1.WorkspaceAdmitted), Namespace: yes(v1alpha1.WorkspaceNamespaceReady), Isolated: yes(v1alpha1.WorkspaceIsolated),
		VirtualMachinesReady: all, ContainersReady: all, Blocking: yes(v1alpha1.WorkspaceAllReady), Ready: true, AdmittedAt: &now, ProvisionedAt: &now,
		VirtualMachines: []plan.Member{{Name: "db", Verdict: all, Phase: v1alpha1.VirtualMachineReady, ImagePhase: v1alpha1.PhaseSucceeded}},
		Containers:      []plan.Member{{Name: "api", Verdict: all}},
	}, mods)
}

func made(r plan.Report, mods []func(*plan.Report)) plan.Report {
	r.NamespaceStatus = &v1alpha1.WorkspaceNamespaceStatus{Name: "ws-lab", UID: "uid-ns", Owned: true}
	for _, mod := range mods {
		mod(&r)
	}
	return r
}

func queued(r *plan.Report) {
	wait := no(plan.Patient, v1alpha1.WorkspaceQueued, "number 3 in the queue")
	r.Admitted, r.Blocking, r.AdmittedAt, r.Position, r.Ticket = wait, wait, nil, 3, 77
}

func failed(r *plan.Report) {
	late := no(plan.Final, v1alpha1.WorkspaceProvisioningTimedOut, "Not ready in time")
	r.Stalled, r.ProvisionedAt = &late, &now
}

func blocked(r *plan.Report) {
	held := no(plan.Waits, v1alpha1.WorkspaceHeldByFinalizer, "The Pod p is held by a/b")
	r.Blocked = &held
}

func deleting(r *plan.Report) {
	r.Ready, r.Blocking = false, no(plan.Waits, v1alpha1.WorkspaceDeleting, "It is being deleted")
}

func around(r *plan.Report) {
	r.Isolated = no(plan.Patient, v1alpha1.WorkspaceSecondaryNetworks, "db is on lan")
}

func replacing(r *plan.Report) {
	r.VirtualMachinesReady = no(plan.Waits, v1alpha1.WorkspaceReplacing, "db is made anew")
	r.Ready, r.Blocking = false, r.VirtualMachinesReady
}

func crashing(r *plan.Report) {
	r.Containers[0].Verdict = no(plan.Troubled, v1alpha1.WorkspaceCrashLooping, "it ends again and again")
	r.ContainersReady, r.Blocking = r.Containers[0].Verdict, r.Containers[0].Verdict
}

func TestStatus(t *testing.T) {
	for name, c := range map[string]struct {
		report     plan.Report
		phase      v1alpha1.WorkspacePhase
		ready      string
		stalled    string
		message    string
		vms, pods  string
		isolated   metav1.ConditionStatus
		conditions int
	}{
		"queued":                  {waiting(queued), v1alpha1.WorkspaceProvisioning, "False Queued", "", "number 3 in the queue", "0/1", "1/1", "True", 6},
		"waiting":                 {waiting(), v1alpha1.WorkspaceProvisioning, "False ImagePending", "", "the image is Queued", "0/1", "1/1", "True", 6},
		"failed":                  {waiting(failed), v1alpha1.WorkspaceFailed, "False ImagePending", "True ProvisioningTimedOut", "Not ready in time", "0/1", "1/1", "True", 7},
		"ready":                   {ready(), v1alpha1.WorkspaceReady, "True AllReady", "", "AllReady", "1/1", "1/1", "True", 6},
		"ready, not isolated":     {ready(around), v1alpha1.WorkspaceReady, "True AllReady", "", "AllReady", "1/1", "1/1", "False", 6},
		"ready, a part goes not":  {ready(blocked), v1alpha1.WorkspaceReady, "True AllReady", "", "AllReady", "1/1", "1/1", "True", 7},
		"going, and held":         {ready(deleting, blocked), v1alpha1.WorkspaceProvisioning, "False Deleting", "", "It is being deleted", "1/1", "1/1", "True", 7},
		"a container in a crisis": {waiting(crashing), v1alpha1.WorkspaceProvisioning, "False CrashLooping", "", "it ends again and again", "0/1", "0/1", "True", 6},
	} {
		t.Run(name, func(t *testing.T) {
			st := status.Of(ws(), c.report, now)
			assert.Equal(t, c.phase, st.Phase)
			assert.Equal(t, c.ready, apitest.ConditionOf(st.Conditions, v1alpha1.ConditionReady))
			assert.Equal(t, c.stalled, apitest.ConditionOf(st.Conditions, v1alpha1.ConditionStalled))
			assert.Equal(t, c.message, st.Message)
			assert.Equal(t, []string{c.vms, c.pods}, []string{st.VirtualMachines, st.Containers})
			assert.Equal(t, c.isolated, st.Isolated)
			assert.Len(t, st.Conditions, c.conditions)
			assert.Empty(t, apitest.Wrong(st.Conditions, 3))
			assert.EqualValues(t, 3, st.ObservedGeneration)

			again := ws()
			again.Status = st
			assert.Equal(t, st, status.Of(again, c.report, later), "the same report changes nothing, and no time")
		})
	}
}

func TestMembers(t *testing.T) {
	st := status.Of(ws(), waiting(crashing), now)
	assert.Equal(t, &v1alpha1.WorkspaceResourceStatus{
		VirtualMachines: []v1alpha1.WorkspaceVirtualMachineStatus{{Name: "db", Phase: v1alpha1.VirtualMachineProvisioning, DiskImagePhase: v1alpha1.PhaseQueued, Message: "the image is Queued"}},
		Containers:      []v1alpha1.WorkspaceContainerStatus{{Name: "api", Status: v1alpha1.WorkspaceContainerFailed, Message: "it ends again and again"}},
	}, st.ResourceStatus)
	st = status.Of(ws(), ready(), now)
	assert.Empty(t, st.ResourceStatus.VirtualMachines[0].Message, "nothing is to be said of what is ready")
	assert.Equal(t, v1alpha1.WorkspaceContainerReady, st.ResourceStatus.Containers[0].Status)
	assert.Nil(t, status.Of(ws(), plan.Report{}, now).ResourceStatus)
}

func TestTheQueueIsThereWhileItIsWaitedFor(t *testing.T) {
	w := ws()
	w.Status = status.Of(w, waiting(queued), now)
	assert.Equal(t, &v1alpha1.WorkspaceQueueStatus{Position: 3, Ticket: 77}, w.Status.Queue)
	assert.Nil(t, status.Of(w, waiting(), now).Queue)
}

func TestASilentReportChangesNothing(t *testing.T) {
	w := ws()
	w.Status = status.Of(w, waiting(failed), now)
	w.Generation = 4
	assert.Equal(t, w.Status, status.Of(w, plan.Report{Silent: true}, later))
}

func TestConditionsGoWithTheirCause(t *testing.T) {
	w := ws()
	w.Status = status.Of(w, waiting(failed, blocked), now)
	require.Len(t, w.Status.Conditions, 8)
	st := status.Of(w, waiting(), later)
	assert.Empty(t, apitest.ConditionOf(st.Conditions, v1alpha1.ConditionStalled))
	assert.Empty(t, apitest.ConditionOf(st.Conditions, v1alpha1.ConditionDeletionBlocked))
	assert.Equal(t, v1alpha1.WorkspaceProvisioning, st.Phase)
}

// What others write may be long: the status of 48 members must fit into an object.
func TestLongMessagesAreCut(t *testing.T) {
	long := strings.Repeat("ä", 40_000)
	report := waiting(crashing, func(r *plan.Report) {
		r.Containers[0].Message, r.Blocking.Message, r.ContainersReady.Message = long, long, long
		for len(r.Containers) < 32 {
			r.Containers = append(r.Containers, r.Containers[0])
		}
	})
	st := status.Of(ws(), report, now)
	raw, err := json.Marshal(st)
	require.NoError(t, err)
	assert.Less(t, len(raw), 100_000)
	assert.True(t, strings.HasPrefix(long, st.Message), "no letter is cut in two")
	for _, c := range st.Conditions {
		assert.Less(t, len(c.Message), 32768)
	}
}

func TestConfiguration(t *testing.T) {
	w := ws()
	st := status.Of(w, waiting(queued, failed, blocked), now)
	apply, err := status.Configuration(w, st)
	require.NoError(t, err)
	assert.Equal(t, []string{"lab", "uid-lab", "100"}, []string{*apply.Name, string(*apply.UID), *apply.ResourceVersion})
	want, err := json.Marshal(st)
	require.NoError(t, err)
	got, err := json.Marshal(apply.Status)
	require.NoError(t, err)
	assert.JSONEq(t, string(want), string(got), "no field is forgotten")
}

func TestEvents(t *testing.T) {
	fresh := &v1alpha1.WorkspaceStatus{}
	of := func(r plan.Report) *v1alpha1.WorkspaceStatus {
		st := status.Of(ws(), r, now)
		return &st
	}
	for name, c := range map[string]struct {
		before, after *v1alpha1.WorkspaceStatus
		want          []string
	}{
		"a wait is none":                        {fresh, of(waiting(queued)), nil},
		"admitted":                              {of(waiting(queued)), of(waiting()), []string{"Admitted"}},
		"another wait is none":                  {of(waiting()), of(waiting(crashing)), nil},
		"ready":                                 {of(waiting()), of(ready()), []string{"Ready"}},
		"ready no more":                         {of(ready()), of(waiting()), []string{"NotReady"}},
		"failed":                                {of(waiting()), of(waiting(failed)), []string{"! ProvisioningTimedOut"}},
		"still failed":                          {of(waiting(failed)), of(waiting(failed)), nil},
		"recovering":                            {of(waiting(failed)), of(waiting()), []string{"Recovering"}},
		"a network that goes around":            {of(ready()), of(ready(around)), []string{"! SecondaryNetworks"}},
		"a machine that is made anew":           {of(ready()), of(ready(replacing)), []string{"! Replacing", "NotReady"}},
		"a deletion is no news to its author":   {of(ready()), of(ready(deleting)), nil},
		"a deletion that is held":               {of(ready(deleting)), of(ready(deleting, blocked)), []string{"! DeletionBlocked"}},
		"failed, and then deleted":              {of(waiting(failed)), of(waiting(deleting)), nil},
		"admitted, and failed in the same word": {of(waiting(queued)), of(waiting(failed)), []string{"Admitted", "! ProvisioningTimedOut"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range status.EventsOf(c.before, c.after) {
				mark := ""
				if e.Warning {
					mark = "! "
				}
				got = append(got, mark+e.Reason)
				assert.NotEmpty(t, e.Note)
				assert.NotEmpty(t, e.Action)
			}
			assert.Equal(t, c.want, got)
		})
	}
}
