package scenario

import (
	"bufio"
	"encoding/json"
	"io"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func badPolicy(t *testing.T, w *world) {
	w.policy(t, map[string]string{policy.KeyConcurrency: "2"})
	bad := sharedPolicy(w)
	bad[policy.KeyConcurrency], bad[policy.KeyRetryLimit] = "many", "1"
	w.writePolicy(t, bad)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Equal(c, "disksync_policy_valid 0", w.metric(c, "disksync_policy_valid"))
		events := &eventsv1.EventList{}
		require.NoError(c, w.client.List(t.Context(), events, client.InNamespace(harness.DefaultNamespace)))
		var notes []string
		for _, event := range events.Items {
			if event.Regarding.Kind == "ConfigMap" && event.Regarding.Name == v1alpha1.PolicyConfigMapName && event.Type == corev1.EventTypeWarning {
				notes = append(notes, event.Reason+" "+event.Note)
			}
		}
		assert.Contains(c, strings.Join(notes, "\n"), `InvalidPolicy concurrency: "many" is not a whole number`)
	}, w.patience, w.poll)
	info := w.metric(t, "disksync_policy_info")
	assert.Contains(t, info, `concurrency="2"`, "the last good policy, as a whole")
	assert.Contains(t, info, `retry_limit="2"`)

	image := w.create(t, w.image(w.namespace(t), "meanwhile"))
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	w.policy(t, nil)
}

func operatorKilled(t *testing.T, w *world) {
	w.policy(t, map[string]string{policy.KeyConcurrency: "2"})
	namespace := w.namespace(t)
	film := w.film(t, namespace)
	images := w.several(t, 4, []string{namespace}, w.heldAlone)
	w.syncing(t, images[0])
	w.syncing(t, images[1])
	w.operator.Kill()

	w.letGo(images[0])
	dv := &cdiv1.DataVolume{}
	require.Eventually(t, func() bool {
		return w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: childOf(images[0])}, dv) == nil && dv.Status.Phase == cdiv1.Succeeded
	}, w.patience, w.poll, "the import goes on without the operator")
	w.startOperator(t)
	w.awaitReady(t)
	w.letGo(images[1:]...)
	w.allSucceed(t, images)
	film.keptTo(t, 2)
	assert.Equal(t, keysOf(images), film.order())
	for _, image := range images {
		assert.Equal(t, 1, w.web.Of(w.path(image, "gate/"+gateOf(image))).Complete, "downloads of %s", image.Name)
		w.told(t, image, map[string]int{"Syncing": 1, "Succeeded": 1})
	}
}

func operatorStopped(t *testing.T, w *world) {
	w.policy(t, nil)
	image := w.create(t, w.image(w.namespace(t), "patient", w.heldAlone))
	w.syncing(t, image)
	require.NoError(t, w.operator.Terminate(20*time.Second), "it ends by itself and in peace")
	lease := &coordinationv1.Lease{}
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKey{Namespace: harness.DefaultNamespace, Name: operatorName}, lease))
	require.NotNil(t, lease.Spec.HolderIdentity)
	assert.Empty(t, *lease.Spec.HolderIdentity, "the leader has given up its Lease")
	w.startOperator(t)
	w.awaitReady(t)
	w.letGo(image)
	w.becomes(t, image, v1alpha1.PhaseSucceeded)
	assert.EqualValues(t, 1, image.Status.Attempts)
	assert.Equal(t, 1, w.web.Of(w.path(image, "gate/"+gateOf(image))).Complete)
}

func metricsAreThere(t *testing.T, w *world) {
	w.policy(t, nil)
	namespace := w.namespace(t)
	good, bad := w.create(t, w.image(namespace, "good")), w.create(t, w.image(namespace, "bad", w.served("status/404")))
	w.becomes(t, good, v1alpha1.PhaseSucceeded)
	w.fails(t, bad, v1alpha1.FailureSourceNotFound, allAttempts)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Contains(c, w.metric(c, "disksync_slots"), `disksync_slots{state="held"} 0`)
	}, w.patience, w.poll)
	for name, want := range map[string]string{
		"disksync_queue_depth":                  "disksync_queue_depth 0",
		"disksync_queue_oldest_age_seconds":     "disksync_queue_oldest_age_seconds 0",
		"disksync_slots":                        `disksync_slots{state="limit"}`,
		"disksync_admission_wait_seconds_count": "disksync_admission_wait_seconds_count",
		"disksync_sync_duration_seconds_count":  `disksync_sync_duration_seconds_count{result="succeeded"}`,
		"disksync_attempts_total":               `disksync_attempts_total{reason="SourceNotFound",result="failed"}`,
		"disksync_policy_info":                  `retry_limit="2"`,
		"disksync_policy_valid":                 "disksync_policy_valid 1",
	} {
		assert.Contains(t, w.metric(t, name), want)
	}
	_, all := get(t, w.operator.MetricsURL+"/metrics")
	assert.NotContains(t, all, namespace, "no label holds the name of an object")
}

