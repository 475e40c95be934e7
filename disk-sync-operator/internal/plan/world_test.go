package plan_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/desired"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

var epoch = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// world is one image with its children and its slot, in memory. Mutators play admission, CDI, the snapshotter, the garbage
// collector, people and the clock; reconcile plays the operator. Each write and each mutation is a line of the
// transcript, and the law of package plan is checked at each write.
type world struct {
	fail func(format string, args ...any) // a broken law
	now  time.Time
	set  plan.Settings

	image *v1alpha1.VMDiskImage
	slot  string
	ended bool // the slot is marked as ending
	seen  types.UID
	children
	name    string              // of the children that are looked at
	others  map[string]children // of other revisions
	refusal string              // what the API server has against children

	uids    int
	created map[string]int // DataVolumes by revision
	most    int            // the highest number of attempts that the policy ever allowed
	writes  int
	crashAt int // the operator dies after this write
	wakeAt  time.Time
	lines   []string
}

// children of one revision.
type children struct {
	dv      *cdiv1.DataVolume
	claim   *corev1.PersistentVolumeClaim
	vs      *snapshotv1.VolumeSnapshot
	content *snapshotv1.VolumeSnapshotContent
	clone   string // a DataVolume that is being cloned from them
	filled  bool   // the volume was complete once: what CDI does with it after that is its own affair
}

// focus looks at the children of the revision that comes next.
func (w *world) focus() {
	delete(w.others, "")
	if child := v1alpha1.ChildName(w.image.Name, plan.Revision(w.image)); child != w.name {
		w.others[w.name] = w.children
		w.children, w.name = w.others[child], child
		delete(w.others, child)
	}
}

func newWorld(fail func(string, ...any), mods ...apitest.ImageMod) *world {
	w := &world{fail: fail, now: epoch, image: apitest.Image("a", mods...), created: map[string]int{}, others: map[string]children{}, uids: 1}
	w.set = plan.Settings{Policy: policy.Default(), ProgressInterval: 10 * time.Second}
	w.most = w.set.Policy.MaxAttempts()
	return w
}

func (w *world) line(who, format string, args ...any) {
	at := w.now.Sub(epoch).Truncate(time.Second)
	w.lines = append(w.lines, fmt.Sprintf("%-10s %-9s %s", "+"+at.String(), who, fmt.Sprintf(format, args...)))
}

func (w *world) transcript() string { return strings.Join(w.lines, "\n") + "\n" }

// snapshot is what the operator's caches show.
func (w *world) snapshot() plan.Snapshot {
	s := plan.Snapshot{Image: w.image.DeepCopy(), Slot: w.slot, Ending: w.ended, Tail: w.rv(), Ahead: 2}
	w.focus()
	if w.dv != nil {
		s.DataVolume, s.Claim = w.dv.DeepCopy(), w.claim.DeepCopy()
		if w.dv.Annotations[v1alpha1.AnnotationAttempt] == strconv.Itoa(int(w.image.Status.Attempts)) && w.dv.Status.Phase != cdiv1.Succeeded {
			w.seen = w.dv.UID
		}
	}
	s.VolumeSnapshot, s.Content = w.vs.DeepCopy(), w.content.DeepCopy()
	s.SeenUID, s.Clone = w.seen, w.clone
	for _, name := range slices.Sorted(maps.Keys(w.others)) {
		other := w.others[name]
		if other.dv != nil {
			s.Others = append(s.Others, plan.Child{Object: other.dv.DeepCopy(), Clone: other.clone})
		}
		if other.vs != nil {
			s.Others = append(s.Others, plan.Child{Object: other.vs.DeepCopy(), Clone: other.clone})
		}
	}
	return s
}

func (w *world) rv() int64 {
	rv, _ := strconv.ParseInt(w.image.ResourceVersion, 10, 64)
	return rv
}

// reconcile is one run of the operator, and says whether it wrote anything. A crash leaves the rest of it undone.
func (w *world) reconcile() bool {
	s := w.snapshot()
	d := plan.Next(s, w.set, w.now)
	wrote := w.carryOut(s, d)
	if w.refusal != "" && creates(d) {
		s.Image, s.Refusal = w.image.DeepCopy(), w.refusal
		d = plan.Next(s, w.set, w.now)
		wrote = w.carryOut(s, d) || wrote
	}
	w.wakeAt = d.WakeAt
	return wrote
}

