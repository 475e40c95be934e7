package invariant

import (
	"testing"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

func TestAGoodLifeBreaksNothing(t *testing.T) {
	s := newStory()
	s.limit(1)
	s.life("a", 0)
	s.life("b", 0)
	s.image("c")
	s.attempt("c", 1, 5*time.Minute)
	s.later(5 * time.Minute)
	s.queued("c", int64(len(s.events)))
	s.slot(0, "c")
	s.syncing("c", 2)
	s.volume("c", 2)
	s.failed("c")
	s.volumeGone("c")
	s.slot(0, "")
	assert.Empty(t, All(strict(), s.events))
}

func TestLimit(t *testing.T) {
	two := func(s *story) {
		s.image("a")
		s.image("b")
		s.slot(0, "a")
		s.slot(1, "b")
	}
	runStories(t, Limit, map[string]storyTest{
		"as many slots as the limit": {tell: func(s *story) { s.limit(2); two(s) }},
		"one slot too many":          {tell: func(s *story) { s.limit(1); two(s) }, want: []string{"2 slots are held, and the limit is 1"}},
		"a lowered limit stops nothing": {tell: func(s *story) {
			s.limit(2)
			two(s)
			s.limit(1)
			s.syncing("a", 1)
			s.volume("a", 1)
			s.syncing("b", 1)
			s.volume("b", 1)
		}},
		"a slot handed on above a lowered limit": {tell: func(s *story) {
			s.limit(2)
			two(s)
			s.limit(1)
			s.image("c")
			s.slot(1, "c")
		}, want: []string{"2 slots are held, and the limit is 1"}},
		"a bad policy changes nothing": {tell: func(s *story) {
			s.limit(2)
			s.policy(map[string]string{"concurrency": "many"})
			two(s)
		}},
		"without a policy the default holds": {tell: two},
		"Syncing without a slot": {tell: func(s *story) {
			s.image("a")
			s.syncing("a", 1)
		}, want: []string{"holds no slot"}},
		"more Syncing than the limit": {tell: func(s *story) {
			s.limit(1)
			s.image("a")
			s.image("b")
			s.slot(0, "a")
			s.syncing("a", 1)
			s.slot(0, "b")
			s.syncing("b", 1)
		}, want: []string{"2 images say Syncing"}},
		"a DataVolume before its slot and its status": {tell: func(s *story) {
			s.image("a")
			s.volume("a", 1)
		}, want: []string{"holds no slot", `its image says "", not Syncing`, `belongs to attempt "1"`}},
		"a DataVolume of another attempt": {tell: func(s *story) {
			s.image("a")
			s.slot(0, "a")
			s.syncing("a", 2)
			s.volume("a", 1)
		}, want: []string{`it belongs to attempt "1", and its image says 2`}},
		"a DataVolume that comes when its slot is another's": {tell: func(s *story) {
			s.limit(1)
			s.image("a")
			s.image("b")
			s.slot(0, "a")
			s.syncing("a", 1)
			s.backingOff("a", time.Minute)
			s.slot(0, "b")
			s.syncing("b", 1)
			s.volume("b", 1)
			s.volume("a", 1)
		}, want: []string{"2 downloads are active, and the limit is 1", "its image holds no slot", `"Queued", not Syncing`}},
		"a DataVolume that comes when its attempt has ended": {tell: func(s *story) {
			s.image("a")
			s.slot(0, "a")
			s.syncing("a", 1)
			s.ending(0)
			s.volume("a", 1)
		}, want: []string{"under a slot whose attempt has ended"}},
		"a slot that is passed on when an attempt has ended": {tell: func(s *story) {
			s.image("a")
			s.image("b")
			s.slot(0, "a")
			s.ending(0)
			s.slot(0, "b")
			s.syncing("b", 1)
			s.volume("b", 1)
		}},
		"a slot given up during the download": {tell: func(s *story) {
			s.image("a")
			s.slot(0, "a")
			s.syncing("a", 1)
			s.volume("a", 1)
			s.slot(0, "")
		}, want: []string{"given up while the DataVolume"}},
		"a slot whose Lease is deleted during the download": {tell: func(s *story) {
			s.image("a")
			s.slot(0, "a")
			s.syncing("a", 1)
			s.volume("a", 1)
			s.remove("leases", operator, otv1alpha1.SlotName(0))
		}, want: []string{"given up while the DataVolume"}},
		"the second of two slots given up during the download": {tell: func(s *story) {
			s.image("a")
			s.slot(0, "a")
			s.slot(1, "a")
			s.syncing("a", 1)
			s.volume("a", 1)
			s.slot(1, "")
		}},
		"DataVolumes of others count for nothing": {tell: func(s *story) {
			s.limit(0)
			s.put("datavolumes", &cdiv1.DataVolume{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "own", UID: "own"}})
		}},
	})
}

