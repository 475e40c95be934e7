package claims

import (
	"maps"
	"slices"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/demo/ledger"
	"github.com/pelotech/open-terrain/e2e/history"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// Limit: at no revision were there more images syncing, slots held, downloads unfinished or importer pods running than the policy of that
// moment allows. It is meant for a limit that only rises: a lowered one does not stop what is running.
func Limit(r Run) Verdict {
	v := Verdict{Claim: "never more at once than the limit in force"}
	most, importers := map[int]int{}, map[int]int{}
	replay(r, func(e history.Event, l *ledger.Ledger) {
		limit, syncing := l.Policy.Concurrency, l.Syncing()
		most[limit], importers[limit] = max(most[limit], syncing), max(importers[limit], l.Importing())
		for what, n := range map[string]int{
			"images syncing": syncing, "slots held": l.Held(), "downloads unfinished": len(l.Unfinished()), "importer pods running": l.Importing(),
		} {
			if n > limit {
				v.fault("revision %d: %d %s under a limit of %d", e.Revision, n, what, limit)
			}
		}
	})
	for _, limit := range slices.Sorted(maps.Keys(most)) {
		if most[limit] > 0 {
			v.detail("limit %d: at most %d syncing at once, and %d importer pods running", limit, most[limit], importers[limit])
		}
	}
	return v
}

// Raised: once the limit was raised, more images were syncing at once than the lower one allowed.
func Raised(r Run) Verdict {
	v := Verdict{Claim: "a raised limit is obeyed without a restart"}
	lowest, highest, most := -1, -1, 0
	replay(r, func(_ history.Event, l *ledger.Ledger) {
		if len(l.Images()) == 0 {
			return
		}
		limit := l.Policy.Concurrency
		if lowest < 0 {
			lowest = limit
		}
		lowest, highest, most = min(lowest, limit), max(highest, limit), max(most, l.Syncing())
	})
	v.detail("limit %d to %d, and %d were syncing at once", lowest, highest, most)
	if highest <= lowest || most <= lowest {
		v.fault("the limit went from %d to %d, and never more than %d were syncing", lowest, highest, most)
	}
	return v
}

// Order: images get their first slot in the order of their creation, over all namespaces, and a retry comes after
// every image that was there when it went to the tail.
func Order(r Run) Verdict {
	v := Verdict{Claim: "first in, first out, over all namespaces"}
	admitted := map[types.UID]bool{}
	first, retries := 0, 0
	replay(r, func(e history.Event, l *ledger.Ledger) {
		image := takes(e, l)
		if image == nil {
			return
		}
		if admitted[image.UID] {
			retries++
		} else {
			first++
		}
		admitted[image.UID] = true
		for _, other := range l.Images() {
			if !admitted[other.UID] && other.Created < image.Ticket() {
				v.fault("revision %d: %s got a slot before %s", e.Revision, image.Key, other.Key)
			}
		}
	})
	v.detail("%d first admissions in the order of creation, %d retries from the tail", first, retries)
	if first == 0 {
		v.fault("no image got a slot")
	}
	return v
}

// takes is the image that gets a slot by this event, or nil.
func takes(e history.Event, l *ledger.Ledger) *ledger.Image {
	lease, ok := history.As[*coordinationv1.Lease](e)
	if !ok {
		return nil
	}
	image := l.Holder(lease.Name)
	if former, ok := history.PrevAs[*coordinationv1.Lease](e); ok && image != nil && former.Spec.HolderIdentity != nil &&
		*former.Spec.HolderIdentity == *lease.Spec.HolderIdentity {
		return nil
	}
	return image
}

// Fenced: a DataVolume is made only for an image that is Syncing, and is unfinished only while its image holds a slot,
// one.
func Fenced(r Run) Verdict {
	v := Verdict{Claim: "no download without a slot"}
	downloads := 0
	replay(r, func(e history.Event, l *ledger.Ledger) {
		if dv, ok := history.As[*cdiv1.DataVolume](e); ok && e.Created() {
			if image := l.OwnerOf(dv); image != nil {
				downloads++
				if image.Status.Phase != otv1alpha1.PhaseSyncing {
					v.fault("revision %d: the DataVolume %s was made while its image was %q", e.Revision, dv.Name, image.Status.Phase)
				}
			}
		}
		for _, dv := range l.Unfinished() {
			if n := len(l.OwnerOf(dv).Slots); n != 1 {
				v.fault("revision %d: the image of the unfinished DataVolume %s holds %d slots", e.Revision, dv.Name, n)
			}
		}
	})
	v.detail("%d DataVolumes, each made under a slot that was kept until it had Succeeded or was gone", downloads)
	return v
}
