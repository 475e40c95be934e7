package scenario

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What the shared policy fills in.
const (
	defaultSize   = "32Mi"
	defaultSecret = "bucket-keys"
)

// entry is one that the story's server gives out in a mode of the image server; the policy says how large its disk is.
func (w *world) entry(namespace, dataSync, name, mode string) v1alpha1.DataSyncVM {
	image := w.image(namespace, dataSync+"."+name)
	return v1alpha1.DataSyncVM{Name: name, SourceType: v1alpha1.SourceHTTP, URL: w.web.URL(w.path(image, mode))}
}

// dataSync creates one with entries of these names, which are given out properly.
func (w *world) dataSync(t *testing.T, namespace, name string, entries ...string) *v1alpha1.DataSync {
	t.Helper()
	d := &v1alpha1.DataSync{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.DataSyncSpec{WorkspaceID: "035"},
	}
	for _, entry := range entries {
		d.Spec.VMs = append(d.Spec.VMs, w.entry(namespace, name, entry, "ok"))
	}
	require.NoError(t, w.client.Create(t.Context(), d))
	return d
}

// edit writes a change of the spec.
func (w *world) edit(t *testing.T, d *v1alpha1.DataSync, change func(*v1alpha1.DataSync)) {
	t.Helper()
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	before := d.DeepCopy()
	change(d)
	require.NoError(t, w.client.Patch(t.Context(), d, client.MergeFrom(before)))
}

// awaitSync returns when the DataSync, with the spec that it has, is as it should be.
func (w *world) awaitSync(t *testing.T, d *v1alpha1.DataSync, what string, holds func(*v1alpha1.DataSync) bool) {
	t.Helper()
	deadline := time.Now().Add(w.patience)
	for {
		require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(d), d))
		if d.Status.ObservedGeneration == d.Generation && holds(d) {
			assert.Empty(t, apitest.Wrong(d.Status.Conditions, d.Generation))
			return
		}
		require.True(t, time.Now().Before(deadline), "%s is not %s but %s: %s", d.Name, what, d.Status.Phase, d.Status.Message)
		time.Sleep(w.poll)
	}
}

func (w *world) syncBecomes(t *testing.T, d *v1alpha1.DataSync, phase v1alpha1.DataSyncPhase) {
	t.Helper()
	w.awaitSync(t, d, string(phase), func(d *v1alpha1.DataSync) bool { return d.Status.Phase == phase })
}

// imageOf reads the image of an entry, and sees that it belongs to the DataSync.
func (w *world) imageOf(t *testing.T, d *v1alpha1.DataSync, entry string) *v1alpha1.VMDiskImage {
	t.Helper()
	image := &v1alpha1.VMDiskImage{}
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKey{Namespace: d.Namespace, Name: v1alpha1.DataSyncImageName(d.Name, entry)}, image))
	assert.True(t, metav1.IsControlledBy(image, d), "%s belongs to %s", image.Name, d.Name)
	return image
}

// downloads of an entry's URL so far.
func (w *world) downloads(d *v1alpha1.DataSync, entry string) int {
	return w.web.Of(w.path(w.image(d.Namespace, d.Name+"."+entry), "ok")).Complete
}

