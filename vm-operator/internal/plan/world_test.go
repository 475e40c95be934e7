package plan_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/drift"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/desired"
	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
	"github.com/pelotech/open-terrain/vm-operator/internal/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

var epoch = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

var namespaceLabels = map[string]string{corev1.LabelMetadataName: apitest.Namespace}

// settings of all tests.
var settings = plan.Settings{TroubleDebounce: time.Minute}

type vmMod = func(*v1alpha1.VirtualMachine)

// newVM is a virtual machine as the API server holds it: it uses the image "farm/ubuntu".
func newVM(mods ...vmMod) *v1alpha1.VirtualMachine {
	vm := &v1alpha1.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: apitest.Namespace, UID: "uid-web", Generation: 1, ResourceVersion: "100", CreationTimestamp: metav1.NewTime(epoch),
		},
		Spec: v1alpha1.VirtualMachineSpec{
			MachineSpec:    v1alpha1.MachineSpec{RunStrategy: v1alpha1.RunAlways},
			VMDiskImageRef: v1alpha1.VMDiskImageReference{Namespace: "farm", Name: "ubuntu"},
		},
	}
	for _, mod := range mods {
		mod(vm)
	}
	return vm
}

// world is one virtual machine, its image and its children, in memory. Mutators play the disk-sync-operator, the claims, CDI,
// KubeVirt, the garbage collector, people and the clock; reconcile plays the operator. Each write and each mutation is a line
// of the transcript, and the laws of package plan are checked at each write.
type world struct {
	fail func(format string, args ...any) // a broken law
	now  time.Time

	vm       *v1alpha1.VirtualMachine
	image    *v1alpha1.VMDiskImage
	counted  bool
	disk     *cdiv1.DataVolume
	claim    *corev1.PersistentVolumeClaim
	secret   string             // the fingerprint of what was applied; empty without a Secret
	applied  plan.SecretApplied // as the process remembers it
	again    int                // applies that changed nothing
	machine  *unstructured.Unstructured
	instance *unstructured.Unstructured
	refusals map[plan.Child]plan.Refusal // what the API server has against children
	missing  *plan.Refusal               // a password

	uids, writes, crashAt, disks int
	wakeAt                       time.Time
	lines                        []string
}

func newWorld(fail func(string, ...any), mods ...vmMod) *world {
	return &world{fail: fail, now: epoch, vm: newVM(mods...), refusals: map[plan.Child]plan.Refusal{}, uids: 1}
}

func (w *world) line(who, format string, args ...any) {
	at := w.now.Sub(epoch).Truncate(time.Second)
	w.lines = append(w.lines, fmt.Sprintf("%-8s %-9s %s", "+"+at.String(), who, fmt.Sprintf(format, args...)))
}

func (w *world) transcript() string { return strings.Join(w.lines, "\n") + "\n" }

// snapshot is what the operator reads.
func (w *world) snapshot() plan.Snapshot {
	s := plan.Snapshot{
		VM: w.vm.DeepCopy(), Image: w.image.DeepCopy(), Counted: w.counted, NamespaceLabels: namespaceLabels,
		Disk: w.disk.DeepCopy(), Claim: w.claim.DeepCopy(), Unmakeable: w.missing, Applied: w.applied,
	}
	if w.machine != nil {
		s.Machine = w.machine.DeepCopy()
	}
	if w.instance != nil {
		s.Instance = w.instance.DeepCopy()
	}
	if w.missing == nil {
		s.CloudInit = desired.Fingerprint(w.vm, nil)
	}
	return s
}

// reconcile is one run of the operator, and says whether it wrote anything. A crash leaves the rest of it undone.
func (w *world) reconcile() (wrote bool) {
	s := w.snapshot()
	d := plan.Next(s, settings, w.now)
	refusals := map[plan.Child]plan.Refusal{}
	s.Refusals = refusals
	for _, action := range d.Actions {
		if !plan.Possible(s, action) {
			continue
		}
		if refusal, refused := w.refusals[childOf[action]]; refused {
			refusals[childOf[action]] = refusal
			continue
		}
		w.line("operator", "%s", action)
		w.act(s, action)
		if wrote = true; w.dies() {
			return true
		}
	}
	if len(refusals) > 0 {
		d = plan.Next(s, settings, w.now)
	}
	w.wakeAt = d.WakeAt
	next := persisted(status.Of(s.VM, d.Report, metav1.NewTime(w.now)))
	if equality.Semantic.DeepEqual(w.vm.Status, next) {
		return wrote
	}
	w.writeStatus(next)
	w.dies()
	return true
}