func creates(d plan.Decision) bool {
	for _, a := range d.Actions {
		if a == plan.CreateDataVolume || a == plan.CreateSnapshot {
			return true
		}
	}
	return false
}

func (w *world) carryOut(s plan.Snapshot, d plan.Decision) (wrote bool) {
	next := persisted(status.Of(s.Image, d.Report, w.set.Policy.MaxAttempts(), metav1.NewTime(w.now)))
	name := w.name
	var steps []func()
	if !equality.Semantic.DeepEqual(w.image.Status, next) {
		steps = append(steps, func() { w.writeStatus(s, next) })
	}
	if d.Ended && !w.ended {
		steps = append(steps, w.end)
	}
	for _, action := range d.Actions {
		if w.refusal != "" && (action == plan.CreateDataVolume || action == plan.CreateSnapshot) {
			continue
		}
		steps = append(steps, func() { w.on(name, func() { w.act(action) }) })
	}
	for _, obsolete := range d.Obsolete {
		steps = append(steps, func() { w.drop(obsolete) })
	}
	if d.ReleaseSlot {
		steps = append(steps, w.release)
	}
	for _, step := range steps {
		step()
		w.writes++
		wrote = true
		if w.writes == w.crashAt {
			w.seen = ""
			w.line("operator", "crashes")
			return true
		}
	}
	return wrote
}

// persisted is the status as it comes back from the API server.
func persisted(st v1alpha1.VMDiskImageStatus) v1alpha1.VMDiskImageStatus {
	raw, err := json.Marshal(st)
	if err != nil {
		panic(err)
	}
	var back v1alpha1.VMDiskImageStatus
	if err := json.Unmarshal(raw, &back); err != nil {
		panic(err)
	}
	return back
}

func (w *world) writeStatus(s plan.Snapshot, next v1alpha1.VMDiskImageStatus) {
	stage := plan.StageOf(&next)
	if stage == plan.Syncing && w.slot == "" {
		w.fail("Syncing is written without a slot")
	}
	if stage == plan.Succeeded && plan.StageOf(&w.image.Status) != stage && !w.complete() {
		w.fail("Succeeded is written without all of it being there")
	}
	if next.Phase != v1alpha1.PhaseOf(next.Conditions) {
		w.fail("the phase %s is not that of the conditions", next.Phase)
	}
	if wrong := apitest.Wrong(next.Conditions, s.Image.Generation); len(wrong) > 0 {
		w.fail("conditions: %v", wrong)
	}
	if want := 4 + len(reconciling(next)); len(next.Conditions) != want {
		w.fail("%d conditions instead of %d", len(next.Conditions), want)
	}
	before := w.image.Status
	if before.Revision != next.Revision {
		w.created[next.Revision] = 0 // a change of the spec begins anew
	}
	w.readyIsTrue(next)
	w.image.Status = next
	w.focus()
	w.touch()
	w.line("status", "%s/%s%s: %s", next.Phase, stage, shown(next.Progress), next.Message)
	if event, is := status.EventOf(&before, &next); is {
		w.line("event", "%s", event.Reason)
	}
}

// reconciling is there while there is an artifact and another one is on its way.
func reconciling(st v1alpha1.VMDiskImageStatus) []string {
	if st.Artifact != nil && st.Artifact.Revision != st.Revision && st.Phase != v1alpha1.PhaseFailed {
		return []string{v1alpha1.ConditionReconciling}
	}
	return nil
}

// readyIsTrue: what is Ready can be cloned, at the moment when it is said.
func (w *world) readyIsTrue(next v1alpha1.VMDiskImageStatus) {
	if !meta.IsStatusConditionTrue(next.Conditions, v1alpha1.ConditionReady) {
		return
	}
	of := w.children
	if next.Artifact.Snapshot != w.name {
		of = w.others[next.Artifact.Snapshot]
	}
	if !of.ready() {
		w.fail("Ready is written and its snapshot %s is not", next.Artifact.Snapshot)
	}
}

