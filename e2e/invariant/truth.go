package invariant

import (
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// graph are the ways from phase to phase within a revision. A new revision may begin with Queued, or with Syncing when
// there is a slot at once.
var graph = map[otv1alpha1.Phase][]otv1alpha1.Phase{
	// Failed at once is what the policy does not allow.
	"": {otv1alpha1.PhaseQueued, otv1alpha1.PhaseSyncing, otv1alpha1.PhaseFailed},
	// Succeeded without a download: the spec has gone back to what is there still.
	otv1alpha1.PhaseQueued:       {otv1alpha1.PhaseSyncing, otv1alpha1.PhaseFailed, otv1alpha1.PhaseSucceeded},
	otv1alpha1.PhaseSyncing:      {otv1alpha1.PhaseQueued, otv1alpha1.PhaseSnapshotting, otv1alpha1.PhaseFailed},
	otv1alpha1.PhaseSnapshotting: {otv1alpha1.PhaseSucceeded, otv1alpha1.PhaseQueued, otv1alpha1.PhaseFailed},
	// A lost snapshot is made again. A lost volume is a new revision.
	otv1alpha1.PhaseSucceeded: {otv1alpha1.PhaseSnapshotting},
	// Failed for want of a snapshot only: it may come after all, or its volume may be lost.
	otv1alpha1.PhaseFailed: {otv1alpha1.PhaseSucceeded, otv1alpha1.PhaseQueued},
}

// Truth is I10.
func Truth(s Settings, events []history.Event) []Violation {
	f := &found{invariant: "I10"}
	replay(s, events, func(st *state, e history.Event) {
		image, _ := history.As[*otv1alpha1.VMDiskImage](e)
		if image == nil || len(image.Status.Conditions) == 0 {
			return
		}
		before, _ := history.PrevAs[*otv1alpha1.VMDiskImage](e)
		if before == nil {
			before = &otv1alpha1.VMDiskImage{}
		}
		phases(f, e, before, image)
		conditions(f, e, before, image)
		if becameReady(before, image) {
			ready(f, st, e, image)
		}
	})
	return f.list
}

func phases(f *found, e history.Event, before, image *otv1alpha1.VMDiskImage) {
	from, to := before.Status.Phase, image.Status.Phase
	if derived := otv1alpha1.PhaseOf(image.Status.Conditions); derived != to {
		f.add(e, "phase is %q, and its conditions say %q", to, derived)
	}
	if from == to {
		return
	}
	if before.Status.Revision != image.Status.Revision {
		from = ""
	}
	if !slices.Contains(graph[from], to) {
		f.add(e, "phase goes from %q to %q", from, to)
	}
}

// conditions: a status that was made anew is about the object as it is now, and times move with what they are about.
func conditions(f *found, e history.Event, before, image *otv1alpha1.VMDiskImage) {
	if !equality.Semantic.DeepEqual(before.Status.Conditions, image.Status.Conditions) && image.Status.ObservedGeneration != image.Generation {
		f.add(e, "observedGeneration is %d, and the generation %d", image.Status.ObservedGeneration, image.Generation)
	}
	for _, is := range image.Status.Conditions {
		was := meta.FindStatusCondition(before.Status.Conditions, is.Type)
		if was == nil {
			continue
		}
		if was.Status == is.Status && !was.LastTransitionTime.Equal(&is.LastTransitionTime) {
			f.add(e, "the transition time of %s moves, and its status stays %s", is.Type, is.Status)
		}
		if was.Status != is.Status && is.LastTransitionTime.Before(&was.LastTransitionTime) {
			f.add(e, "the transition time of %s goes back", is.Type)
		}
	}
}

func becameReady(before, image *otv1alpha1.VMDiskImage) bool {
	if !meta.IsStatusConditionTrue(image.Status.Conditions, otv1alpha1.ConditionReady) && image.Status.Phase != otv1alpha1.PhaseSucceeded {
		return false
	}
	return !meta.IsStatusConditionTrue(before.Status.Conditions, otv1alpha1.ConditionReady) ||
		before.Status.Phase != otv1alpha1.PhaseSucceeded && image.Status.Phase == otv1alpha1.PhaseSucceeded ||
		!equality.Semantic.DeepEqual(before.Status.Artifact, image.Status.Artifact)
}

// ready: everything that the artifact needs is there at this very revision.
func ready(f *found, st *state, e history.Event, image *otv1alpha1.VMDiskImage) {
	artifact := image.Status.Artifact
	if artifact == nil {
		f.add(e, "it is ready without an artifact")
		return
	}
	name := types.NamespacedName{Namespace: image.Namespace, Name: artifact.DataVolume}
	if name.Name != "" { // it is not kept
		st.volumeIsThere(f, e, name, image.UID)
	}
	name.Name = artifact.Snapshot
	snapshot := st.snapshots[name]
	switch {
	case snapshot == nil || !metav1.IsControlledBy(snapshot, image):
		f.add(e, "it is ready without a snapshot %s of its own", name)
	case snapshot.Status == nil || !ptr.Deref(snapshot.Status.ReadyToUse, false):
		f.add(e, "it is ready, and its snapshot %s is not ready to use", name)
	case !st.boundBothWays(snapshot):
		f.add(e, "it is ready, and its snapshot %s is not bound both ways", name)
	}
}

func (st *state) volumeIsThere(f *found, e history.Event, name types.NamespacedName, image types.UID) {
	if !st.succeeded(name, image) {
		f.add(e, "it is ready, and its DataVolume %s has not Succeeded", name)
	}
	if claim := st.claims[name]; claim == nil || claim.Status.Phase != corev1.ClaimBound {
		f.add(e, "it is ready, and its claim %s is not bound", name)
	}
}

// ReadyAtEnd is I10 of a history that has come to its end: whoever is Ready has what its artifact names, of whatever
// revision.
func ReadyAtEnd(s Settings, events []history.Event) []Violation {
	f := &found{invariant: "I10"}
	st := replay(s, events, func(*state, history.Event) {})
	for _, image := range st.images {
		if meta.IsStatusConditionTrue(image.Status.Conditions, otv1alpha1.ConditionReady) {
			ready(f, st, last(events), image)
		}
	}
	return f.list
}

func (st *state) succeeded(name types.NamespacedName, image types.UID) bool {
	for _, dv := range st.volumes {
		if dv.Namespace == name.Namespace && dv.Name == name.Name {
			return ownerOf(dv) == image && dv.Status.Phase == cdiv1.Succeeded
		}
	}
	return false
}

func (st *state) boundBothWays(snapshot *snapshotv1.VolumeSnapshot) bool {
	content := st.contents[ptr.Deref(snapshot.Status.BoundVolumeSnapshotContentName, "")]
	return content != nil && content.Spec.VolumeSnapshotRef.UID == snapshot.UID
}
