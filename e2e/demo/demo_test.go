package demo

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/chart"
	"github.com/pelotech/open-terrain/e2e/demo/screen"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestDemo runs what make demo runs, with a summary that has to hold.
func TestDemo(t *testing.T) {
	if os.Getenv("OT_E2E") == "existing" {
		t.Skip("the demo is for a control plane of its own")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	var out bytes.Buffer
	dir := t.TempDir()
	verdicts, err := Run(ctx, Options{Screen: screen.New(&out, os.Getenv), Dir: dir})
	t.Log("\n" + out.String())
	require.NoError(t, err)
	require.Len(t, verdicts, 19)
	for _, v := range verdicts {
		assert.Empty(t, v.Faults, v.Claim)
	}
	for _, promised := range []string{"$ kubectl apply -f", `'{"data":{"concurrency":"4"}}'`, "lab-a/windows", "How they ended", "ChecksumMismatch", "pelotech.ot/in-use: 1 virtual machine uses this image (lab-b/student-vm)", "lab-a/web          Provisioning", "lab-b/student-vm   Ready", "lesson-1           Ready", `workspace.pelotech.ot "lesson-1" deleted`} {
		assert.Contains(t, out.String(), promised)
	}
	assert.NotContains(t, out.String(), "\x1b", "no control codes where there is no terminal")
}

func TestACancelledDemoEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run(ctx, Options{Screen: screen.New(io.Discard, os.Getenv), Dir: t.TempDir()})
	assert.ErrorIs(t, err, context.Canceled)
}

func TestManifestsAndCastAgree(t *testing.T) {
	images, made, found := []*otv1alpha1.VMDiskImage{}, map[string]bool{}, 0
	for _, object := range filled(t, "2-images.yaml") {
		image := &otv1alpha1.VMDiskImage{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, image))
		images = append(images, image)
	}
	for _, object := range filled(t, "3-machines.yaml") {
		found++
		machine := &otv1alpha1.VirtualMachine{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, machine))
		if key := machine.ImageKey(); machine.Spec.VMDiskImageTemplate != nil && !made[key.String()] {
			made[key.String()] = true
			image := &otv1alpha1.VMDiskImage{Spec: *machine.Spec.VMDiskImageTemplate}
			image.Namespace, image.Name = key.Namespace, key.Name
			images = append(images, image)
		}
	}
	assert.Equal(t, machines, found)
	require.Len(t, images, len(cast()))
	for i, actor := range cast() {
		image := images[i]
		assert.Equal(t, actor.namespace+"/"+actor.name, image.Namespace+"/"+image.Name)
		assert.Equal(t, "http://127.0.0.1:1"+actor.path, atServer(image.Spec.URL, image.Spec.SourceType), actor.name)
		if image.Spec.Checksum != "" {
			name := image.Spec.URL[strings.LastIndex(image.Spec.URL, "/")+1:]
			assert.Equal(t, "sha256:"+files()[name].SHA256(), image.Spec.Checksum, actor.name)
		}
	}
}

// filled are the objects of a manifest, with addresses.
func filled(t *testing.T, name string) []*unstructured.Unstructured {
	manifest, err := manifests.ReadFile("manifests/" + name)
	require.NoError(t, err)
	text := fill(string(manifest), map[string]string{"IMAGES": "http://127.0.0.1:1", "BUCKET": "http://127.0.0.1:2"})
	assert.NotContains(t, text, "${", "every address is filled in")
	objects, err := chart.Objects([]byte(text))
	require.NoError(t, err)
	return objects
}

func TestLaterChecksumsAreRight(t *testing.T) {
	for path, names := range map[string][]string{
		"manifests/later/3-changes.yaml":       {"ubuntu-next.qcow2", "desktop.qcow2"},
		"manifests/workspace/4-workspace.yaml": {"postgres.qcow2", "notebook.qcow2"},
	} {
		manifest, err := manifests.ReadFile(path)
		require.NoError(t, err)
		for _, name := range names {
			assert.Contains(t, string(manifest), name+"\n")
			assert.Contains(t, string(manifest), "sha256:"+files()[name].SHA256(), name)
		}
	}
}

// atServer is the URL at the image server, or what stands for it where there is none.
func atServer(url string, source otv1alpha1.SourceType) string {
	if source == otv1alpha1.SourceHTTP {
		return url
	}
	return "http://127.0.0.1:1"
}
