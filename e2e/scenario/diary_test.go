package scenario

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// diary has every version of an image, from the moment it was opened.
type diary struct {
	mu    sync.Mutex
	pages []*v1alpha1.VMDiskImage
}

// diary is opened at the version that the image has in the story's hands. It ends with the story.
func (w *world) diary(t *testing.T, image *v1alpha1.VMDiskImage) *diary {
	t.Helper()
	d := &diary{}
	ctx, cancel := context.WithCancel(context.Background())
	changes, err := w.client.Watch(ctx, &v1alpha1.VMDiskImageList{}, client.InNamespace(image.Namespace),
		client.MatchingFields{"metadata.name": image.Name}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: image.ResourceVersion}})
	require.NoError(t, err)
	var done sync.WaitGroup
	t.Cleanup(func() { cancel(); done.Wait() })
	done.Go(func() {
		defer changes.Stop()
		for {
			select {
			case event, open := <-changes.ResultChan():
				if !open {
					return
				}
				if page, is := event.Object.(*v1alpha1.VMDiskImage); is {
					d.mu.Lock()
					d.pages = append(d.pages, page)
					d.mu.Unlock()
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return d
}

// upTo returns the pages when the version in the story's hands is among them.
func (w *world) upTo(t *testing.T, d *diary, image *v1alpha1.VMDiskImage) []*v1alpha1.VMDiskImage {
	t.Helper()
	var pages []*v1alpha1.VMDiskImage
	require.Eventually(t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		for i, page := range d.pages {
			if page.ResourceVersion == image.ResourceVersion {
				pages = d.pages[:i+1]
				return true
			}
		}
		return false
	}, w.patience, w.poll, "the diary has version %s", image.ResourceVersion)
	return pages
}

// apply applies the image's spec as people do, and takes in what has come of it.
func (w *world) apply(t *testing.T, image *v1alpha1.VMDiskImage, mods ...func(*v1alpha1.VMDiskImage)) *v1alpha1.VMDiskImage {
	t.Helper()
	for _, mod := range mods {
		mod(image)
	}
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "VMDiskImage",
		"metadata": map[string]string{"name": image.Name, "namespace": image.Namespace}, "spec": image.Spec,
	})
	require.NoError(t, err)
	_, err = w.cluster.Kubectl(t.Context(), string(manifest), "apply", "-f", "-")
	require.NoError(t, err)
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(image), image))
	return image
}

// waitsReady is kubectl wait, beside the story. The channel gives its answer.
func (w *world) waitsReady(t *testing.T, image *v1alpha1.VMDiskImage) <-chan error {
	t.Helper()
	answer := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() {
		_, err := w.cluster.Kubectl(ctx, "", "wait", "--for=condition=Ready", "vmdi/"+image.Name, "-n", image.Namespace, "--timeout="+w.patience.String())
		answer <- err
	}()
	return answer
}

// stillReady checks that the image could be cloned from that revision in every version of it.
func stillReady(t *testing.T, pages []*v1alpha1.VMDiskImage, revisions ...string) {
	t.Helper()
	for _, page := range pages {
		if assert.True(t, page.IsReady(), "version %s: %s", page.ResourceVersion, page.Status.Message) {
			assert.Contains(t, revisions, page.Status.Artifact.Revision)
		}
	}
}
