package claims_test

import (
	"strings"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/demo/claims"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// ready is a status that can be cloned from a revision.
func ready(phase otv1alpha1.Phase, revision string) otv1alpha1.VMDiskImageStatus {
	return otv1alpha1.VMDiskImageStatus{
		Phase: phase, Artifact: &otv1alpha1.Artifact{Revision: revision, Snapshot: "a-" + revision},
		Conditions: []metav1.Condition{{Type: otv1alpha1.ConditionReady, Status: metav1.ConditionTrue}},
	}
}

func snapshot(name string) *snapshotv1.VolumeSnapshot {
	return &snapshotv1.VolumeSnapshot{ObjectMeta: meta(name), Status: &snapshotv1.VolumeSnapshotStatus{ReadyToUse: new(true)}}
}

func lost(kind otv1alpha1.LossKind) otv1alpha1.VMDiskImageStatus {
	status := ready(otv1alpha1.PhaseSucceeded, "1")
	status.LastLoss = &otv1alpha1.Loss{Kind: kind, Name: "a-1"}
	return status
}

// run is a history of its own, in which "a" has been downloaded once.
func run(tell func(*story)) claims.Run {
	r := told(tell)()
	r.Counted = map[types.NamespacedName]claims.Count{key("a"): {Whole: 1}}
	return r
}

func updatedOf(r claims.Run) claims.Verdict { return claims.Updated(r, key("a")) }
func healedOf(r claims.Run) claims.Verdict  { return claims.Healed(r, key("a")) }
func syncedOf(r claims.Run) claims.Verdict  { return claims.Synced(r, key("set")) }

func refusedOf(refusal string) func(claims.Run) claims.Verdict {
	return func(r claims.Run) claims.Verdict {
		return claims.Refused(r, claims.Life{InUse: key("a"), Refusal: refusal})
	}
}

func set(phase otv1alpha1.DataSyncPhase) *otv1alpha1.DataSync {
	s := &otv1alpha1.DataSync{ObjectMeta: meta("set")}
	s.Status.Phase, s.Status.Entries = phase, []otv1alpha1.DataSyncEntry{{Name: "one", Image: "a"}}
	return s
}

func TestClaimsAboutLaterHoldOrDoNot(t *testing.T) {
	updating := ready(otv1alpha1.PhaseSyncing, "1")
	for name, c := range map[string]struct {
		claim func(claims.Run) claims.Verdict
		tell  func(*story)
		want  string // empty: it holds
	}{
		"an update beside the former revision": {updatedOf, func(s *story) {
			s.put(snapshot("a-1"))
			s.image("a", ready(otv1alpha1.PhaseSucceeded, "1"))
			s.image("a", updating)
			s.put(snapshot("a-2"))
			s.image("a", ready(otv1alpha1.PhaseSucceeded, "2"))
			s.remove(snapshot("a-1"))
		}, ""},
		"an update that leaves nothing to clone for a while": {updatedOf, func(s *story) {
			s.image("a", ready(otv1alpha1.PhaseSucceeded, "1"))
			s.image("a", syncing(1))
			s.image("a", ready(otv1alpha1.PhaseSucceeded, "2"))
		}, "lab/a could not be cloned"},
		"an update that leaves the former snapshot behind": {updatedOf, func(s *story) {
			s.put(snapshot("a-1"))
			s.image("a", ready(otv1alpha1.PhaseSucceeded, "1"))
			s.image("a", ready(otv1alpha1.PhaseSucceeded, "2"))
		}, "a-1 is still there"},
		"no update": {updatedOf, func(s *story) { s.image("a", ready(otv1alpha1.PhaseSucceeded, "1")) }, "had 1 revisions to clone from"},
		"a snapshot made again": {healedOf, func(s *story) {
			s.put(volume("a", 1, cdiv1.Succeeded))
			s.image("a", lost(otv1alpha1.LostSnapshot))
		}, ""},
		"a loss that nobody has noticed": {healedOf, func(s *story) {
			s.image("a", ready(otv1alpha1.PhaseSucceeded, "1"))
		}, "does not say that something was lost"},
		"another loss than that": {healedOf, func(s *story) {
			s.put(volume("a", 1, cdiv1.Succeeded))
			s.image("a", lost(otv1alpha1.LostDataVolume))
		}, "says that a DataVolume was lost"},
		"a snapshot that cost a download": {healedOf, func(s *story) {
			s.put(volume("a", 1, cdiv1.Succeeded))
			s.put(volume("a", 2, cdiv1.Succeeded))
			s.image("a", lost(otv1alpha1.LostSnapshot))
		}, "had 2 DataVolumes"},
		"a refusal":                        {refusedOf("pelotech.ot/in-use: 1 virtual machine uses it"), func(*story) {}, ""},
		"a refusal for another reason":     {refusedOf("forbidden"), func(*story) {}, "was not refused because of its use"},
		"a refusal, and it is gone anyway": {refusedOf("in-use"), func(s *story) { s.remove(&otv1alpha1.VMDiskImage{ObjectMeta: meta("a")}) }, "lab/a was deleted"},
		"a DataSync that ends with its images": {syncedOf, func(s *story) {
			s.put(set(otv1alpha1.DataSyncSyncing))
			s.image("a", ready(otv1alpha1.PhaseSucceeded, "1"))
			s.put(set(otv1alpha1.DataSyncSucceeded))
		}, ""},
		"a DataSync that ends too early": {syncedOf, func(s *story) {
			s.image("a", syncing(1))
			s.put(set(otv1alpha1.DataSyncSucceeded))
		}, "lab/set said Succeeded, and its image a had not"},
		"a DataSync that does not end": {syncedOf, func(s *story) { s.put(set(otv1alpha1.DataSyncSyncing)) }, "lab/set did not succeed"},
	} {
		t.Run(name, func(t *testing.T) {
			verdict := c.claim(run(c.tell))
			assert.Equal(t, c.want == "", verdict.Held(), verdict.Faults)
			assert.Contains(t, strings.Join(verdict.Faults, "\n"), c.want)
		})
	}
}