// dataSyncExample applies the example of the proposal, as it stands there: the policy gives diskSize and secretRef.
func dataSyncExample(t *testing.T, w *world) {
	if w.real {
		t.Skip("it would ask Amazon")
	}
	namespace := w.namespace(t)
	_, secretKey := w.bucket.Keys()
	w.keys(t, namespace, defaultSecret, secretKey)
	for _, vm := range []string{"attacker", "victim"} {
		require.NoError(t, w.bucket.Put("uki-lrn-vm-images", "images/lab-151/1.0.0/"+vm+".qcow2", w.disk.Bytes))
	}
	root, err := harness.Root()
	require.NoError(t, err)
	example, err := os.ReadFile(filepath.Join(root, "apis", "ot", "v1alpha1", "testdata", "datasync.yaml"))
	require.NoError(t, err)
	_, err = w.cluster.Kubectl(t.Context(), string(example), "apply", "-n", namespace, "-f", "-")
	require.NoError(t, err)
	_, err = w.cluster.Kubectl(t.Context(), "", "wait", "--for=condition=Ready", "dsync/sync-workspace-123", "-n", namespace, "--timeout", w.patience.String())
	require.NoError(t, err)

	d := &v1alpha1.DataSync{}
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "sync-workspace-123"}, d))
	assert.Equal(t, v1alpha1.DataSyncSucceeded, d.Status.Phase)
	assert.Equal(t, "2/2", d.Status.Ready)
	assert.Equal(t, &v1alpha1.DataSyncCounts{Total: 2, Succeeded: 2}, d.Status.Counts)
	assert.Equal(t, []v1alpha1.DataSyncEntry{
		{Name: "attacker", Image: "sync-workspace-123-attacker", Phase: v1alpha1.PhaseSucceeded},
		{Name: "victim", Image: "sync-workspace-123-victim", Phase: v1alpha1.PhaseSucceeded},
	}, d.Status.Entries)
	for _, vm := range []string{"attacker", "victim"} {
		image := w.imageOf(t, d, vm)
		w.checkArtifact(t, image)
		assert.Equal(t, 1, w.bucket.Of("uki-lrn-vm-images", "images/lab-151/1.0.0/"+vm+".qcow2").Complete, "downloads")
		assert.Equal(t, vm, image.Spec.Name)
		assert.Equal(t, defaultSecret, image.Spec.SecretRef)
	}
	assert.Less(t, w.imageOf(t, d, "attacker").Status.Ticket, w.imageOf(t, d, "victim").Status.Ticket, "in the order of the list")
	w.told(t, d, map[string]int{"Syncing": 1, "Succeeded": 1})
	out, err := w.cluster.Kubectl(t.Context(), "", "get", "dsync", "-n", namespace)
	require.NoError(t, err)
	assert.Regexp(t, `NAME +PHASE +READY +FAILED +AGE\nsync-workspace-123 +Succeeded +2/2 +0 `, out)
}

func dataSyncFailsAndRecovers(t *testing.T, w *world) {
	namespace := w.namespace(t)
	d := w.dataSync(t, namespace, "lab", "good")
	w.edit(t, d, func(d *v1alpha1.DataSync) {
		d.Spec.VMs = append(d.Spec.VMs, w.entry(namespace, "lab", "bad", "status/404"))
	})
	w.syncBecomes(t, d, v1alpha1.DataSyncFailed)
	assert.Contains(t, d.Status.Message, "1 of 2 entries failed: bad: Attempt 3 of 3 failed: SourceNotFound")
	assert.True(t, meta.IsStatusConditionTrue(d.Status.Conditions, v1alpha1.ConditionStalled))
	w.awaitSync(t, d, "ready with the other entry", func(d *v1alpha1.DataSync) bool { return d.Status.Ready == "1/2" })
	assert.Equal(t, &v1alpha1.DataSyncCounts{Total: 2, Succeeded: 1, Failed: 1}, d.Status.Counts)

	w.edit(t, d, func(d *v1alpha1.DataSync) { d.Spec.VMs[1].URL = w.entry(namespace, "lab", "bad", "ok").URL })
	w.syncBecomes(t, d, v1alpha1.DataSyncSucceeded)
	assert.False(t, meta.IsStatusConditionTrue(d.Status.Conditions, v1alpha1.ConditionStalled))
	assert.Equal(t, 1, w.downloads(d, "good"), "of the entry that was good all the time")

	w.edit(t, d, func(d *v1alpha1.DataSync) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, v1alpha1.AnnotationSyncRequestedAt, "now")
	})
	w.awaitSync(t, d, "synced afresh", func(d *v1alpha1.DataSync) bool {
		return d.Status.Phase == v1alpha1.DataSyncSucceeded && w.downloads(d, "good") == 2 && w.downloads(d, "bad") == 2
	})
}

func dataSyncEntryRemoved(t *testing.T, w *world) {
	d := w.dataSync(t, w.namespace(t), "lab", "stays", "goes", "used")
	w.syncBecomes(t, d, v1alpha1.DataSyncSucceeded)
	goes, used := w.imageOf(t, d, "goes"), w.imageOf(t, d, "used")
	w.claim(t, used, 2, "lab/web", "lab/db")

	w.edit(t, d, func(d *v1alpha1.DataSync) { d.Spec.VMs = d.Spec.VMs[:1] })
	w.gone(t, goes)
	w.withoutChildren(t, goes)
	w.awaitSync(t, d, "blocked", func(d *v1alpha1.DataSync) bool {
		return meta.IsStatusConditionTrue(d.Status.Conditions, v1alpha1.ConditionDeletionBlocked)
	})
	assert.Contains(t, meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionDeletionBlocked).Message, "lab-used (virtual machines: 2, such as lab/")
	assert.Equal(t, v1alpha1.DataSyncSucceeded, d.Status.Phase, "all that is asked for is there")
	assert.Equal(t, "1/1", d.Status.Ready)
	w.withChildren(t, used)

	w.claim(t, used, 0)
	w.gone(t, used)
	w.awaitSync(t, d, "free", func(d *v1alpha1.DataSync) bool {
		return meta.IsStatusConditionFalse(d.Status.Conditions, v1alpha1.ConditionDeletionBlocked)
	})
	assert.Equal(t, 1, w.downloads(d, "stays"))
}

