package invariant

import (
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/pelotech/open-terrain/e2e/history"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// jitter is the most that is added to a wait, as a part of it; granularity is that of a time in status.
const (
	jitter      = 0.1
	granularity = time.Second
)

// Backoff is I5.
func Backoff(s Settings, events []history.Event) []Violation {
	b := &backoff{found: found{invariant: "I5"}, settings: s, failures: map[types.UID]failure{}}
	replay(s, events, func(st *state, e history.Event) {
		if image, ok := history.As[*otv1alpha1.VMDiskImage](e); ok {
			b.image(st, e, image)
		}
		if dv, ok := history.As[*cdiv1.DataVolume](e); ok && e.Created() && ownerOf(dv) != "" {
			b.volume(st, e, dv)
		}
	})
	return b.list
}

type backoff struct {
	found
	settings Settings
	failures map[types.UID]failure
}

// failure of the last attempt, as its status told of it.
type failure struct {
	told, noticed time.Time
	revision      string
	wait          time.Duration
}

func (b *backoff) image(st *state, e history.Event, image *otv1alpha1.VMDiskImage) {
	before, _ := history.PrevAs[*otv1alpha1.VMDiskImage](e)
	if before == nil || image.Status.LastFailure == nil {
		return
	}
	waited, waits := before.Status.NextAttemptTime != nil, image.Status.NextAttemptTime != nil
	switch {
	case waits && !waited:
		b.failed(st, e, image)
	case waited && !waits:
		b.cameBack(e, image)
	}
}

func (b *backoff) failed(st *state, e history.Event, image *otv1alpha1.VMDiskImage) {
	status := image.Status
	fail := failure{
		told: e.Seen, noticed: status.LastFailure.Time.Time, revision: status.Revision,
		wait: wait(st.policies[len(st.policies)-1].Policy, int(status.Attempts)),
	}
	b.failures[image.UID] = fail
	if promised := status.NextAttemptTime.Sub(fail.noticed); promised < fail.wait {
		b.add(e, "nextAttemptTime is %s after the failure, and the wait is %s", promised, fail.wait)
	}
}

func (b *backoff) cameBack(e history.Event, image *otv1alpha1.VMDiskImage) {
	known, failed := b.failures[image.UID]
	if !failed || image.Status.Revision != known.revision || b.settings.Late == 0 {
		return
	}
	latest := time.Duration(float64(known.wait)*(1+jitter)) + granularity + b.settings.Late
	if gap := e.Seen.Sub(known.told); gap > latest {
		b.add(e, "it comes back %s after the failure, and the wait is %s", gap, known.wait)
	}
}

func (b *backoff) volume(st *state, e history.Event, dv *cdiv1.DataVolume) {
	for _, other := range st.active(ownerOf(dv)) {
		if other.UID != dv.UID {
			b.add(e, "the DataVolume %s of the same image still exists", other.Name)
		}
	}
	image := st.images[ownerOf(dv)]
	if image == nil {
		return
	}
	known, failed := b.failures[image.UID]
	if !failed || known.revision != image.Status.Revision {
		return
	}
	if gap := e.Seen.Sub(known.told); gap < known.wait-b.settings.Slack {
		b.add(e, "the next attempt comes %s after the failure was told, and the wait is %s", gap, known.wait)
	}
	if gap := e.Seen.Sub(known.noticed); gap < known.wait {
		b.add(e, "the next attempt comes %s after the time of the failure, and the wait is %s", gap, known.wait)
	}
}

// wait without the jitter.
func wait(p policy.Policy, attempt int) time.Duration {
	w, limit := p.RetryBackoff, max(policy.MaxBackoff, p.RetryBackoff)
	for range attempt - 1 {
		w = min(2*w, limit)
	}
	return w
}
