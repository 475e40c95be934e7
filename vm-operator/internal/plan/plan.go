// Package plan decides what becomes of one VirtualMachine, and of the references on an image. It is pure: what was read and
// the time come in, a Decision comes out.
//
//	image               claim               disk                   Secret, machine
//	exists, admits us,  it counts us, and   our DataVolume, cloned KubeVirt's, made when       Ready: the guest runs,
//	has an artifact --> is protected -----> from the artifact ---> the disk is there -------> or is not to be started
//	      ^                                      | lost
//	      +--------------------------------------+
//
// Each step has a file, which gives a Verdict (what its condition says) and the actions that it wants. A step that waits
// says why; what comes before decides what the whole waits for.
//
// The laws, for any snapshot:
//
//   - a disk is created only from an image that is ready, admits us, counts us and is protected;
//   - a disk is deleted, or let go, only while no guest runs;
//   - the machine is created only when its disk is there, or waits for its first consumer;
//   - what somebody else owns is not touched;
//   - an instance is deleted only while it waits for a node;
//   - when nothing has to change there is no action, and the report says what status says already.
//
// Failed is no state of its own: it follows from what is wrong now, from how long it has been wrong, and from the deadline. So
// it is left when the cause is gone.
package plan

import (
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// Snapshot is all that one reconcile read; nil where there is nothing.
type Snapshot struct {
	VM *v1alpha1.VirtualMachine
	// NamespaceLabels are those of the VM's namespace, where the image is in another one.
	NamespaceLabels map[string]string
	Image           *v1alpha1.VMDiskImage
	// Counted says that the references of this very image were seen, or made, to include the VM.
	Counted bool
	// Disk and Claim have the name of the VM's child, whoever's they are.
	Disk  *cdiv1.DataVolume
	Claim *corev1.PersistentVolumeClaim

	// CloudInit is the fingerprint of the cloud-init Secret as it shall be; empty where that is not needed yet, or not known.
	CloudInit string
	// Unmakeable is why it is not known: a password is missing.
	Unmakeable *Refusal
	// Passwords are those that the Secret is made of. Nothing is decided by them.
	Passwords map[v1alpha1.SecretKeySelector]string
	Applied   SecretApplied

	// Machine is KubeVirt's VirtualMachine, Instance its VirtualMachineInstance.
	Machine, Instance *unstructured.Unstructured
	// Untaken are fields that the API server did not take from us when they were applied for this generation: applying
	// them again would change nothing, for ever.
	Untaken []string

	// Refusals are what the API server, a webhook or a quota said against an action of this reconcile.
	Refusals map[Child]Refusal
	// Failing is how an action of this reconcile failed that is tried again; empty when none did.
	Failing string
}

// Child is what the operator makes for a VirtualMachine.
type Child string

// The children.
const (
	Image   Child = "VMDiskImage"
	Disk    Child = "DataVolume"
	Secret  Child = "Secret"
	Machine Child = "VirtualMachine"
	// Instance is KubeVirt's own; it is only taken away.
	Instance Child = "VirtualMachineInstance"
)

// Refusal is why a child cannot be made.
type Refusal struct {
	Reason  v1alpha1.VirtualMachineReason
	Message string
}

// Settings are what the decisions depend on besides the Snapshot.
type Settings struct {
	// TroubleDebounce is how long a state that usually passes must last to be a failure.
	TroubleDebounce time.Duration
}

// Action is a change of a child.
type Action string

// The changes of children that there are.
const (
	CreateImage  Action = "CreateImage"
	CreateDisk   Action = "CreateDisk"
	KeepDisk     Action = "KeepDisk"    // gives it our label and finalizer again
	DeleteDisk   Action = "DeleteDisk"  // to clone another one
	ReleaseDisk  Action = "ReleaseDisk" // takes our finalizer off
	ApplySecret  Action = "ApplySecret"
	ApplyMachine Action = "ApplyMachine"
	// DeleteInstance takes away an instance that keeps an older spec, and has never run.
	DeleteInstance Action = "DeleteInstance"
)

// Decision is what to do, in this order, and what status shall say afterwards.
type Decision struct {
	Actions []Action
	Report  Report
	// Doubtful says that something seems to be lost, or is to go: decide again on the API server's own word.
	Doubtful bool
	// WakeAt is when to look again without an event; zero for never.
	WakeAt time.Time
}

// Report is what status shall say; the status package turns it into conditions.
type Report struct {
	// Silent leaves status as it is.
	Silent bool

	Image, Disk, Machine Verdict
	Ready                bool
	// Blocking is what stands between the VM and Ready.
	Blocking Verdict
	// Stalled is why the VM is Failed; nil when it is not.
	Stalled *Verdict

	Mismatch        []string // fields in which the image differs from the template
	RestartRequired string   // why the guest has to be restarted; empty when it need not
	DiskStatus      *v1alpha1.VirtualMachineDiskStatus
	Interfaces      []v1alpha1.VirtualMachineInterfaceStatus
	PrintableStatus string
	ImageStatus     v1alpha1.VirtualMachineImageStatus
	Deadline        *metav1.Time
	TroubledSince   *metav1.Time
}

// Next is the decision for what was read.
func Next(s Snapshot, set Settings, now time.Time) Decision {
	if s.VM.DeletionTimestamp != nil {
		return leaving(s)
	}
	image := imageStep(s)
	disk := diskStep(s, image)
	guest := secretStep(s, disk)
	machine := machineStep(s, disk, guest)
	write, again := secretWrite(s, guest, machine, set, now)
	if write {
		guest.actions = []Action{ApplySecret}
	}

	remove, late := standsInTheWay(s, set, now)

	d := Decision{Doubtful: disk.doubtful || remove}
	for _, step := range []step{image, disk, guest, machine} {
		d.Actions = append(d.Actions, step.actions...)
	}
	if remove {
		d.Actions = append(d.Actions, DeleteInstance)
	}
	d.Report = report(s, image.Verdict, disk, machine.Verdict, now)
	judge(s, set, &d, now)
	d.WakeAt = earliest(d.WakeAt, again, late, passwordAgain(s, machine, now))
	if quiet, until := quietly(s, d, now); quiet {
		d.Report, d.WakeAt = Report{Silent: true}, until
	}
	return d
}

// step is what one of the steps comes to.
type step struct {
	Verdict
	actions []Action
	// doubtful, lost and usable are the disk's: something should be asked live; a disk that was ready is gone; a guest may be
	// given the disk.
	doubtful, lost, usable bool
}

// leaving lets the disk go with its VirtualMachine; the garbage collector does the rest.
func leaving(s Snapshot) Decision {
	d := Decision{Report: Report{Silent: true}}
	if s.Disk != nil && owned(s, s.Disk) && protected(s.Disk) {
		d.Actions = []Action{ReleaseDisk}
	}
	return d
}

func report(s Snapshot, image Verdict, disk step, machine Verdict, now time.Time) Report {
	r := Report{Image: image, Disk: disk.Verdict, Machine: machine}
	r.Ready = machine.Good && (disk.Good || disk.Reason == v1alpha1.ReasonDiskDeleted && guestRuns(s))
	r.Blocking = tryingAgain(s, blocking(s, image, disk.Verdict, machine))
	r.Mismatch = mismatch(s)
	r.RestartRequired = restartRequired(s)
	r.DiskStatus = diskStatus(s, disk, now)
	r.Interfaces = interfaces(s, r.Ready)
	r.PrintableStatus = printable(s, machine)
	r.ImageStatus = imageStatus(s)
	return r
}

// blocking is what the VM waits for: the first of the steps that is not done. An image that is not there matters only to a
// disk that is not there.
func blocking(s Snapshot, image, disk, machine Verdict) Verdict {
	_, refused := s.Refusals[Disk]
	switch {
	case !disk.Good && !image.Good && s.Disk == nil && !refused:
		return image
	case !disk.Good:
		return disk
	}
	return machine
}

// tryingAgain adds how the last try went to what the VM waits for.
func tryingAgain(s Snapshot, v Verdict) Verdict {
	if s.Failing != "" && !v.Good {
		v.Message += ". The last try failed, and is repeated: " + s.Failing
	}
	return v
}

// owned says that the VM controls the object: by UID, never by name or label.
func owned(s Snapshot, child metav1.Object) bool { return metav1.IsControlledBy(child, s.VM) }

// earliest of those that are set.
func earliest(times ...time.Time) time.Time {
	var first time.Time
	for _, t := range times {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}
