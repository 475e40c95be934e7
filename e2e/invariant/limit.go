package invariant

import (
	"strconv"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	coordinationv1 "k8s.io/api/coordination/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// Limit is I1. The limit is checked where the number rises: at a grant of a slot, at Syncing, and at the creation of
// a DataVolume, so that a lowered limit stops nothing that runs and lets nothing in. Slots that were granted before
// may still be used after it was lowered.
func Limit(s Settings, events []history.Event) []Violation {
	f := &found{invariant: "I1"}
	replay(s, events, func(st *state, e history.Event) {
		switch o := latest(e).(type) {
		case *coordinationv1.Lease:
			if st.isSlot(o) {
				granted(f, s, st, e)
				givenUp(f, st, e)
			}
		case *otv1alpha1.VMDiskImage:
			began(f, s, st, e)
		case *cdiv1.DataVolume:
			if e.Created() && ownerOf(o) != "" {
				created(f, s, st, e)
			}
		}
	})
	return f.list
}

func granted(f *found, s Settings, st *state, e history.Event) {
	before, after := holders(e)
	limit := st.most(e.Seen, s.Lag, concurrency)
	if after != "" && after != before && len(st.slots) > limit {
		f.add(e, "%d slots are held, and the limit is %d", len(st.slots), limit)
	}
}

// givenUp: the download of the former holder must be over.
func givenUp(f *found, st *state, e history.Event) {
	before, after := holders(e)
	if before == "" || after == before || st.slotsOf(before) > 0 {
		return
	}
	for _, dv := range st.active(uidOf(before)) {
		f.add(e, "the slot is given up while the DataVolume %s/%s of its holder is %q", dv.Namespace, dv.Name, dv.Status.Phase)
	}
}

func began(f *found, s Settings, st *state, e history.Event) {
	image, _ := history.As[*otv1alpha1.VMDiskImage](e)
	before, _ := history.PrevAs[*otv1alpha1.VMDiskImage](e)
	if image == nil || image.Status.Phase != otv1alpha1.PhaseSyncing || before != nil && before.Status.Phase == otv1alpha1.PhaseSyncing {
		return
	}
	if !st.holds(image) {
		f.add(e, "it says Syncing and holds no slot")
	}
	limit := max(st.most(e.Seen, s.Lag, concurrency), len(st.slots))
	if n := st.syncing(); n > limit {
		f.add(e, "%d images say Syncing, and the limit is %d", n, limit)
	}
}

func created(f *found, s Settings, st *state, e history.Event) {
	dv, _ := history.As[*cdiv1.DataVolume](e)
	limit := max(st.most(e.Seen, s.Lag, concurrency), len(st.slots))
	if n := len(st.active("")); n > limit {
		f.add(e, "%d downloads are active, and the limit is %d", n, limit)
	}
	image := st.images[ownerOf(dv)]
	switch {
	case image == nil:
		f.add(e, "its image does not exist")
		return
	case !st.holds(image):
		f.add(e, "its image holds no slot")
	case st.ending[dv.Annotations[otv1alpha1.AnnotationSlot]]:
		f.add(e, "it begins under a slot whose attempt has ended")
	}
	if image.Status.Phase != otv1alpha1.PhaseSyncing {
		f.add(e, "its image says %q, not Syncing", image.Status.Phase)
	}
	if attempt := dv.Annotations[otv1alpha1.AnnotationAttempt]; attempt != strconv.Itoa(int(image.Status.Attempts)) {
		f.add(e, "it belongs to attempt %q, and its image says %d", attempt, image.Status.Attempts)
	}
}

func holders(e history.Event) (before, after string) {
	was, _ := history.PrevAs[*coordinationv1.Lease](e)
	is, _ := history.As[*coordinationv1.Lease](e)
	return holder(was), holder(is)
}
