package invariant

import (
	"strconv"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Order is I2. A slot is never granted past an image that waits with a lower ticket; the first ticket of an image is not
// lower than that of one created before it; and, where Settings ask for it, attempts begin in the order of the grants.
// An image that came back to the queue within the lag may be overlooked; a new one may not, because the watch that tells
// of it tells of those created before it first.
func Order(s Settings, events []history.Event) []Violation {
	o := &order{found: found{invariant: "I2"}, settings: s, back: map[types.UID]time.Time{}, born: map[types.UID]int64{}}
	replay(s, events, o.look)
	return o.list
}

type order struct {
	found
	settings Settings
	back     map[types.UID]time.Time // when an image came back to the queue
	born     map[types.UID]int64     // revision of an image's creation
	tickets  []ticketed
	granted  []string // holders whose attempt has not begun, in the order of their grants
}

// ticketed is the first ticket that an image got.
type ticketed struct{ born, ticket int64 }

func (o *order) look(st *state, e history.Event) {
	switch object := latest(e).(type) {
	case *coordinationv1.Lease:
		if before, after := holders(e); st.isSlot(object) && after != "" && after != before {
			o.grant(st, e, after)
		}
	case *otv1alpha1.VMDiskImage:
		o.image(st, e)
	}
}

func (o *order) image(st *state, e history.Event) {
	image, _ := history.As[*otv1alpha1.VMDiskImage](e)
	before, _ := history.PrevAs[*otv1alpha1.VMDiskImage](e)
	if image == nil {
		return
	}
	if before == nil {
		o.born[image.UID] = e.Revision
		return
	}
	if _, waited := waits(before); !waited {
		if _, now := waits(image); now {
			o.back[image.UID] = e.Seen
		}
	}
	if first := image.Status.Ticket; first != 0 && before.Status.Revision == "" {
		o.firstTicket(e, ticketed{born: o.born[image.UID], ticket: first})
	}
	if image.Status.Phase == otv1alpha1.PhaseSyncing && before.Status.Phase != otv1alpha1.PhaseSyncing {
		o.begin(st, e, before)
	}
}

func (o *order) firstTicket(e history.Event, own ticketed) {
	for _, other := range o.tickets {
		if !o.settings.Touched && (own.born < other.born) != (own.ticket < other.ticket) {
			o.add(e, "created at revision %d it has ticket %d, and one created at %d has %d", own.born, own.ticket, other.born, other.ticket)
			return
		}
	}
	o.tickets = append(o.tickets, own)
}

func (o *order) grant(st *state, e history.Event, holder string) {
	o.granted = append(o.granted, holder)
	if image := st.images[uidOf(holder)]; image != nil {
		o.passes(st, e, image)
	}
}

// passes tells whom the image leaves behind that waits with a lower ticket.
func (o *order) passes(st *state, e history.Event, image *otv1alpha1.VMDiskImage) {
	own, _ := waits(image)
	for _, other := range st.images {
		ticket, waiting := waits(other)
		if !waiting || ticket >= own || other.UID == image.UID || st.holds(other) {
			continue
		}
		if back, came := o.back[other.UID]; came && e.Seen.Sub(back) < o.settings.Lag {
			continue
		}
		o.add(e, "%s/%s with ticket %d gets a slot, and %s/%s with ticket %d waits", image.Namespace, image.Name, own, other.Namespace, other.Name, ticket)
	}
}

// begin takes the image, as it was before, off the list of those that were granted a slot. One that was not is judged now.
func (o *order) begin(st *state, e history.Event, image *otv1alpha1.VMDiskImage) {
	for i, h := range o.granted {
		if h != identity(image) {
			continue
		}
		if i > 0 && o.settings.OrderedStarts {
			o.add(e, "it begins before %s, which got its slot earlier", o.granted[0])
		}
		o.granted = append(o.granted[:i:i], o.granted[i+1:]...)
		return
	}
	o.passes(st, e, image)
}

func number(resourceVersion string) int64 {
	n, _ := strconv.ParseInt(resourceVersion, 10, 64) // what is not a number sorts first
	return n
}