func (c children) ready() bool {
	return c.vs != nil && c.vs.DeletionTimestamp == nil && c.vs.Status != nil && ptr.Deref(c.vs.Status.ReadyToUse, false) && c.content != nil
}

func (w *world) touch() { w.image.ResourceVersion = strconv.FormatInt(w.rv()+1, 10) }

// complete: snapshot ready and bound both ways, of a volume that was filled and bound.
func (w *world) complete() bool { return w.ready() && w.filled }

// on looks at the children of that name while something is done to them.
func (w *world) on(name string, do func()) {
	current, own := w.name, w.children
	if name != current {
		w.name, w.children = name, w.others[name]
		defer func() {
			w.others[name] = w.children
			w.name, w.children = current, own
		}()
	}
	do()
}

func (w *world) act(action plan.Action) {
	w.line("operator", "%s", action)
	stage := plan.StageOf(&w.image.Status)
	deletes := action == plan.DeleteDataVolume || action == plan.DeleteSnapshot
	if artifact := w.image.Status.Artifact; deletes && artifact != nil && (artifact.DataVolume == w.name || artifact.Snapshot == w.name && action == plan.DeleteSnapshot) && w.ready() && w.whole() {
		w.fail("%s of the artifact that virtual machines clone from", action)
	}
	if deletes && w.clone != "" && w.ready() && w.whole() {
		w.fail("%s while %s is being cloned from it", action, w.clone)
	}
	switch action {
	case plan.CreateDataVolume:
		w.create(stage)
	case plan.DeleteDataVolume:
		current := w.dv.Annotations[v1alpha1.AnnotationAttempt] == strconv.Itoa(int(w.image.Status.Attempts))
		if stage == plan.Syncing && current && w.image.Status.Revision == v1alpha1.RevisionOf(w.image) {
			w.fail("the DataVolume of a running attempt is deleted and its failure is not in status")
		}
		if current && !w.whole() && w.slot != "" && !w.ended {
			w.fail("the DataVolume of an attempt is deleted and its slot is not marked as ending")
		}
		if stage == plan.Succeeded && w.image.Status.Artifact.DataVolume != "" {
			w.fail("the volume of a Succeeded image is deleted")
		}
		w.dv.DeletionTimestamp = new(metav1.NewTime(w.now))
	case plan.CreateSnapshot:
		if w.vs == nil {
			w.vs = desired.VolumeSnapshot(w.image)
			w.vs.UID = w.uid("vs")
		}
	case plan.DeleteSnapshot:
		w.vs, w.content = nil, nil
	case plan.LabelDataVolume:
		w.dv.Labels = map[string]string{v1alpha1.LabelImage: string(w.image.UID)}
	case plan.LabelSnapshot:
		w.vs.Labels = map[string]string{v1alpha1.LabelImage: string(w.image.UID)}
	}
}

// drop deletes a child of another revision.
func (w *world) drop(child metav1.Object) {
	name := child.GetName()
	other := w.others[name]
	_, isVolume := child.(*cdiv1.DataVolume)
	w.line("operator", "deletes the former %s", map[bool]string{true: "DataVolume", false: "VolumeSnapshot"}[isVolume])
	if artifact := w.image.Status.Artifact; artifact != nil && artifact.Snapshot == name && !isVolume {
		w.fail("the artifact %s is deleted", name)
	}
	if other.clone != "" && other.whole() {
		w.fail("%s is deleted while %s is being cloned from it", name, other.clone)
	}
	if isVolume {
		other.dv, other.claim = nil, nil
	} else {
		other.vs, other.content = nil, nil
	}
	w.others[name] = other
}

// whole says that there is no volume that is not complete.
func (c children) whole() bool { return c.dv == nil || c.dv.Status.Phase == cdiv1.Succeeded }

