package cdi_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/pelotech/open-terrain/e2e/sim/cdi"
	"github.com/pelotech/open-terrain/e2e/sim/diskimage"
	"github.com/pelotech/open-terrain/e2e/sim/imageserver"
	"github.com/pelotech/open-terrain/e2e/sim/registryserver"
	"github.com/pelotech/open-terrain/e2e/sim/s3server"
)

const (
	patience = 15 * time.Second
	once     = "import-once"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// shared by all tests of the package: one control plane, one simulator, one server of each kind.
var (
	cl       client.WithWatch
	cluster  *harness.Cluster
	web      *imageserver.Server
	bucket   *s3server.Server
	hub      *registryserver.Server
	sim      *cdi.Simulator
	behave   = newBehaviours()
	good     = diskimage.QCOW2(64<<20, 512<<10, 1)
	uidRegex = regexp.MustCompile(`(prime|pvc)-[0-9a-f-]{36}`)
)

func run(m *testing.M) (code int, err error) {
	ctrllog.SetLogger(logr.Discard())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if cluster, err = harness.Start(ctx, harness.Options{}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	if cl, err = cluster.Client("test"); err != nil {
		return 1, err
	}
	if web, err = imageserver.Start(imageserver.Options{}); err != nil {
		return 1, err
	}
	defer web.Close()
	if bucket, err = s3server.Start(s3server.Options{AccessKey: "AKID", SecretKey: "SECRET"}); err != nil {
		return 1, err
	}
	defer bucket.Close()
	if hub, err = registryserver.Start(registryserver.Options{}); err != nil {
		return 1, err
	}
	defer hub.Close()
	web.Add("d.qcow2", good.Bytes)
	web.Add("large.qcow2", diskimage.QCOW2(128<<20, 512<<10, 1).Bytes)
	if err := bucket.Put("images", "d.qcow2", good.Bytes); err != nil {
		return 1, err
	}
	if err := hub.PutDisk(ctx, "disks/good:v1", "disk/disk.qcow2", good.Bytes); err != nil {
		return 1, err
	}
	if err := importOnce(ctx); err != nil {
		return 1, err
	}
	if sim, err = cdi.Start(ctx, cluster.Config, cdi.Options{Behaviour: behave.of, ProgressInterval: 100 * time.Millisecond}); err != nil {
		return 1, err
	}
	code = m.Run()
	cancel()
	sim.Wait()
	return code, nil
}

// importOnce makes the priority class that stands for restartPolicy Never, with the policy that sees to it.
func importOnce(ctx context.Context) error {
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: once}}
	if err := cl.Create(ctx, class); err != nil {
		return err
	}
	manifest, err := os.ReadFile("testdata/import-once.yaml")
	if err != nil {
		return err
	}
	if _, err := cluster.Kubectl(ctx, string(manifest), "apply", "-f", "-"); err != nil {
		return err
	}
	for { // the policy takes a moment to come into force
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "probe-", Labels: map[string]string{"cdi.kubevirt.io": "importer"}},
			Spec:       corev1.PodSpec{PriorityClassName: once, RestartPolicy: corev1.RestartPolicyOnFailure, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
		if err := cl.Create(ctx, pod, client.DryRunAll); err != nil {
			return err
		}
		if pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	require.NoError(t, cl.Create(t.Context(), ns))
	return ns.Name
}

func httpVolume(ns, name, url string, mods ...func(*cdiv1.DataVolume)) *cdiv1.DataVolume {
	dv := &cdiv1.DataVolume{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{"who": "test"}},
		Spec: cdiv1.DataVolumeSpec{
			Source:  &cdiv1.DataVolumeSource{HTTP: &cdiv1.DataVolumeSourceHTTP{URL: url}},
			Storage: &cdiv1.StorageSpec{Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("128Mi")}}},
		},
	}
	for _, mod := range mods {
		mod(dv)
	}
	return dv
}

func onlyOnce(dv *cdiv1.DataVolume) { dv.Spec.PriorityClassName = once }

func size(s string) func(*cdiv1.DataVolume) {
	return func(dv *cdiv1.DataVolume) {
		dv.Spec.Storage.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(s)
	}
}

func condition(dv *cdiv1.DataVolume, kind cdiv1.DataVolumeConditionType) cdiv1.DataVolumeCondition {
	for _, c := range dv.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return cdiv1.DataVolumeCondition{}
}

// line is a status as one line of a transcript.
func line(dv *cdiv1.DataVolume) string {
	var b strings.Builder
	fmt.Fprintf(&b, "phase=%q progress=%s restarts=%d", dv.Status.Phase, dv.Status.Progress, dv.Status.RestartCount)
	for _, kind := range []cdiv1.DataVolumeConditionType{cdiv1.DataVolumeRunning, cdiv1.DataVolumeReady, cdiv1.DataVolumeBound} {
		c := condition(dv, kind)
		fmt.Fprintf(&b, " | %s=%s %q %q", kind, c.Status, c.Reason, c.Message)
	}
	return uidRegex.ReplaceAllString(b.String(), "$1-UID")
}

// follow creates a DataVolume and returns the lines of its life up to the one where stop says true.
func follow(t *testing.T, dv *cdiv1.DataVolume, stop func(*cdiv1.DataVolume) bool) ([]string, *cdiv1.DataVolume) {
	t.Helper()
	require.NoError(t, cl.Create(t.Context(), dv))
	return watch(t, dv, stop)
}

func watch(t *testing.T, dv *cdiv1.DataVolume, stop func(*cdiv1.DataVolume) bool) ([]string, *cdiv1.DataVolume) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w, err := cl.Watch(ctx, &cdiv1.DataVolumeList{}, client.InNamespace(dv.Namespace), client.MatchingFields{"metadata.name": dv.Name},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: dv.ResourceVersion}})
	require.NoError(t, err)
	defer w.Stop()
	var lines []string
	for event := range w.ResultChan() {
		got, ok := event.Object.(*cdiv1.DataVolume)
		require.True(t, ok, "%v", event.Object)
		if l := line(got); got.Status.Conditions != nil && (len(lines) == 0 || lines[len(lines)-1] != l) {
			lines = append(lines, l)
		}
		if stop(got) {
			return lines, got
		}
	}
	require.FailNow(t, "what was waited for has not come", strings.Join(lines, "\n"))
	return nil, nil
}

func bound(dv *cdiv1.DataVolume) bool {
	return dv.Status.Phase == cdiv1.Succeeded && condition(dv, cdiv1.DataVolumeBound).Status == corev1.ConditionTrue
}

func failing(dv *cdiv1.DataVolume) bool {
	c := condition(dv, cdiv1.DataVolumeRunning)
	return c.Status == corev1.ConditionFalse && slices.Contains([]string{"Error", "ImagePullFailed", "ChecksumError"}, c.Reason)
}

func golden(t *testing.T, file string, lines []string) {
	t.Helper()
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}
