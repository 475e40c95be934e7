package claims

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/demo/ledger"
	"github.com/pelotech/open-terrain/e2e/history"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const (
	// getsPerAttempt is how often CDI asks for a file in one attempt, at most: see Count.
	getsPerAttempt = 2
	// dropped is how much the kernel may have sent of the first GET before it is known that nobody reads it.
	dropped = 1 << 20
)

// Downloads: no image was sent more often than retryLimit+1 times, by the servers' own count of requests, of whole files
// and of bytes.
func Downloads(r Run) Verdict {
	v := Verdict{Claim: "at most retryLimit+1 downloads of an image, counted at the servers"}
	end := replay(r, func(history.Event, *ledger.Ledger) {})
	allowed, most := end.Policy.MaxAttempts(), 0.0
	for _, key := range sortedKeys(r.Counted) {
		count := r.Counted[key]
		most = max(most, count.Times())
		if count.Whole > allowed {
			v.fault("%s was downloaded %d times, %d are allowed", key, count.Whole, allowed)
		}
		if count.Bytes > int64(allowed)*(count.Size+dropped) {
			v.fault("%s: %d bytes were sent of a file of %d, which is more than %d times", key, count.Bytes, count.Size, allowed)
		}
		if count.Gets > getsPerAttempt*allowed {
			v.fault("%s was asked for %d times, which is more than %d in each of %d attempts", key, count.Gets, getsPerAttempt, allowed)
		}
	}
	v.detail("retryLimit %d allows %d; the most that was sent of any image was %.1f times its file", end.Policy.RetryLimit, allowed, most)
	if len(r.Counted) == 0 {
		v.fault("the servers have counted nothing")
	}
	return v
}

// Times is how many times the file's size was sent.
func (c Count) Times() float64 {
	if c.Size == 0 {
		return 0
	}
	return float64(c.Bytes) / float64(c.Size)
}

// Attempts: an attempt is one DataVolume and one DataVolume is an attempt: none was counted twice or forgotten.
func Attempts(r Run) Verdict {
	v := Verdict{Claim: "attempts are counted once each"}
	end := replay(r, func(history.Event, *ledger.Ledger) {})
	attempts := 0
	for _, image := range end.Images() {
		counted, made := int(image.Status.Attempts), len(image.Downloads)
		attempts += made
		if counted != made {
			v.fault("%s says %d attempts, and %d DataVolumes were made for it", image.Key, counted, made)
		}
		if made > end.Policy.MaxAttempts() {
			v.fault("%s had %d DataVolumes, %d are allowed", image.Key, made, end.Policy.MaxAttempts())
		}
	}
	v.detail("%d attempts in status, and as many DataVolumes", attempts)
	return v
}

// Ends: every image ended as expected, each Succeeded had its snapshot ready at that moment, and nobody holds a slot
// any more.
func Ends(r Run) Verdict {
	v := Verdict{Claim: "every image ended as it should"}
	succeeded := map[types.UID]bool{}
	end := replay(r, func(e history.Event, l *ledger.Ledger) {
		image, ok := history.As[*otv1alpha1.VMDiskImage](e)
		if !ok || image.Status.Phase != otv1alpha1.PhaseSucceeded || succeeded[image.UID] {
			return
		}
		succeeded[image.UID] = true
		if !snapshotReady(image, l) {
			v.fault("revision %d: %s said Succeeded without a snapshot that is ready", e.Revision, e.NamespacedName())
		}
	})
	images := map[types.NamespacedName]*ledger.Image{}
	for _, image := range end.Images() {
		images[image.Key] = image
	}
	for _, key := range sortedKeys(r.Expected) {
		checkEnd(&v, key, images[key], r.Expected[key])
	}
	v.detail("%d Succeeded with a snapshot that is ready, %d Failed, %d slots still held", len(succeeded), len(end.Images())-len(succeeded), end.Held())
	if end.Held() > 0 {
		v.fault("%d slots are still held", end.Held())
	}
	return v
}

func checkEnd(v *Verdict, key types.NamespacedName, image *ledger.Image, want Expectation) {
	if image == nil {
		v.fault("%s does not exist", key)
		return
	}
	var reason otv1alpha1.FailureReason
	if image.Status.LastFailure != nil {
		reason = image.Status.LastFailure.Reason
	}
	got := Expectation{Phase: image.Status.Phase, Reason: reason, Attempts: int(image.Status.Attempts)}
	if got != want {
		v.fault("%s is %s, expected %s", key, got, want)
	}
}

// String is the end in a few words: Failed after 3 attempts (SourceNotFound).
func (e Expectation) String() string {
	text := string(cmp.Or(e.Phase, "without a phase"))
	switch e.Attempts {
	case 0:
		text += " without an attempt"
	case 1:
		text += " at the first attempt"
	default:
		text += fmt.Sprintf(" at attempt %d", e.Attempts)
	}
	if e.Reason != "" {
		text += " (" + string(e.Reason) + ")"
	}
	return text
}

func snapshotReady(image *otv1alpha1.VMDiskImage, l *ledger.Ledger) bool {
	if image.Status.Artifact == nil {
		return false
	}
	snapshot := l.Snapshot(types.NamespacedName{Namespace: image.Namespace, Name: image.Status.Artifact.Snapshot})
	return snapshot != nil && snapshot.Status != nil && ptr.Deref(snapshot.Status.ReadyToUse, false)
}

func sortedKeys[V any](m map[types.NamespacedName]V) []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(m), func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
}
