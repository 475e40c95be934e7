package fault

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/fault/lab"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/pelotech/open-terrain/e2e/invariant/endstate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// How many random histories there are.
const (
	histories    = 3
	allHistories = 60
)

// edit is one thing that a user does.
type edit struct {
	What  string
	Image string
	Value int
}

func (e edit) String() string { return fmt.Sprintf("%s %s %d", e.What, e.Image, e.Value) }

// wanted is what the edits come to: what there is in the end must depend on nothing else.
type wantedImage struct {
	url       string
	volume    otv1alpha1.VolumePolicy
	requested string
	users     int32
	used      bool
}

var edits = rapid.Custom(func(t *rapid.T) edit {
	return edit{
		What:  rapid.SampledFrom([]string{"create", "url", "url", "request", "use", "delete", "drop", "policy", "pause", "settle"}).Draw(t, "what"),
		Image: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "image"),
		Value: rapid.IntRange(0, 3).Draw(t, "value"),
	}
})

// urls that a history may choose from: all but the last one end well.
var urls = []string{"http://images.test/one", "http://images.test/two", "http://images.test/first-fails", "http://images.test/status/404"}

// randomHistories compares what is there after a history of edits with what is there when nobody wanted anything else but what
// was wanted last: incremental state equals fresh state.
func randomHistories(t *testing.T, w *lab.World) {
	life := w.Operator(t, nil, lab.Alone()...)
	defer life.End()
	number := histories
	if thorough() {
		number = allHistories
	}
	require.NoError(t, flag.Set("rapid.checks", strconv.Itoa(number)))
	require.NoError(t, flag.Set("rapid.seed", strconv.FormatUint(seed(t), 10)))
	require.NoError(t, flag.Set("rapid.nofailfile", "true"))
	line := row{story: "random histories", of: number}
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		start := time.Now()
		err := compare(t, w, n, rapid.SliceOfN(edits, 2, 10).Draw(rt, "edits"))
		line.add(lab.Result{Took: time.Since(start)}, err)
		if err != nil {
			rt.Fatal(err)
		}
	})
	report(t, line)
	// A comparison that never turns red would be none.
	one, other := map[string]*wantedImage{"a": {url: urls[0]}}, map[string]*wantedImage{"a": {url: urls[0], volume: otv1alpha1.VolumeDeleteAfterSnapshot}}
	assert.ErrorContains(t, same(t.Context(), w, "control", [2][]lab.Step{anew(one), anew(other)}, one), "missing: datavolumes a-current")
}

func compare(t *testing.T, w *lab.World, n int, history []edit) error {
	t.Helper()
	steps, images, policy := script(history)
	steps = append([]lab.Step{lab.Policy(nil)}, steps...)
	if err := same(t.Context(), w, strconv.Itoa(n), [2][]lab.Step{append([]lab.Step{lab.Policy(policy)}, anew(images)...), steps}, images); err != nil {
		return fmt.Errorf("edits %v: %w", history, err)
	}
	return nil
}

// same says how what the steps come to (the second of the two) differs from the images made at once (the first).
func same(ctx context.Context, w *lab.World, name string, twice [2][]lab.Step, images map[string]*wantedImage) error {
	incremental, err := w.Play(ctx, "history-"+name, twice[1])
	if err != nil {
		return err
	}
	fresh, err := w.Play(ctx, "fresh-"+name, twice[0])
	if err != nil {
		return fmt.Errorf("made at once: %w", err)
	}
	is, should := plain(incremental, images), plain(fresh, images)
	if diff := is.Diff(should); len(diff) > 0 {
		return fmt.Errorf("it is not as if made at once:\n%s", strings.Join(diff, "\n"))
	}
	return nil
}

// plain leaves out what depends on history by design: an image whose last change fails keeps the artifact that it had.
func plain(events []history.Event, images map[string]*wantedImage) endstate.State {
	state := endstate.Plain(events)
	for name, image := range images {
		if image.url != urls[3] {
			continue
		}
		for key := range state.Objects {
			if strings.HasSuffix(key, " "+name) || strings.Contains(key, " "+name+"-") {
				delete(state.Objects, key)
			}
		}
	}
	for key := range state.Objects {
		if strings.HasPrefix(key, "volumesnapshotcontents") {
			delete(state.Objects, key) // they follow the snapshots, under names that tell nothing
		}
	}
	return state
}

// script turns edits into steps, and follows what they come to. What makes no sense is left out.
func script(history []edit) ([]lab.Step, map[string]*wantedImage, map[string]string) {
	var steps []lab.Step
	images, policy := map[string]*wantedImage{}, map[string]string{}
	for i, e := range history {
		switch e.What {
		case "pause":
			steps = append(steps, lab.Pass(time.Duration(e.Value)*60*time.Millisecond))
		case "settle":
			steps = append(steps, lab.Settled())
		case "policy":
			policy = map[string]string{
				"concurrency": strconv.Itoa(1 + e.Value), "retryLimit": strconv.Itoa(1 + e.Value%2), "unusedImageTTL": []string{"0s", "1h"}[e.Value%2],
			}
			steps = append(steps, lab.Policy(policy))
		default:
			steps = append(steps, ofImage(images, e, i)...)
		}
	}
	return append(steps, lab.Settled()), images, policy
}

func ofImage(images map[string]*wantedImage, e edit, i int) []lab.Step {
	image := images[e.Image]
	if image == nil {
		if e.What != "create" && e.What != "url" {
			return nil
		}
		images[e.Image] = &wantedImage{url: urls[e.Value], volume: otv1alpha1.VolumeRetain}
		return []lab.Step{lab.Create(e.Image, urls[e.Value])}
	}
	switch e.What {
	case "url":
		image.url = urls[e.Value]
		return []lab.Step{lab.Change(e.Image, lab.URL(image.url))}
	case "request":
		image.requested = strconv.Itoa(i)
		return []lab.Step{lab.Request(e.Image, image.requested)}
	case "drop":
		// And not back: a volume that is gone is not downloaded for that.
		image.volume = otv1alpha1.VolumeDeleteAfterSnapshot
		return []lab.Step{lab.Change(e.Image, func(i *otv1alpha1.VMDiskImage) { i.Spec.VolumePolicy = image.volume })}
	case "use":
		image.users, image.used = int32(e.Value), true
		return []lab.Step{lab.Use(e.Image, image.users)}
	case "delete":
		if image.users > 0 {
			return nil
		}
		delete(images, e.Image)
		// A finalizer that is about to go may hold it for a moment, and its name is taken until then.
		return []lab.Step{lab.Delete(e.Image), lab.AwaitAbsent(e.Image)}
	}
	return nil
}

// anew makes the images as they were wanted last.
func anew(images map[string]*wantedImage) []lab.Step {
	var steps []lab.Step
	for _, name := range []string{"a", "b"} {
		image := images[name]
		if image == nil {
			continue
		}
		steps = append(steps, lab.Create(name, image.url, func(i *otv1alpha1.VMDiskImage) {
			i.Spec.VolumePolicy = image.volume
			if image.requested != "" {
				i.Annotations = map[string]string{otv1alpha1.AnnotationSyncRequestedAt: image.requested}
			}
		}))
		if image.used {
			steps = append(steps, lab.Use(name, image.users))
		}
	}
	return append(steps, lab.Settled())
}
