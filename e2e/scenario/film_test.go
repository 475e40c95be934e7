package scenario

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// frame is one change of an image, of a DataVolume or of an importer pod.
type frame struct {
	revision int64 // of the write: one order over all kinds
	kind     string
	name     string
	phase    string
	gone     bool
}

const (
	imageFrame    = "image"
	volumeFrame   = "DataVolume"
	importerFrame = "importer pod"
)

// film records every change of the images, DataVolumes and importer pods of some namespaces.
type film struct {
	namespaces []string

	mu     sync.Mutex
	frames []frame
}

// film begins to record. It ends with the story.
func (w *world) film(t *testing.T, namespaces ...string) *film {
	t.Helper()
	f := &film{namespaces: namespaces}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	t.Cleanup(func() { cancel(); done.Wait() })
	for _, list := range []client.ObjectList{&v1alpha1.VMDiskImageList{}, &cdiv1.DataVolumeList{}, &corev1.PodList{}} {
		changes, err := w.client.Watch(ctx, list)
		require.NoError(t, err)
		done.Go(func() {
			defer changes.Stop()
			for {
				select {
				case event, open := <-changes.ResultChan():
					if !open {
						return
					}
					f.record(event)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return f
}

func (f *film) record(event watch.Event) {
	object, ok := event.Object.(client.Object)
	if !ok || !slices.Contains(f.namespaces, object.GetNamespace()) {
		return
	}
	revision, _ := strconv.ParseInt(object.GetResourceVersion(), 10, 64) // a number since Kubernetes 1.35
	shot := frame{revision: revision, name: object.GetNamespace() + "/" + object.GetName(), gone: event.Type == watch.Deleted}
	switch o := object.(type) {
	case *v1alpha1.VMDiskImage:
		shot.kind, shot.phase = imageFrame, string(o.Status.Phase)
	case *cdiv1.DataVolume:
		shot.kind, shot.phase = volumeFrame, string(o.Status.Phase)
	case *corev1.Pod:
		shot.kind, shot.phase = importerFrame, string(o.Status.Phase)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frames = append(f.frames, shot)
}

// cut is the film so far, in the order of the writes.
func (f *film) cut() []frame {
	f.mu.Lock()
	defer f.mu.Unlock()
	frames := slices.Clone(f.frames)
	slices.SortStableFunc(frames, func(a, b frame) int { return cmp.Compare(a.revision, b.revision) })
	return frames
}

// start is the beginning of an attempt.
type start struct {
	image    string
	revision int64
	// syncing is how many images were Syncing then, this one included.
	syncing int
}

// starts lists the attempts, in order.
func (f *film) starts() []start {
	var starts []start
	syncing := map[string]bool{}
	for _, shot := range f.cut() {
		if shot.kind != imageFrame {
			continue
		}
		is := shot.phase == string(v1alpha1.PhaseSyncing) && !shot.gone
		if is && !syncing[shot.name] {
			starts = append(starts, start{image: shot.name, revision: shot.revision, syncing: len(syncing) + 1})
		}
		if is {
			syncing[shot.name] = true
		} else {
			delete(syncing, shot.name)
		}
	}
	return starts
}

// keptTo checks that there never were more images Syncing, DataVolumes at work, or importers running, than the limit.
func (f *film) keptTo(t *testing.T, limit int) {
	t.Helper()
	for kind, idle := range map[string][]string{
		imageFrame:    {"", string(v1alpha1.PhaseQueued), string(v1alpha1.PhaseSnapshotting), string(v1alpha1.PhaseSucceeded), string(v1alpha1.PhaseFailed)},
		volumeFrame:   {string(cdiv1.Succeeded)},
		importerFrame: {string(corev1.PodPending), string(corev1.PodSucceeded), string(corev1.PodFailed)},
	} {
		most, working := 0, map[string]bool{}
		for _, shot := range f.cut() {
			if shot.kind != kind {
				continue
			}
			if shot.gone || slices.Contains(idle, shot.phase) {
				delete(working, shot.name)
			} else {
				working[shot.name] = true
			}
			most = max(most, len(working))
		}
		assert.LessOrEqual(t, most, limit, "%s: at work at once", kind)
		assert.Positive(t, most, "%s: the film shows something", kind)
	}
}

// order is in which order the images began their first attempt.
func (f *film) order() []string {
	var order []string
	for _, s := range f.starts() {
		if !slices.Contains(order, s.image) {
			order = append(order, s.image)
		}
	}
	return order
}

// startOf is the image's first beginning.
func (f *film) startOf(t *testing.T, image *v1alpha1.VMDiskImage) start {
	t.Helper()
	for _, s := range f.starts() {
		if s.image == keyOf(image) {
			return s
		}
	}
	require.Fail(t, "the film does not show it begin", "%s", keyOf(image))
	return start{}
}

// goneAt is when the image's DataVolume went.
func (f *film) goneAt(t *testing.T, image *v1alpha1.VMDiskImage) int64 {
	t.Helper()
	for _, shot := range f.cut() {
		if shot.kind == volumeFrame && shot.gone && shot.name == image.Namespace+"/"+childOf(image) {
			return shot.revision
		}
	}
	require.Fail(t, "the film does not show its DataVolume go", "%s", keyOf(image))
	return 0
}

func keyOf(image *v1alpha1.VMDiskImage) string { return image.Namespace + "/" + image.Name }

func keysOf(images []*v1alpha1.VMDiskImage) []string {
	keys := make([]string, 0, len(images))
	for _, image := range images {
		keys = append(keys, keyOf(image))
	}
	return keys
}