func (w *world) create(stage plan.Stage) {
	if w.slot == "" || stage != plan.Syncing {
		w.fail("a DataVolume is created with slot %q in stage %s", w.slot, stage)
	}
	if w.dv != nil {
		return // already exists
	}
	if w.ended {
		w.fail("a DataVolume is created under a slot whose attempt has ended")
	}
	w.dv = desired.DataVolume(w.image, w.slot)
	w.dv.UID, w.dv.CreationTimestamp = w.uid("dv"), metav1.NewTime(w.now)
	w.seen = w.dv.UID
	w.claim = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: w.dv.Name, UID: w.uid("pvc"),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.dv, cdiv1.SchemeGroupVersion.WithKind("DataVolume"))},
	}}
	w.claim.Status.Phase = corev1.ClaimPending
	w.filled = false
	w.created[w.image.Status.Revision]++
	if n := w.created[w.image.Status.Revision]; n > w.most || n > int(w.image.Status.Attempts) {
		w.fail("%d DataVolumes, with %d attempts in status and at most %d allowed", n, w.image.Status.Attempts, w.most)
	}
}

func (w *world) uid(kind string) types.UID {
	w.uids++
	return types.UID(kind + "-" + strconv.Itoa(w.uids))
}

func (w *world) release() {
	if w.dv != nil && w.dv.Status.Phase != cdiv1.Succeeded && !w.filled {
		w.fail("the slot is released and the DataVolume is neither Succeeded nor gone")
	}
	for name, c := range w.others {
		if c.dv != nil && c.dv.Status.Phase != cdiv1.Succeeded && !c.filled {
			w.fail("the slot is released and the DataVolume %s is neither Succeeded nor gone", name)
		}
	}
	w.line("operator", "releases the slot")
	w.slot, w.ended, w.seen = "", false, ""
}

// end marks the slot: the API server lets nothing begin under it any more.
func (w *world) end() {
	if w.slot == "" {
		w.fail("there is no slot to be marked as ending")
	}
	w.line("operator", "marks the slot as ending")
	w.ended = true
}

// settle runs the operator until it has nothing to write, and says in how many runs.
func (w *world) settle() {
	for range 20 {
		if !w.reconcile() {
			return
		}
	}
	w.fail("the operator does not settle")
}

// Mutators.

func (w *world) admit() {
	if _, waits := plan.Waiting(w.image); waits && w.slot == "" {
		w.slot = v1alpha1.SlotName(0)
		w.line("admission", "gives %s", w.slot)
	}
}

// cdi sets phase and Running condition of the DataVolume, if there is one that CDI still works on.
func (w *world) cdi(phase cdiv1.DataVolumePhase, running corev1.ConditionStatus, reason, message string) {
	if w.dv == nil || w.dv.DeletionTimestamp != nil || w.dv.Status.Phase == cdiv1.Succeeded {
		return
	}
	w.line("cdi", "%s, Running=%s %q %q", phase, running, reason, message)
	c := cdiv1.DataVolumeCondition{Type: cdiv1.DataVolumeRunning, Status: running, Reason: reason, Message: message}
	c.LastTransitionTime = metav1.NewTime(w.now)
	w.dv.Status.Phase, w.dv.Status.Conditions = phase, []cdiv1.DataVolumeCondition{c}
	if phase == cdiv1.Succeeded {
		w.dv.Status.Progress = "100.0%"
	}
}

func (w *world) imports()   { w.cdi(cdiv1.ImportInProgress, "True", "Pod is running", "") }
func (w *world) succeeds()  { w.cdi(cdiv1.Succeeded, "False", "Completed", "Import Complete") }
func (w *world) notFound()  { w.cdi(cdiv1.ImportInProgress, "False", "Error", message404) }
func (w *world) mismatch()  { w.cdi(cdiv1.Failed, "False", "ChecksumError", messageChecksum) }
func (w *world) scheduled() { w.cdi(cdiv1.ImportScheduled, "False", "ContainerCreating", "") }
func (w *world) scratch() {
	w.cdi(cdiv1.ImportInProgress, "False", "Scratch space required", "scratch space required and none found")
}

func (w *world) progress(shown string) {
	if w.dv != nil && w.dv.DeletionTimestamp == nil && w.dv.Status.Phase != cdiv1.Succeeded {
		w.dv.Status.Progress = cdiv1.DataVolumeProgress(shown)
		w.line("cdi", "shows %s", shown)
	}
}

