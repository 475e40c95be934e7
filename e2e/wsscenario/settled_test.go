package wsscenario

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
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type auditLine struct {
	Verb, UserAgent string
	ObjectRef       struct{ Resource, Namespace, Name string }
}

// audit lists the workspace-operator's requests so far; none on a cluster whose audit log is not ours.
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
		if strings.HasPrefix(line.UserAgent, chart.Workspace.Name) {
			lines = append(lines, line)
		}
	}
}

// settled is told last: one that is Ready, one that waits for ever, one that has failed and one whose pods change all the time.
// An operator that starts finds nothing to do either.
func settled(t *testing.T, w *world) {
	farm, namespace := w.namespace(t), w.namespace(t)
	ready := w.create(t, workspace(machine("database", w.synced(t, farm, "golden")), w.container("web")))
	guest := w.create(t, workspace(within(namespace), w.container("web")))
	waiting := w.create(t, workspace(machine("database", image(farm, "nosuch")), timeout(0)))
	failed := w.create(t, workspace(machine("database", w.createImage(t, image(farm, "bad", w.missing)))))
	pulling := w.create(t, workspace(w.container("web", cannotBePulled)))
	w.becomesReady(t, ready)
	w.becomesReady(t, guest)
	w.waits(t, waiting, v1alpha1.WorkspaceImagePending)
	w.fails(t, failed, v1alpha1.WorkspaceVirtualMachineFailed)
	w.fails(t, pulling, v1alpha1.WorkspaceImagePullFailed)
	all := []*v1alpha1.Workspace{ready, guest, waiting, failed, pulling}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		left := &v1alpha1.WorkspaceList{}
		require.NoError(c, w.client.List(t.Context(), left, client.MatchingLabels{labelTest: "story"}))
		assert.Len(c, left.Items, len(all), "what other stories have left is gone")
	}, w.patience, w.poll)
	time.Sleep(2*time.Second + w.debounce) // the last events are on their way
	before, requests := w.versions(t, all), len(w.audit(t))
	time.Sleep(2 * w.settled)
	assert.Equal(t, before, w.versions(t, all), "nothing has been written")
	for _, r := range w.audit(t)[requests:] {
		leader := r.ObjectRef.Resource == "leases" && r.ObjectRef.Name == chart.Workspace.Name
		assert.True(t, leader || r.Verb == "watch", "%s %s %s/%s", r.Verb, r.ObjectRef.Resource, r.ObjectRef.Namespace, r.ObjectRef.Name)
	}

	w.workspaces.Kill()
	w.startWorkspaces(t)
	w.awaitReady(t)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Contains(c, metric(c, w.workspaces, "leader_election_master_status"), " 1")
	}, w.patience, w.poll)
	time.Sleep(w.settled)
	assert.Equal(t, before, w.versions(t, all), "an operator that starts writes nothing where nothing is to be done")
}

// versions of all that the operator writes for workspaces, but for the leader's Lease, and of what it has told. A Deployment is
// taken by its generation: its status is others'.
func (w *world) versions(t *testing.T, workspaces []*v1alpha1.Workspace) map[string]string {
	t.Helper()
	versions := map[string]string{}
	note := func(list client.ObjectList, options ...client.ListOption) {
		require.NoError(t, w.client.List(t.Context(), list, options...))
		require.NoError(t, meta.EachListItem(list, func(object runtime.Object) error {
			o, err := meta.Accessor(object)
			if err != nil {
				return err
			}
			version := o.GetResourceVersion()
			if _, is := object.(*appsv1.Deployment); is {
				version = fmt.Sprint(o.GetGeneration())
			}
			if event, is := object.(*eventsv1.Event); is && event.ReportingController != chart.Workspace.Name {
				return nil // others go on telling for a while
			}
			versions[fmt.Sprintf("%T %s/%s", object, o.GetNamespace(), o.GetName())] = version
			return nil
		}))
	}
	note(&v1alpha1.WorkspaceList{})
	note(&eventsv1.EventList{})
	note(&coordinationv1.LeaseList{}, client.MatchingLabels{v1alpha1.LabelSlot: v1alpha1.WorkspaceQueueName})
	for _, ws := range workspaces {
		mine := client.MatchingLabels{v1alpha1.LabelWorkspaceUID: string(ws.UID)}
		note(&corev1.NamespaceList{}, mine)
		note(&appsv1.DeploymentList{}, mine)
		note(&corev1.ServiceList{}, mine)
		note(&networkingv1.NetworkPolicyList{}, mine)
		note(&v1alpha1.VirtualMachineList{}, mine)
	}
	return versions
}