func TestOrder(t *testing.T) {
	runStories(t, Order, map[string]storyTest{
		"first come, first served": {tell: func(s *story) {
			s.image("a")
			s.image("b")
			s.slot(0, "a")
			s.slot(1, "b")
			s.syncing("a", 1)
			s.syncing("b", 1)
		}},
		"the newer one first": {tell: func(s *story) {
			s.image("a")
			s.image("b")
			s.slot(0, "b")
		}, want: []string{"lab/b with ticket 2 gets a slot, and lab/a with ticket 1 waits"}},
		"a retry goes to the tail": {tell: func(s *story) {
			s.image("a")
			s.attempt("a", 1, time.Minute)
			s.image("b")
			s.queued("b", 9)
			s.queued("a", 10)
			s.slot(0, "b")
		}},
		"a retry that keeps its place is overlooked": {tell: func(s *story) {
			s.image("a")
			s.attempt("a", 1, time.Minute)
			s.image("b")
			s.queued("b", 9)
			s.queued("a", 1)
			s.slot(0, "b")
		}, want: []string{"lab/a with ticket 1 waits"}},
		"one that backs off is passed": {tell: func(s *story) {
			s.image("a")
			s.attempt("a", 1, time.Minute)
			s.image("b")
			s.slot(0, "b")
		}},
		"tickets against the order of creation": {tell: func(s *story) {
			s.image("a")
			s.image("b")
			s.queued("b", 1)
			s.queued("a", 2)
		}, want: []string{"created at revision 1 it has ticket 2, and one created at 2 has 1"}},
		"a newer one begins without a slot": {tell: func(s *story) {
			s.image("a")
			s.image("b")
			s.syncing("b", 1)
		}, want: []string{"lab/b with ticket 2 gets a slot, and lab/a with ticket 1 waits"}},
		"attempts begin against the order of the slots": {tell: func(s *story) {
			s.image("a")
			s.image("b")
			s.slot(0, "a")
			s.slot(1, "b")
			s.syncing("b", 1)
			s.syncing("a", 1)
		}, want: []string{"it begins before lab/a"}},
	})
}

func TestNoLoss(t *testing.T) {
	runStories(t, NoLoss, map[string]storyTest{
		"all at their end":  {tell: func(s *story) { s.life("a", 0) }},
		"one is forgotten":  {tell: func(s *story) { s.image("a"); s.queued("a", 1) }, want: []string{`lab/a is "Queued" at the end`}},
		"a slot stays held": {tell: func(s *story) { s.life("a", 0); s.slot(0, "a") }, want: []string{"disk-sync-slot-0 is held by lab/a"}},
		"a DataVolume is left behind": {tell: func(s *story) {
			s.image("a")
			s.volume("a", 1)
			s.failed("a")
		}, want: []string{"the DataVolume lab/a-"}},
	})
	runStories(t, Starvation, map[string]storyTest{
		"served at once": {tell: func(s *story) {
			s.image("a")
			s.later(500 * time.Millisecond)
			s.slot(0, "a")
			s.later(time.Hour)
			s.syncing("a", 1)
		}},
		"waits beside a free slot": {tell: func(s *story) {
			s.image("a")
			s.later(1100 * time.Millisecond)
			s.slot(0, "a")
		}, want: []string{"a slot was free and an image waited for 1.1s"}},
		"waits for the only slot": {tell: func(s *story) {
			s.limit(1)
			s.image("a")
			s.slot(0, "a")
			s.image("b")
			s.later(time.Hour)
			s.slot(0, "b")
		}},
	})
}

func TestAttempts(t *testing.T) {
	once := map[string]string{"retryLimit": "0"}
	runStories(t, Attempts, map[string]storyTest{
		"as many as the policy allows": {tell: func(s *story) {
			s.policy(map[string]string{"retryLimit": "1"})
			s.image("a")
			s.attempt("a", 1, time.Minute)
			s.attempt("a", 2, time.Minute)
		}},
		"one more than that": {tell: func(s *story) {
			s.policy(once)
			s.image("a")
			s.attempt("a", 1, time.Minute)
			s.attempt("a", 2, time.Minute)
		}, want: []string{"it is DataVolume 2 of its revision, and 1 are allowed"}},
		"an attempt that is counted twice": {tell: func(s *story) {
			s.image("a")
			s.syncing("a", 1)
			s.syncing("a", 3)
		}, want: []string{"status.attempts goes from 1 to 3"}},
		"an attempt that is forgotten": {tell: func(s *story) {
			s.image("a")
			s.syncing("a", 1)
			s.syncing("a", 0)
		}, want: []string{"status.attempts goes from 1 to 0"}},
	})
	runStories(t, AttemptsInStatus, map[string]storyTest{
		"counted": {tell: func(s *story) { s.life("a", 0) }},
		"a DataVolume that status knows nothing of": {tell: func(s *story) {
			s.image("a")
			s.volume("a", 1)
		}, want: []string{"lab/a counts 0 attempts, and there were 1 DataVolumes"}},
		"two DataVolumes for one attempt": {tell: func(s *story) {
			s.image("a")
			s.syncing("a", 1)
			s.volume("a", 1)
			s.volumeGone("a")
			s.volume("a", 1)
		}, want: []string{"lab/a counts 1 attempts, and there were 2 DataVolumes"}},
	})
}