var childOf = map[plan.Action]plan.Child{
	plan.CreateImage: plan.Image, plan.CreateDisk: plan.Disk, plan.KeepDisk: plan.Disk, plan.DeleteDisk: plan.Disk,
	plan.ReleaseDisk: plan.Disk, plan.ApplySecret: plan.Secret, plan.ApplyMachine: plan.Machine, plan.DeleteInstance: plan.Instance,
}

func (w *world) dies() bool {
	if w.writes++; w.writes == w.crashAt {
		w.line("operator", "crashes")
		w.applied = plan.SecretApplied{}
		return true
	}
	return false
}

// persisted is the status as it comes back from the API server.
func persisted(st v1alpha1.VirtualMachineStatus) v1alpha1.VirtualMachineStatus {
	raw, err := json.Marshal(st)
	if err != nil {
		panic(err)
	}
	var back v1alpha1.VirtualMachineStatus
	if err := json.Unmarshal(raw, &back); err != nil {
		panic(err)
	}
	return back
}

func (w *world) writeStatus(next v1alpha1.VirtualMachineStatus) {
	if next.Phase != v1alpha1.VirtualMachinePhaseOf(next.Conditions) {
		w.fail("the phase %s is not that of the conditions", next.Phase)
	}
	if wrong := apitest.Wrong(next.Conditions, w.vm.Generation); len(wrong) > 0 {
		w.fail("conditions: %v", wrong)
	}
	if next.Phase == v1alpha1.VirtualMachineReady && (w.machine == nil || w.disk == nil) {
		w.fail("Ready is written without disk or machine")
	}
	before := w.vm.Status
	w.vm.Status = next
	w.line("status", "%s: %s [%s]", next.Phase, next.Message, reasons(next))
	for _, event := range status.EventsOf(&before, &next) {
		w.line("event", "%s", event.Reason)
	}
}

// reasons of the conditions that say how far it is, those that are True with a +.
func reasons(st v1alpha1.VirtualMachineStatus) string {
	all := apitest.ConditionsOf(st.Conditions)
	var words []string
	for _, kind := range []string{v1alpha1.ConditionImageReady, v1alpha1.ConditionDiskReady, v1alpha1.ConditionVirtualMachineReady, v1alpha1.ConditionImageMismatch, v1alpha1.ConditionRestartRequired} {
		if value, reason, _ := strings.Cut(all[kind], " "); value == "True" {
			words = append(words, "+"+reason)
		} else if reason != "" {
			words = append(words, reason)
		}
	}
	return strings.Join(words, " ")
}

// act carries out an action, as the API server would, and checks the laws.
func (w *world) act(s plan.Snapshot, action plan.Action) {
	switch action {
	case plan.CreateImage:
		w.image = desired.Image(w.vm)
		w.image.UID = w.uid("image")
	case plan.CreateDisk:
		w.createDisk()
	case plan.KeepDisk:
		kept := desired.Disk(w.vm, w.anyImage())
		w.disk.Labels, w.disk.Finalizers = kept.Labels, kept.Finalizers
	case plan.DeleteDisk, plan.ReleaseDisk:
		if w.vm.DeletionTimestamp == nil && w.guestRuns() {
			w.fail("%s while a guest runs", action)
		}
		w.mine(w.disk)
		if action == plan.ReleaseDisk {
			w.disk.Finalizers = nil
			break
		}
		w.disk.DeletionTimestamp = &metav1.Time{Time: w.now}
	case plan.ApplySecret:
		made := desired.Fingerprint(w.vm, nil)
		if w.secret == made {
			w.again++
		}
		w.secret, w.applied = made, plan.SecretApplied{Fingerprint: made, At: w.now}
	case plan.DeleteInstance:
		if phase, _, _ := unstructured.NestedString(w.instance.Object, "status", "phase"); phase != "Scheduling" {
			w.fail("an instance is deleted in the phase %s", phase)
		}
		w.instance = nil
	case plan.ApplyMachine:
		w.applyMachine(s)
	}
}

