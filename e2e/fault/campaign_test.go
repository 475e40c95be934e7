package fault

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/e2e/fault/lab"
	"github.com/pelotech/open-terrain/e2e/invariant"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"
)

// TestImports has one write of an image's life go wrong, with pods and downloads: the operator is killed before or after it,
// its answer is lost, the API server refuses it, the connection hangs.
func TestImports(t *testing.T) {
	t.Parallel()
	w := lab.Start(t, lab.Options{Behaviour: lab.Behaviour, Policy: lab.BasePolicy(), Settings: lab.Settings()})
	tell(t, w, lab.Imports(), lab.Single)
}

// TestStories does the same, and more, to the stories of all that users do, with imports that are played at once. Each group
// has a world of its own, because most of a story is waiting.
func TestStories(t *testing.T) {
	t.Parallel()
	for group, stories := range map[string][]lab.Story{
		"lives":     lab.Lives(),
		"changes":   slices.Concat(lab.Updates(), lab.Healing()),
		"uses":      slices.Concat(lab.Using(), lab.Collections()),
		"deletions": lab.Deletions(),
	} {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			w := lab.Start(t, lab.Options{Behaviour: lab.Behaviour, Instant: ptr.To(50 * time.Millisecond), Policy: lab.BasePolicy(), Settings: lab.Settings()})
			tell(t, w, stories, lab.Single, lab.Watches, lab.Double)
		})
	}
}

// TestHistories compares random histories with what is made at once, and shows that the oracles of stories turn red.
func TestHistories(t *testing.T) {
	t.Parallel()
	settings := lab.Settings()
	settings.Touched = true
	w := lab.Start(t, lab.Options{Behaviour: lab.Behaviour, Instant: ptr.To(50 * time.Millisecond), Policy: lab.BasePolicy(), Settings: settings, Chart: []string{"inUseProtection.enabled=false"}})
	t.Run("random", func(t *testing.T) { randomHistories(t, w) })
	t.Run("deletions that no policy refuses", func(t *testing.T) { tell(t, w, lab.Held(), lab.Single, lab.Double) })
	t.Run("sabotage turns the oracles red", func(t *testing.T) { sabotage(t, w) })
}

// TestLeaders has several processes that each believe to be the leader.
func TestLeaders(t *testing.T) {
	t.Parallel()
	w := lab.Start(t, lab.Options{Behaviour: lab.Behaviour, Policy: lab.BasePolicy(), Settings: slow()})
	t.Run("two leaders", func(t *testing.T) { twoLeaders(t, w) })
	t.Run("a leader that is paused", func(t *testing.T) { pausedLeader(t, w) })
	t.Run("an attempt that has ended", func(t *testing.T) { endedAttempts(t, w) })
}

// TestLate has writes of a former leader that come late, and answers that never come.
func TestLate(t *testing.T) {
	t.Parallel()
	w := lab.Start(t, lab.Options{Behaviour: lab.Behaviour, Policy: lab.BasePolicy(), Settings: slow()})
	t.Run("a request that hangs", func(t *testing.T) { requestHangs(t, w) })
	t.Run("a write that comes late", func(t *testing.T) { lateWrites(t, w) })
}

// slow are the settings for two processes at a time, on a machine that has other things to do.
func slow() invariant.Settings {
	s := lab.Settings()
	s.Lag, s.Slack = 3*time.Second, 250*time.Millisecond
	return s
}

// TestQueue runs what needs many images, with imports that take as long as they are told.
func TestQueue(t *testing.T) {
	settings := invariant.Settings{Lag: 500 * time.Millisecond, Idle: 5 * time.Second, Late: 5 * time.Second, OrderedStarts: true}
	w := lab.Start(t, lab.Options{Behaviour: lab.Behaviour, Instant: ptr.To(300 * time.Millisecond), Settings: settings})
	t.Run("a fresh start finds the order", func(t *testing.T) { freshStart(t, w) })
	t.Run("the policy changes", func(t *testing.T) { policyChanges(t, w) })
	t.Run("the API server restarts", func(t *testing.T) { apiServerRestarts(t, w) })
	t.Run("the fence lets the rightful pass", func(t *testing.T) { fenceLetsPass(t, w) })
	t.Run("nothing is written when all is done", func(t *testing.T) { quiet(t, w) })
	t.Run("a naive operator turns the checks red", func(t *testing.T) { naiveTurnsRed(t, w) })
}

// create images with these URLs, in that order, and give their names.
func create(t *testing.T, w *lab.World, namespace string, urls ...string) {
	t.Helper()
	require.NoError(t, w.Namespace(t.Context(), namespace))
	for i, url := range urls {
		// Names against the order of creation, so that an order by name shows.
		image := lab.Image(namespace, fmt.Sprintf("image-%04d", len(urls)-i), url)
		if sum, ok := strings.CutPrefix(url, wrongChecksum); ok {
			image.Spec.URL, image.Spec.Checksum = sum, "sha256:"+strings.Repeat("0", 64)
		}
		require.NoError(t, w.Client.Create(t.Context(), image))
	}
}

// wrongChecksum before a URL says so.
const wrongChecksum = "wrong:"

// settle waits for the end of a story and checks everything since a revision.
func settle(t *testing.T, w *lab.World, after int64, patience time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	settled := w.Settle(ctx)
	require.NoError(t, w.Check(after))
	require.NoError(t, settled)
}

// now is the revision up to which everything is recorded.
func now(t *testing.T, w *lab.World) int64 {
	t.Helper()
	revision, err := w.Recorder.Sync(t.Context())
	require.NoError(t, err)
	return revision
}

func policy(concurrency, retryLimit int, backoff string) map[string]string {
	return map[string]string{
		"concurrency": fmt.Sprint(concurrency), "retryLimit": fmt.Sprint(retryLimit), "retryBackoffDuration": backoff,
	}
}