// leads waits until the operator that runs is the leader.
func (w *world) leads(t *testing.T) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Contains(c, w.metric(c, "leader_election_master_status"), " 1")
	}, w.patience, w.poll)
}

// settledFor is how long nothing may happen.
const settledFor = 10 * time.Second

func settled(t *testing.T, w *world) {
	w.policy(t, nil)
	namespace := w.namespace(t)
	good, bad := w.create(t, w.image(namespace, "good")), w.create(t, w.image(namespace, "bad", w.served("status/404")))
	d := w.dataSync(t, namespace, "lab", "a", "b")
	w.becomes(t, good, v1alpha1.PhaseSucceeded)
	w.fails(t, bad, v1alpha1.FailureSourceNotFound, allAttempts)
	w.syncBecomes(t, d, v1alpha1.DataSyncSucceeded)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		all := &corev1.NamespaceList{}
		require.NoError(c, w.client.List(t.Context(), all, client.MatchingLabels{labelTest: "story"}))
		assert.Len(c, all.Items, 1, "what other stories have left is gone")
		assert.Empty(c, w.holders(c))
	}, w.patience, w.poll)
	time.Sleep(2 * time.Second) // the last events are on their way
	before, requests := w.versions(t), w.audit(t)
	time.Sleep(settledFor)
	assert.Equal(t, before, w.versions(t), "nothing has been written")
	for _, r := range w.audit(t)[len(requests):] {
		leader := r.ObjectRef.Resource == "leases" && r.ObjectRef.Name == operatorName
		assert.True(t, leader || r.Verb == "watch", "%s %s %s/%s", r.Verb, r.ObjectRef.Resource, r.ObjectRef.Namespace, r.ObjectRef.Name)
	}
}

// versions of all that the operator writes, but for the leader's Lease.
func (w *world) versions(t *testing.T) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for _, list := range []client.ObjectList{
		&v1alpha1.DataSyncList{}, &v1alpha1.VMDiskImageList{}, &cdiv1.DataVolumeList{}, &snapshotv1.VolumeSnapshotList{}, &coordinationv1.LeaseList{}, &eventsv1.EventList{},
	} {
		require.NoError(t, w.client.List(t.Context(), list))
		require.NoError(t, meta.EachListItem(list, func(object runtime.Object) error {
			o, err := meta.Accessor(object)
			if err != nil {
				return err
			}
			if event, is := object.(*eventsv1.Event); is && event.ReportingController != operatorName {
				return nil // CDI goes on telling for a while
			}
			if strings.HasPrefix(o.GetNamespace(), "ot-e2e-") || strings.HasPrefix(o.GetName(), v1alpha1.DiskSyncSlotPrefix) {
				versions[o.GetNamespace()+"/"+o.GetName()+" "+string(o.GetUID())] = o.GetResourceVersion()
			}
			return nil
		}))
	}
	return versions
}

// versionsIn are those of one namespace.
func (w *world) versionsIn(t *testing.T, namespace string) map[string]string {
	t.Helper()
	all := w.versions(t)
	maps.DeleteFunc(all, func(name, _ string) bool { return !strings.HasPrefix(name, namespace+"/") })
	return all
}

type auditLine struct {
	Verb, UserAgent string
	ObjectRef       struct{ Resource, Namespace, Name string }
	ResponseStatus  struct{ Code int }
}

// audit lists the operator's requests so far; none on a cluster whose audit log is not ours.
func (w *world) audit(t *testing.T) []auditLine {
	t.Helper()
	if w.cluster.AuditLog == "" {
		return nil
	}
	file, err := os.Open(w.cluster.AuditLog)
	require.NoError(t, err)
	defer file.Close()
	var lines []auditLine
	for reader := bufio.NewReader(file); ; {
		raw, err := reader.ReadBytes('\n')
		if err == io.EOF {
			return lines // a line without its end is still being written
		}
		require.NoError(t, err)
		var line auditLine
		require.NoError(t, json.Unmarshal(raw, &line))
		if strings.HasPrefix(line.UserAgent, operatorName) {
			lines = append(lines, line)
		}
	}
}