func (w *world) binds() {
	if w.dv != nil && w.dv.Status.Phase == cdiv1.Succeeded && w.claim.Status.Phase != corev1.ClaimBound {
		w.claim.Status.Phase = corev1.ClaimBound
		w.filled = true
		w.line("cdi", "the claim is bound")
	}
}

func (w *world) snapshotter() {
	if w.vs == nil || w.vs.DeletionTimestamp != nil || w.vs.Status != nil || !w.bound() {
		return
	}
	w.line("snapshot", "is ready")
	w.vs.Status = &snapshotv1.VolumeSnapshotStatus{
		ReadyToUse: new(true), BoundVolumeSnapshotContentName: new("content-" + string(w.vs.UID)),
		RestoreSize: new(resource.MustParse("1100Mi")),
	}
	w.content = &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: "content-" + string(w.vs.UID)}}
	w.content.Spec.VolumeSnapshotRef.UID = w.vs.UID
}

func (w *world) bound() bool { return w.claim != nil && w.claim.Status.Phase == corev1.ClaimBound }

// gc ends what is being deleted.
func (w *world) gc() {
	for _, name := range slices.Sorted(maps.Keys(w.others)) {
		w.on(name, w.collect)
	}
	w.collect()
}

func (w *world) collect() {
	if w.dv != nil && w.dv.DeletionTimestamp != nil {
		w.line("gc", "the DataVolume is gone")
		w.dv, w.claim = nil, nil
	}
	if w.vs != nil && w.vs.DeletionTimestamp != nil {
		w.line("gc", "the VolumeSnapshot is gone")
		w.vs, w.content = nil, nil
	}
}

// What other people do.

func (w *world) deletesSnapshot() {
	if w.vs != nil && w.vs.DeletionTimestamp == nil {
		w.vs.DeletionTimestamp = &metav1.Time{Time: w.now}
		w.line("user", "deletes the VolumeSnapshot")
	}
}

func (w *world) deletesContent() {
	if w.vs != nil && w.content != nil {
		w.content = nil
		w.vs.Status.ReadyToUse = new(false)
		w.line("user", "deletes the VolumeSnapshotContent")
	}
}

func (w *world) deletesVolume() {
	if w.dv != nil && w.dv.DeletionTimestamp == nil {
		w.dv.DeletionTimestamp = &metav1.Time{Time: w.now}
		w.line("user", "deletes the DataVolume")
	}
}

// deletesClaim has CDI make it again, and import again.
func (w *world) deletesClaim() {
	if w.dv != nil && w.dv.DeletionTimestamp == nil && w.filled {
		w.claim.UID, w.claim.Status.Phase = w.uid("pvc"), corev1.ClaimPending
		w.line("user", "deletes the claim")
		w.dv.Status.Phase = cdiv1.ImportScheduled
	}
}

func (w *world) stripsLabels() {
	w.line("user", "strips the labels")
	if w.dv != nil {
		w.dv.Labels = nil
	}
	if w.vs != nil {
		w.vs.Labels = nil
	}
}

func (w *world) clones() {
	if w.ready() {
		w.clone = "vms/clone"
		w.line("user", "begins to clone")
	}
}

func (w *world) cloned() {
	if w.clone != "" {
		w.line("cdi", "has cloned")
	}
	w.clone = ""
	for name, other := range w.others {
		other.clone = ""
		w.others[name] = other
	}
}

func (w *world) volumes(policy v1alpha1.VolumePolicy) func() {
	return func() { w.changesSpec(func(s *v1alpha1.VMDiskImageSpec) { s.VolumePolicy = policy }) }
}

func (w *world) passes(d time.Duration) { w.now = w.now.Add(d) }

// sleeps until the operator wants to be woken.
func (w *world) sleeps() {
	if w.wakeAt.After(w.now) {
		w.now = w.wakeAt.Add(time.Second).Truncate(time.Second)
		w.line("clock", "wakes the operator")
	}
}

func (w *world) changesSpec(change func(*v1alpha1.VMDiskImageSpec)) {
	change(&w.image.Spec)
	w.image.Generation++
	w.touch()
	w.line("user", "changes the spec")
}

func shown(progress string) string {
	if progress == "" {
		return ""
	}
	return " (" + progress + ")"
}
