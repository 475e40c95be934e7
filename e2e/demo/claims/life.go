package claims

import (
	"strings"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/demo/ledger"
	"github.com/pelotech/open-terrain/e2e/history"
	"k8s.io/apimachinery/pkg/types"
)

// Life is what was done to images that had succeeded, and to virtual machines.
type Life struct {
	// Updated has got another url, Healed has lost its snapshot, InUse was not deleted.
	Updated, Healed, InUse types.NamespacedName
	// Refusal is what the API server said to the deletion of InUse.
	Refusal string
	// DataSync has made images of its own.
	DataSync types.NamespacedName
	// Early is a virtual machine that was applied before its image, Repaired one whose KubeVirt machine was deleted.
	Early, Repaired types.NamespacedName
	// Second is what another process of the vm-operator did.
	Second Second
}

// Whole checks every claim: first is the run up to the images' first ends, whole goes on to the end.
func Whole(first, whole Run, life Life) []Verdict {
	return []Verdict{
		Limit(whole), Raised(first), Order(first), Fenced(whole), Downloads(first), Attempts(first), Ends(first),
		Updated(whole, life.Updated), Healed(whole, life.Healed), Refused(whole, life), Synced(whole, life.DataSync),
		Waited(whole, life.Early), Shared(whole), Counted(whole), Repaired(whole, life.Repaired), Silent(whole, life.Second),
	}
}

// Updated: from its first success on the image could be cloned, always; another revision took the former one's place, and
// nothing is left of that.
func Updated(r Run, key types.NamespacedName) Verdict {
	v := Verdict{Claim: "an update leaves the former disk until the new one is ready"}
	var revisions []string
	former := ""
	end := replay(r, func(e history.Event, _ *ledger.Ledger) {
		image, ok := history.As[*otv1alpha1.VMDiskImage](e)
		if !ok || e.NamespacedName() != key || (len(revisions) == 0 && image.Status.Artifact == nil) {
			return
		}
		if !image.IsReady() {
			v.fault("revision %d: %s could not be cloned", e.Revision, key)
			return
		}
		if a := image.Status.Artifact; len(revisions) == 0 || revisions[len(revisions)-1] != a.Revision {
			revisions = append(revisions, a.Revision)
			former = otv1alpha1.ChildName(key.Name, revisions[0])
		}
	})
	v.detail("%s was ready to be cloned throughout, from %s", key, strings.Join(revisions, " and then from "))
	if len(revisions) != 2 {
		v.fault("%s had %d revisions to clone from, and not 2", key, len(revisions))
	}
	if end.Snapshot(types.NamespacedName{Namespace: key.Namespace, Name: former}) != nil {
		v.fault("the former VolumeSnapshot %s is still there", former)
	}
	return v
}

// Healed: a snapshot that somebody deleted was made again of the volume, without another download.
func Healed(r Run, key types.NamespacedName) Verdict {
	v := Verdict{Claim: "a lost snapshot is made again, without a download"}
	image := replay(r, func(history.Event, *ledger.Ledger) {}).Image(key)
	switch {
	case image == nil || image.Status.LastLoss == nil:
		v.fault("%s does not say that something was lost", key)
		return v
	case image.Status.LastLoss.Kind != otv1alpha1.LostSnapshot:
		v.fault("%s says that a %s was lost", key, image.Status.LastLoss.Kind)
	case image.Status.Phase != otv1alpha1.PhaseSucceeded || image.Status.Artifact == nil:
		v.fault("%s is %s", key, image.Status.Phase)
	}
	v.detail("%s lost the %s %s, and has made it again with %d DataVolume and %d download in all", key, image.Status.LastLoss.Kind,
		image.Status.LastLoss.Name, len(image.Downloads), r.Counted[key].Whole)
	if len(image.Downloads) != 1 || r.Counted[key].Whole != 1 {
		v.fault("%s had %d DataVolumes, and was downloaded %d times", key, len(image.Downloads), r.Counted[key].Whole)
	}
	return v
}

// Refused: an image that is in use was not deleted, and the answer said why.
func Refused(r Run, life Life) Verdict {
	v := Verdict{Claim: "an image in use is not deleted"}
	v.detail("%s", life.Refusal)
	if !strings.Contains(life.Refusal, "in-use") {
		v.fault("the deletion of %s was not refused because of its use", life.InUse)
	}
	going := false
	end := replay(r, func(e history.Event, _ *ledger.Ledger) {
		image, ok := history.As[*otv1alpha1.VMDiskImage](e)
		going = going || (ok && e.NamespacedName() == life.InUse && image.DeletionTimestamp != nil)
	})
	if going || end.Image(life.InUse) == nil {
		v.fault("%s was deleted", life.InUse)
	}
	return v
}

// Synced: a DataSync has Succeeded, and at that moment each of its images had.
func Synced(r Run, key types.NamespacedName) Verdict {
	v := Verdict{Claim: "a DataSync is as far as its disks are"}
	entries := 0
	replay(r, func(e history.Event, l *ledger.Ledger) {
		set, ok := history.As[*otv1alpha1.DataSync](e)
		if !ok || e.NamespacedName() != key || set.Status.Phase != otv1alpha1.DataSyncSucceeded {
			return
		}
		entries = len(set.Status.Entries)
		for _, entry := range set.Status.Entries {
			image := l.Image(types.NamespacedName{Namespace: key.Namespace, Name: entry.Image})
			if image == nil || image.Status.Phase != otv1alpha1.PhaseSucceeded {
				v.fault("revision %d: %s said Succeeded, and its image %s had not", e.Revision, key, entry.Image)
			}
		}
	})
	v.detail("%s has %d disks, each an image of its own, and said Succeeded when all had", key, entries)
	if entries == 0 {
		v.fault("%s did not succeed", key)
	}
	return v
}