func TestBackoff(t *testing.T) {
	again := func(s *story, wait time.Duration) {
		s.policy(map[string]string{"retryBackoffDuration": "10s"})
		s.image("a")
		s.attempt("a", 1, 10*time.Second)
		s.later(wait)
		s.queued("a", 20)
		s.slot(0, "a")
		s.syncing("a", 2)
		s.volume("a", 2)
	}
	runStories(t, Backoff, map[string]storyTest{
		"in time": {tell: func(s *story) { again(s, 10*time.Second) }},
		"with the jitter and what a second's granularity costs": {tell: func(s *story) { again(s, 12*time.Second) }},
		"too early": {tell: func(s *story) { again(s, 9*time.Second) }, want: []string{"9s after the failure was told", "9s after the time of the failure"}},
		"too late":  {tell: func(s *story) { again(s, 14*time.Second) }, want: []string{"it comes back 14s after the failure"}},
		"the wait doubles": {tell: func(s *story) {
			again(s, 10*time.Second)
			s.backingOff("a", 10*time.Second)
		}, want: []string{"nextAttemptTime is 10s after the failure, and the wait is 20s"}},
		"two DataVolumes at once": {tell: func(s *story) {
			s.image("a")
			s.syncing("a", 1)
			s.volume("a", 1)
			s.image("a", func(i *otv1alpha1.VMDiskImage) { i.Spec.URL = "http://elsewhere/disk" })
			s.volume("a", 1)
		}, want: []string{"of the same image still exists"}},
	})
}

func TestTruth(t *testing.T) {
	until := func(s *story) {
		s.image("a")
		s.syncing("a", 1)
		s.volume("a", 1)
	}
	runStories(t, Truth, map[string]storyTest{
		"a good life": {tell: func(s *story) { s.life("a", 0) }},
		"ready on nothing": {tell: func(s *story) {
			until(s)
			s.snapshotting("a")
			s.succeeded("a")
		}, want: []string{"has not Succeeded", "is not bound", "without a snapshot"}},
		"ready before the claim is bound and the snapshot is ready": {tell: func(s *story) {
			until(s)
			s.volumePhase("a", cdiv1.Succeeded)
			s.claim("a", corev1.ClaimPending)
			s.snapshotting("a")
			s.snapshot("a", false, "")
			s.succeeded("a")
		}, want: []string{"its claim lab/a-", "is not ready to use"}},
		"ready with a snapshot that is bound one way": {tell: func(s *story) {
			until(s)
			s.volumePhase("a", cdiv1.Succeeded)
			s.claim("a", corev1.ClaimBound)
			s.snapshotting("a")
			s.snapshot("a", true, "another")
			s.succeeded("a")
		}, want: []string{"is not bound both ways"}},
		"a phase that its conditions do not say": {tell: func(s *story) {
			until(s)
			s.image("a", func(i *otv1alpha1.VMDiskImage) { i.Status.Phase = otv1alpha1.PhaseQueued })
		}, want: []string{`phase is "Queued", and its conditions say "Syncing"`}},
		"a phase that is left out": {tell: func(s *story) {
			until(s)
			s.volumePhase("a", cdiv1.Succeeded)
			s.claim("a", corev1.ClaimBound)
			s.snapshot("a", true, "")
			s.image("a", s.condition("Synced", "True", "Synced"), s.condition("SnapshotReady", "True", "SnapshotReady"))
			s.succeeded("a")
		}, want: []string{`phase goes from "Syncing" to "Succeeded"`, "without an artifact"}},
		"a status of an older generation": {tell: func(s *story) {
			until(s)
			s.snapshotting("a")
			s.image("a", func(i *otv1alpha1.VMDiskImage) {
				i.Generation = 2
				i.Status.Conditions[0].Message = "another"
			})
		}, want: []string{"observedGeneration is 1, and the generation 2"}},
		"a transition time that moves by itself": {tell: func(s *story) {
			until(s)
			s.later(time.Second)
			s.image("a", func(i *otv1alpha1.VMDiskImage) { i.Status.Conditions[0].LastTransitionTime = metav1.NewTime(s.now) })
		}, want: []string{"the transition time of Synced moves"}},
		"a transition time that goes back": {tell: func(s *story) {
			until(s)
			s.later(-time.Minute)
			s.snapshotting("a")
		}, want: []string{"the transition time of Synced goes back"}},
	})
}

func TestQuiet(t *testing.T) {
	runStories(t, Quiet, map[string]storyTest{
		"the leader's Lease": {tell: func(s *story) {
			s.put("leases", &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: operator, Name: "disk-sync-operator"}})
		}},
		"a status": {tell: func(s *story) { s.image("a") }, want: []string{"nothing was left to do"}},
		"a slot":   {tell: func(s *story) { s.slot(0, "") }, want: []string{"nothing was left to do"}},
	})
}