func (w *world) createDisk() {
	if w.disk != nil {
		w.fail("a second disk is created")
	}
	image := w.image
	if image == nil || !image.IsReady() || image.DeletionTimestamp != nil || !image.Admits(w.vm.Namespace, namespaceLabels) {
		w.fail("a disk is created from an image that is not to be cloned")
	}
	if !w.counted || image.Status.References.Count == 0 || !slices.Contains(image.Finalizers, v1alpha1.FinalizerProtection) {
		w.fail("a disk is created without a claim")
	}
	w.disk = desired.Disk(w.vm, image)
	w.disk.UID = w.uid("disk")
	w.disk.SetCreationTimestamp(metav1.NewTime(w.now.Truncate(time.Second)))
	w.claim = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: w.disk.Name}}
	w.claim.Status.Phase = corev1.ClaimPending
	w.disks++
}

func (w *world) applyMachine(s plan.Snapshot) {
	want, err := desired.Machine(w.vm, plan.CloudInitOf(s))
	if err != nil {
		w.fail("machine: %s", err)
	}
	if w.machine == nil {
		if w.secret == "" || w.disk == nil || w.disk.Status.Phase != cdiv1.Succeeded && w.disk.Status.Phase != cdiv1.PendingPopulation {
			w.fail("the machine is made before its disk and its Secret")
		}
		w.machine = drift.Sealed(want)
		w.machine.SetUID(w.uid("machine"))
		w.machine.SetCreationTimestamp(metav1.NewTime(w.now.Truncate(time.Second)))
		return
	}
	w.mine(w.machine)
	sealed := drift.Sealed(want)
	sealed.SetUID(w.machine.GetUID())
	sealed.SetCreationTimestamp(w.machine.GetCreationTimestamp())
	sealed.Object["status"] = w.machine.Object["status"]
	w.machine = sealed
}

func (w *world) mine(child metav1.Object) {
	if !metav1.IsControlledBy(child, w.vm) {
		w.fail("%s is somebody else's", child.GetName())
	}
}

func (w *world) uid(kind string) types.UID {
	w.uids++
	return types.UID(kind + "-" + strconv.Itoa(w.uids))
}

func (w *world) guestRuns() bool {
	if w.instance == nil {
		return false
	}
	phase, _, _ := unstructured.NestedString(w.instance.Object, "status", "phase")
	return phase != "Succeeded" && phase != "Failed"
}

// anyImage is the image, or one that looks like it.
func (w *world) anyImage() *v1alpha1.VMDiskImage {
	if w.image != nil && w.image.Status.Artifact != nil {
		return w.image
	}
	return apitest.Image("ubuntu", apitest.Status(func(st *v1alpha1.VMDiskImageStatus) { st.Artifact = &v1alpha1.Artifact{} }))
}

// settle runs the operator until it has nothing to write.
func (w *world) settle() {
	for range 20 {
		if !w.reconcile() {
			w.silent()
			return
		}
	}
	w.fail("the operator does not settle")
}

// silent: what is settled needs no action.
func (w *world) silent() {
	s := w.snapshot()
	d := plan.Next(s, settings, w.now)
	s.Refusals = w.refusals
	for _, action := range d.Actions {
		if _, refused := w.refusals[childOf[action]]; !refused && plan.Possible(s, action) {
			w.fail("%s in a settled state", action)
		}
	}
}

func (w *world) passes(d time.Duration) { w.now = w.now.Add(d) }

// sleeps until the operator wants to be woken.
func (w *world) sleeps() {
	if w.wakeAt.After(w.now) {
		w.now = w.wakeAt
		w.line("clock", "wakes the operator")
	}
}

// heals takes away whatever stands in the way.
func (w *world) heals() {
	maps.DeleteFunc(w.refusals, func(plan.Child, plan.Refusal) bool { return true })
	w.missing = nil
}
