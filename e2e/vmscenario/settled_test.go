package vmscenario

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/chart"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type auditLine struct {
	Verb, UserAgent string
	ObjectRef       struct{ Resource, Namespace, Name string }
}

// audit lists the vm-operator's requests so far; none on a cluster whose audit log is not ours.
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
		if strings.HasPrefix(line.UserAgent, chart.VM.Name) {
			lines = append(lines, line)
		}
	}
}

// settled is told last: one that runs, one that is stopped, one that waits for ever and one that has failed. An operator that
// starts finds nothing to do either.
func settled(t *testing.T, w *world) {
	namespace := w.namespace(t)
	i := w.synced(t, namespace, "golden")
	running := w.create(t, machine(namespace, "running", i))
	halted := w.create(t, machine(namespace, "halted", i, strategy(v1alpha1.RunHalted)))
	waiting := w.create(t, machine(namespace, "waiting", image(namespace, "nosuch")))
	failed := w.create(t, machine(namespace, "failed", w.createImage(t, image(namespace, "bad", func(i *v1alpha1.VMDiskImage) {
		i.Spec.SourceType, i.Spec.URL = v1alpha1.SourceHTTP, w.web.URL("/status/404/bad.qcow2")
	}))))
	w.runs(t, running)
	w.becomes(t, halted, v1alpha1.VirtualMachineReady, v1alpha1.ReasonNotStarted)
	w.waits(t, waiting, v1alpha1.ReasonImageMissing)
	w.becomes(t, failed, v1alpha1.VirtualMachineFailed, v1alpha1.ReasonImageFailed)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		all := &corev1.NamespaceList{}
		require.NoError(c, w.client.List(t.Context(), all, client.MatchingLabels{labelTest: "story"}))
		assert.Len(c, all.Items, 1, "what other stories have left is gone")
	}, w.patience, w.poll)
	time.Sleep(2 * time.Second) // the last events are on their way
	before, requests := w.versions(t, namespace), len(w.audit(t))
	time.Sleep(2 * w.settled)
	assert.Equal(t, before, w.versions(t, namespace), "nothing has been written")
	for _, r := range w.audit(t)[requests:] {
		leader := r.ObjectRef.Resource == "leases" && r.ObjectRef.Namespace == chart.VM.Namespace
		assert.True(t, leader || r.Verb == "watch", "%s %s %s/%s", r.Verb, r.ObjectRef.Resource, r.ObjectRef.Namespace, r.ObjectRef.Name)
	}

	w.machines.Kill()
	w.startMachines(t)
	w.awaitReady(t)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Contains(c, metric(c, w.machines, "leader_election_master_status"), " 1")
	}, w.patience, w.poll)
	time.Sleep(w.settled)
	assert.Equal(t, before, w.versions(t, namespace), "an operator that starts writes nothing where nothing is to be done")
}

// versions of all that the operator writes, but for the leader's Lease, and what it has told.
func (w *world) versions(t *testing.T, namespace string) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for _, list := range []client.ObjectList{
		&v1alpha1.VirtualMachineList{}, &v1alpha1.VMDiskImageList{}, &cdiv1.DataVolumeList{}, &corev1.SecretList{}, &virtv1.VirtualMachineList{}, &eventsv1.EventList{},
	} {
		require.NoError(t, w.client.List(t.Context(), list, client.InNamespace(namespace)))
		require.NoError(t, meta.EachListItem(list, func(object runtime.Object) error {
			o, err := meta.Accessor(object)
			if err != nil {
				return err
			}
			if event, is := object.(*eventsv1.Event); is && event.ReportingController != chart.VM.Name {
				return nil // others go on telling for a while
			}
			versions[fmt.Sprintf("%T %s", object, o.GetName())] = o.GetResourceVersion()
			return nil
		}))
	}
	return versions
}