// dataSyncForeignImage finds somebody else's image where its own is to be.
func dataSyncForeignImage(t *testing.T, w *world) {
	namespace := w.namespace(t)
	foreign := w.create(t, w.image(namespace, "lab-taken"))
	w.becomes(t, foreign, v1alpha1.PhaseSucceeded)
	version := foreign.ResourceVersion
	d := w.dataSync(t, namespace, "lab", "taken", "free")
	w.awaitSync(t, d, "failed, with the other entry", func(d *v1alpha1.DataSync) bool {
		return d.Status.Phase == v1alpha1.DataSyncFailed && d.Status.Ready == "1/2"
	})
	assert.Contains(t, d.Status.Message, "taken: A VMDiskImage lab-taken exists that does not belong to this DataSync: rename the entry, or delete that image")
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign))
	assert.Equal(t, version, foreign.ResourceVersion, "not a byte was written")

	require.NoError(t, w.client.Delete(t.Context(), foreign))
	w.syncBecomes(t, d, v1alpha1.DataSyncSucceeded)
	assert.NotEqual(t, foreign.UID, w.imageOf(t, d, "taken").UID)
}

// dataSyncsOfTheSameNames in one namespace and in two; and when one is deleted, its images go, and no others.
func dataSyncsOfTheSameNames(t *testing.T, w *world) {
	here, there := w.namespace(t), w.namespace(t)
	all := []*v1alpha1.DataSync{
		w.dataSync(t, here, "lab", "web", "b-c"), w.dataSync(t, there, "lab", "web", "b-c"),
		w.dataSync(t, here, "other", "web"), w.dataSync(t, here, "lab-b", "c"),
	}
	seen := map[types.UID]bool{}
	for _, d := range all {
		w.syncBecomes(t, d, v1alpha1.DataSyncSucceeded)
		for _, vm := range d.Spec.VMs {
			seen[w.imageOf(t, d, vm.Name).UID] = true
			assert.Equal(t, 1, w.downloads(d, vm.Name))
		}
	}
	assert.Len(t, seen, 6)

	gone := []*v1alpha1.VMDiskImage{w.imageOf(t, all[0], "web"), w.imageOf(t, all[0], "b-c")}
	require.NoError(t, w.client.Delete(t.Context(), all[0]))
	for _, image := range gone {
		w.gone(t, image)
	}
	for _, d := range all[1:] {
		for _, vm := range d.Spec.VMs {
			assert.Nil(t, w.imageOf(t, d, vm.Name).DeletionTimestamp)
		}
	}
}

// dataSyncDefaults come from the policy once: a missing one fails the entry until it is there, a changed one changes nothing.
func dataSyncDefaults(t *testing.T, w *world) {
	w.policy(t, map[string]string{policy.KeyDefaultDiskSize: ""})
	d := w.dataSync(t, w.namespace(t), "lab", "a")
	w.syncBecomes(t, d, v1alpha1.DataSyncFailed)
	assert.Contains(t, d.Status.Message, "a: diskSize is missing: give it in the entry, or set defaultDiskSize in the policy")

	w.policy(t, nil)
	w.syncBecomes(t, d, v1alpha1.DataSyncSucceeded)
	image := w.imageOf(t, d, "a")
	w.policy(t, map[string]string{policy.KeyDefaultDiskSize: "64Mi", policy.KeyDefaultSnapshotClass: "other", policy.KeyConcurrency: "7"})
	time.Sleep(2 * time.Second) // nothing is to happen
	after := w.imageOf(t, d, "a")
	assert.Equal(t, image.ResourceVersion, after.ResourceVersion)
	assert.Equal(t, defaultSize, after.Spec.DiskSize.String())
	assert.Equal(t, 1, w.downloads(d, "a"))

	w.edit(t, d, func(d *v1alpha1.DataSync) { d.Spec.VMs = append(d.Spec.VMs, w.entry(d.Namespace, "lab", "b", "ok")) })
	w.awaitSync(t, d, "about the new entry", func(d *v1alpha1.DataSync) bool { return len(d.Status.Entries) == 2 })
	assert.Equal(t, "64Mi", w.imageOf(t, d, "b").Spec.DiskSize.String(), "what is made now has the default of now")
	w.policy(t, nil)
}
