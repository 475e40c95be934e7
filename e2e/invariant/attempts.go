package invariant

import (
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/pelotech/open-terrain/e2e/history"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// download is the name and the owner that the DataVolumes of a revision share.
type download struct {
	image types.UID
	name  string
}

// Attempts is I4 at every revision: the DataVolumes of an image's revision are at most retryLimit+1, and
// status.attempts only counts on.
func Attempts(s Settings, events []history.Event) []Violation {
	f, counts := &found{invariant: "I4"}, map[download]int{}
	replay(s, events, func(st *state, e history.Event) {
		if image, ok := history.As[*otv1alpha1.VMDiskImage](e); ok {
			counted(f, image, e)
			anew(counts, image, e)
			return
		}
		dv, _ := history.As[*cdiv1.DataVolume](e)
		if dv == nil || !e.Created() || ownerOf(dv) == "" {
			return
		}
		key := download{ownerOf(dv), dv.Name}
		counts[key]++
		if most := st.most(e.Seen, s.Lag, policy.Policy.MaxAttempts); counts[key] > most {
			f.add(e, "it is DataVolume %d of its revision, and %d are allowed", counts[key], most)
		}
	})
	return f.list
}

func counted(f *found, image *otv1alpha1.VMDiskImage, e history.Event) {
	before, _ := history.PrevAs[*otv1alpha1.VMDiskImage](e)
	if before == nil || before.Status.Revision != image.Status.Revision {
		return
	}
	if more := image.Status.Attempts - before.Status.Attempts; more < 0 || more > 1 {
		f.add(e, "status.attempts goes from %d to %d", before.Status.Attempts, image.Status.Attempts)
	}
}

// anew begins to count again when status is about another revision: also one that it was about before.
func anew(counts map[download]int, image *otv1alpha1.VMDiskImage, e history.Event) {
	before, _ := history.PrevAs[*otv1alpha1.VMDiskImage](e)
	if before != nil && before.Status.Revision != image.Status.Revision {
		delete(counts, download{image.UID, otv1alpha1.ChildName(image.Name, image.Status.Revision)})
	}
}

// AttemptsInStatus is I4 at the end: status.attempts is the number of DataVolumes that there were for the revision.
// It does not hold where the API server refused to create one, or a slot was taken away. It broke with the last change of
// the image, or with its last DataVolume: a story that comes later in the same world has no part in it.
func AttemptsInStatus(s Settings, events []history.Event) []Violation {
	f, counts, touched := &found{invariant: "I4"}, map[download]int{}, map[types.UID]history.Event{}
	st := replay(s, events, func(_ *state, e history.Event) {
		if image, ok := history.As[*otv1alpha1.VMDiskImage](e); ok {
			anew(counts, image, e)
			touched[image.UID] = e
		}
		if dv, ok := history.As[*cdiv1.DataVolume](e); ok && e.Created() && ownerOf(dv) != "" {
			counts[download{ownerOf(dv), dv.Name}]++
			touched[ownerOf(dv)] = e
		}
	})
	for _, image := range st.images {
		revision := image.Status.Revision
		if revision == "" {
			revision = otv1alpha1.RevisionOf(image)
		}
		made := counts[download{image.UID, otv1alpha1.ChildName(image.Name, revision)}]
		if made != int(image.Status.Attempts) {
			f.add(touched[image.UID], "%s/%s counts %d attempts, and there were %d DataVolumes", image.Namespace, image.Name, image.Status.Attempts, made)
		}
	}
	return f.list
}
