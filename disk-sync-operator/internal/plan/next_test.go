package plan_test

import (
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// Ways to a state; the operator settles after each step.
var (
	toQueued       = []func(*world){}
	toSyncing      = []func(*world){(*world).admit}
	toImporting    = []func(*world){(*world).admit, (*world).imports}
	toBackingOff   = bad
	toSnapshotting = good[:5]
	toSucceeded    = good
	toFailed       = []func(*world){once, (*world).admit, (*world).mismatch, (*world).gc}
)

// outcome is what a Decision comes to, in words.
type outcome struct {
	stage   plan.Stage
	actions []plan.Action
	release bool
	ended   bool
	starts  bool
	failure v1alpha1.FailureReason
	waits   string
	wake    time.Duration // from now; 0 for never
}

func outcomeOf(d plan.Decision, now time.Time) outcome {
	o := outcome{stage: d.Report.Stage, actions: d.Actions, release: d.ReleaseSlot, ended: d.Ended, starts: d.Report.Starts, waits: d.Report.Waits}
	if d.Report.Failure != nil {
		o.failure = d.Report.Failure.Reason
	}
	if !d.WakeAt.IsZero() {
		o.wake = d.WakeAt.Sub(now)
	}
	return o
}

func does(actions ...plan.Action) []plan.Action { return actions }

type mod func(s *plan.Snapshot)

// retry is the wait before the second attempt of the image with the UID "uid-a", from whole second to whole second.
const retry = 5*time.Minute + 2*time.Second

func slot(s *plan.Snapshot)     { s.Slot = v1alpha1.SlotName(3) }
func noSlot(s *plan.Snapshot)   { s.Slot = "" }
func noVolume(s *plan.Snapshot) { s.DataVolume, s.Claim = nil, nil }
func unseen(s *plan.Snapshot)   { s.SeenUID = "" }
func leaving(s *plan.Snapshot)  { s.DataVolume.DeletionTimestamp = &metav1.Time{Time: epoch} }
func refused(s *plan.Snapshot) {
	s.Refusal = `persistentvolumeclaims "a" is forbidden: exceeded quota: small`
}
func otherSpec(s *plan.Snapshot) { s.Image.Spec.URL += "x" }
func foreign(s *plan.Snapshot)   { s.DataVolume.OwnerReferences = nil }
func former(s *plan.Snapshot)    { s.DataVolume.OwnerReferences[0].UID = "uid-former" }
func lateOne(s *plan.Snapshot)   { s.DataVolume.Annotations[v1alpha1.AnnotationAttempt] = "7" }
func orphanedVS(s *plan.Snapshot) {
	s.VolumeSnapshot.OwnerReferences[0].UID = "uid-former"
}
func foreignVS(s *plan.Snapshot) { s.VolumeSnapshot.OwnerReferences = nil }
func troubled(s *plan.Snapshot) {
	s.VolumeSnapshot.Status = &snapshotv1.VolumeSnapshotStatus{Error: &snapshotv1.VolumeSnapshotError{Message: new("out of order")}}
}
func s3(s *plan.Snapshot) {
	s.Image.Spec.SourceType = v1alpha1.SourceS3
	s.Image.Status.Revision = v1alpha1.RevisionOf(s.Image)
}
func unscheduled(s *plan.Snapshot) {
	c := &s.DataVolume.Status.Conditions[0]
	c.Status, c.Reason, c.Message = "False", "Unschedulable", "Importer pod cannot be scheduled"
}

var table = map[string]struct {
	way  []func(*world)
	mods []mod
	want outcome
}{
	"without a slot, it waits":                      {toQueued, nil, outcome{stage: plan.Queued}},
	"with a slot, it starts":                        {toQueued, []mod{slot}, outcome{stage: plan.Syncing, starts: true, actions: does(plan.CreateDataVolume)}},
	"it syncs, and comes back at the deadline":      {toImporting, nil, outcome{stage: plan.Syncing, wake: 15 * time.Minute}},
	"s3 shows no progress: only the long deadline":  {toImporting, []mod{s3}, outcome{stage: plan.Syncing, wake: 2 * time.Hour}},
	"the slot's Lease is gone":                      {toImporting, []mod{noSlot}, outcome{stage: plan.BackingOff, failure: "Unknown", actions: does(plan.DeleteDataVolume), wake: retry}},
	"the slot comes before all else":                {toImporting, []mod{noSlot, refused, noVolume}, outcome{stage: plan.BackingOff, failure: "Unknown", wake: retry}},
	"the API server refuses the volume":             {toSyncing, []mod{noVolume, unseen, refused}, outcome{stage: plan.BackingOff, ended: true, failure: "QuotaExceeded", release: true, wake: retry}},
	"it crashed before the volume was made":         {toSyncing, []mod{noVolume, unseen}, outcome{stage: plan.Syncing, actions: does(plan.CreateDataVolume)}},
	"the volume was seen, and is gone":              {toSyncing, []mod{noVolume}, outcome{stage: plan.BackingOff, ended: true, failure: "Unknown", release: true, wake: retry}},
	"the name is taken by a stranger":               {toImporting, []mod{foreign}, outcome{stage: plan.BackingOff, ended: true, failure: "Unknown", release: true, wake: retry}},
	"a former image of this name has left a volume": {toImporting, []mod{former}, outcome{stage: plan.Syncing, wake: 2 * time.Hour, waits: "the DataVolume a-" + revisionA + " of a deleted image of the same name must go first"}},
	"the former volume does not go":                 {toImporting, []mod{former, begunLongAgo}, outcome{stage: plan.BackingOff, ended: true, failure: "TimedOut", release: true, wake: retry}},
	"a volume of another attempt came late":         {toImporting, []mod{lateOne}, outcome{stage: plan.Syncing, actions: does(plan.DeleteDataVolume)}},
	"somebody deletes the volume":                   {toImporting, []mod{leaving}, outcome{stage: plan.BackingOff, ended: true, failure: "Unknown", wake: retry}},
	"CDI has Succeeded, the claim is not bound":     {steps(toImporting, []func(*world){(*world).succeeds}), nil, outcome{stage: plan.Syncing, wake: 10 * time.Second}},
	"it waits for a node, for a moment":             {toImporting, []mod{unscheduled}, outcome{stage: plan.Syncing, wake: 10 * time.Second}},
	"no creation succeeds for an age":               {toSyncing, []mod{noVolume, unseen, begunLongAgo}, outcome{stage: plan.BackingOff, ended: true, failure: "TimedOut", release: true, wake: retry}},

	"it waits for the time of the next attempt":   {toBackingOff, nil, outcome{stage: plan.BackingOff, wake: retry}},
	"backing off, it keeps no slot":               {toBackingOff, []mod{slot}, outcome{stage: plan.BackingOff, ended: true, release: true, wake: retry}},
	"its time has come: to the tail of the queue": {toBackingOff, []mod{due}, outcome{stage: plan.Queued}},

	"the snapshot takes its time":                 {toSnapshotting, nil, outcome{stage: plan.Snapshotting, wake: 2 * time.Hour}},
	"the snapshot has trouble":                    {toSnapshotting, []mod{troubled}, outcome{stage: plan.Snapshotting, waits: "out of order", wake: 2 * time.Hour}},
	"there is no snapshot yet":                    {toSnapshotting, []mod{func(s *plan.Snapshot) { s.VolumeSnapshot = nil }}, outcome{stage: plan.Snapshotting, actions: does(plan.CreateSnapshot), wake: 2 * time.Hour}},
	"the snapshot of a former image is there":     {toSnapshotting, []mod{orphanedVS}, outcome{stage: plan.Snapshotting, waits: "the VolumeSnapshot a-" + revisionA + " of a deleted image of the same name must go first", wake: 2 * time.Hour}},
	"the snapshot is a stranger's":                {toSnapshotting, []mod{foreignVS}, outcome{stage: plan.Snapshotting, waits: "a VolumeSnapshot a-" + revisionA + " exists that does not belong to this image: delete or rename it", wake: 2 * time.Hour}},
	"the volume is lost before the snapshot":      {toSnapshotting, []mod{noVolume}, outcome{stage: plan.BackingOff, failure: "Unknown", actions: does(plan.DeleteSnapshot), wake: retry}},
	"it has succeeded, a late slot is given back": {toSucceeded, []mod{slot}, outcome{stage: plan.Succeeded, release: true}},
	"it has succeeded":                            {toSucceeded, nil, outcome{stage: plan.Succeeded}},
	"it has failed":                               {toFailed, nil, outcome{stage: plan.Failed}},
	"it has failed, and still has a slot":         {toFailed, []mod{slot}, outcome{stage: plan.Failed, ended: true, release: true}},

	"another spec while it waits":                  {toQueued, []mod{otherSpec}, outcome{stage: plan.Queued}},
	"another spec while it syncs":                  {toImporting, []mod{otherSpec}, outcome{stage: plan.Syncing, ended: true, actions: does(plan.DeleteDataVolume)}},
	"another spec, the old volume is going":        {toImporting, []mod{otherSpec, leaving}, outcome{stage: plan.Syncing, ended: true}},
	"another spec, the old volume is gone":         {toImporting, []mod{otherSpec, noVolume}, outcome{stage: plan.Syncing, ended: true, release: true}},
	"another spec after a stranger was in the way": {toImporting, []mod{otherSpec, foreign, noSlot}, outcome{stage: plan.Queued}},
	"another spec revives a failed image":          {toFailed, []mod{otherSpec}, outcome{stage: plan.Queued}},
	"another spec leaves the artifact alone":       {toSucceeded, []mod{otherSpec}, outcome{stage: plan.Queued}},
	"a requested sync of a succeeded image":        {toSucceeded, []mod{func(s *plan.Snapshot) { apitest.SyncRequested("now")(s.Image) }}, outcome{stage: plan.Queued}},
}

var revisionA = v1alpha1.RevisionOf(apitest.Image("a"))

func begunLongAgo(s *plan.Snapshot) {
	s.Image.Status.StartedAt = &metav1.Time{Time: epoch.Add(-3 * time.Hour)}
}

func due(s *plan.Snapshot) { s.Image.Status.NextAttemptTime = &metav1.Time{Time: epoch} }

func TestNext(t *testing.T) {
	for name, c := range table {
		t.Run(name, func(t *testing.T) {
			w := newWorld(func(format string, args ...any) { t.Fatalf(format, args...) })
			w.settle()
			for _, step := range c.way {
				step(w)
				w.settle()
			}
			s := w.snapshot()
			for _, m := range c.mods {
				m(&s)
			}
			assert.Equal(t, c.want, outcomeOf(plan.Next(s, w.set, w.now), w.now))
		})
	}
}

func TestANewImage(t *testing.T) {
	s := plan.Snapshot{Image: apitest.Image("a", apitest.ResourceVersion("42")), Ahead: 3}
	d := plan.Next(s, plan.Settings{}, epoch)
	assert.Equal(t, plan.Report{Stage: plan.Queued, Revision: revisionA, Ticket: 42, Ahead: 3}, d.Report)

	s.Slot = v1alpha1.SlotName(0)
	d = plan.Next(s, plan.Settings{}, epoch)
	assert.Equal(t, outcome{stage: plan.Syncing, starts: true, actions: does(plan.CreateDataVolume)}, outcomeOf(d, epoch), "past the queue")
	assert.EqualValues(t, 42, d.Report.Ticket, "and with its ticket")
	assert.EqualValues(t, 1, d.Report.Attempt)
}

func TestWaiting(t *testing.T) {
	w := newWorld(func(format string, args ...any) { t.Fatalf(format, args...) })
	ticket, waits := plan.Waiting(w.image)
	assert.True(t, waits, "an image that nobody has seen yet")
	assert.EqualValues(t, 100, ticket)
	w.settle()
	ticket, waits = plan.Waiting(w.image)
	assert.True(t, waits, "one with a ticket")
	assert.EqualValues(t, 100, ticket, "which stays, whatever the resourceVersion")
	w.admit()
	w.settle()
	_, waits = plan.Waiting(w.image)
	assert.False(t, waits, "one that syncs")
	gone := apitest.Image("b", apitest.Deleted(metav1.Time{Time: epoch}))
	_, waits = plan.Waiting(gone)
	assert.False(t, waits, "one that is being deleted")
}

func TestWaitOf(t *testing.T) {
	pod := func(reason, message string) *corev1.Pod {
		waiting := &corev1.ContainerStateWaiting{Reason: reason, Message: message}
		return &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: waiting}}}}}
	}
	withCA := &cdiv1.DataVolume{Spec: cdiv1.DataVolumeSpec{Source: &cdiv1.DataVolumeSource{HTTP: &cdiv1.DataVolumeSourceHTTP{CertConfigMap: "ca"}}}}
	pending := &cdiv1.DataVolume{}
	pending.Status.Conditions = []cdiv1.DataVolumeCondition{{Type: cdiv1.DataVolumeBound, Status: "False", Reason: "Pending", Message: "PVC a Pending"}}
	cases := map[string]struct {
		dv   *cdiv1.DataVolume
		pod  *corev1.Pod
		want plan.Wait
	}{
		"no volume":                    {},
		"a pod":                        {volume("ImportScheduled", "False", "ErrStartingPod", "Error starting pod 'importer'"), nil, plan.Wait{Message: "Error starting pod 'importer'"}},
		"a node":                       {volume("ImportScheduled", "False", "Unschedulable", "no node"), nil, plan.Wait{Reason: "Unschedulable", Message: "no node"}},
		"an image of the importer":     {&cdiv1.DataVolume{}, pod("ErrImagePull", "denied"), plan.Wait{Message: "the importer pod waits: ErrImagePull: denied"}},
		"a container, as always":       {&cdiv1.DataVolume{}, pod("ContainerCreating", ""), plan.Wait{}},
		"a container that wants a CA":  {withCA, pod("ContainerCreating", ""), plan.Wait{Reason: "SecretMissing", Message: `the importer pod is not being started: is there a ConfigMap "ca"?`}},
		"a claim":                      {pending, nil, plan.Wait{Message: "PVC a Pending"}},
		"nothing, because it is going": {volume("ImportInProgress", "True", "Pod is running", ""), nil, plan.Wait{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, plan.WaitOf(c.dv, c.pod)) })
	}
}
