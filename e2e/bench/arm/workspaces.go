package arm

import (
	"context"
	"fmt"
	"strings"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/bench/audit"
	"github.com/pelotech/open-terrain/e2e/bench/trace"
	"github.com/pelotech/open-terrain/e2e/chart"
	"github.com/pelotech/open-terrain/e2e/history"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// workspaces are brought from creation to the moment when all their children are there. Nobody brings these on: neither the
// vm-operator nor a controller of Deployments runs in any arm.
type workspaces struct{}

// Members of a workspace. Each has a Service.
const (
	machinesEach   = 2
	containersEach = 3
	policiesEach   = 2
)

// MostWorkspaces is how many a load may have. With the primer they are as many as the highest workspaceConcurrency lets in, so
// that none waits for a slot.
const MostWorkspaces = 999

func (workspaces) furnish(ctx context.Context, l *Lab) error {
	if err := chart.Install(ctx, l.client, chart.WithoutOperator, fmt.Sprintf(`policy={"workspaceConcurrency":%d}`, MostWorkspaces+1)); err != nil {
		return err
	}
	for _, ch := range []chart.Chart{chart.VM, chart.Workspace} {
		if err := ch.Install(ctx, l.client, chart.WithoutOperator); err != nil {
			return err
		}
	}
	return nil
}

func (workspaces) simulate(context.Context, *Lab) error { return nil }

func (workspaces) prepare(context.Context, *Lab, string, int) error { return nil }

func (workspaces) object(_ *Lab, prefix string, i int) client.Object {
	ws := &otv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: workspaceName(prefix, i)}}
	for n := range machinesEach {
		ws.Spec.VirtualMachines = append(ws.Spec.VirtualMachines, otv1alpha1.WorkspaceVirtualMachine{
			Name: fmt.Sprintf("machine-%d", n),
			Spec: otv1alpha1.WorkspaceVirtualMachineSpec{VMDiskImageName: fmt.Sprintf("image-%d", n), MachineSpec: student()},
		})
	}
	for n := range containersEach {
		ws.Spec.Containers = append(ws.Spec.Containers, otv1alpha1.WorkspaceContainer{
			Name: fmt.Sprintf("container-%d", n), Image: "registry.example.com/labs/server:3.1.0",
			Ports: []otv1alpha1.WorkspacePort{{Name: "http", ContainerPort: 8080}},
			Env:   []otv1alpha1.WorkspaceEnvVar{{Name: "DATABASE", Value: "machine-0:5432"}},
			Resources: otv1alpha1.WorkspaceResources{Requests: otv1alpha1.WorkspaceResourceList{
				CPU: new(resource.MustParse("100m")), Memory: new(resource.MustParse("128Mi")),
			}},
		})
	}
	return ws
}

func workspaceName(prefix string, i int) string { return fmt.Sprintf("%s-%05d", prefix, i) }

// path is that of the Deployments: in most arms they are the last. That all the rest is there, too, is for judge to say.
func (workspaces) path() string { return "apis/apps/v1/deployments" }

func (workspaces) list() client.ObjectList { return &appsv1.DeploymentList{} }

func (workspaces) each() int { return containersEach }

func (workspaces) done() string { return `"type":"ADDED"` }

func (workspaces) isDone(prefix string, object client.Object) bool {
	return strings.HasPrefix(object.GetNamespace(), otv1alpha1.WorkspaceNamespace(prefix))
}

func (workspaces) floor(l *Lab) (string, []string) { return l.Tools.WorkspaceFloor, nil }

func (workspaces) ignored() []string {
	return []string{"events", "leases", "secrets", "ipaddresses", "serviceaccounts", "configmaps"}
}

func (workspaces) judge(l *Lab, run *Run, events []history.Event) {
	found := trace.JudgeWorkspaces(events)
	run.Workspaces, run.Void = &found, found.Violations(trace.Objects{
		"namespaces": run.Load.Workspaces, "networkpolicies": policiesEach * run.Load.Workspaces,
		"services":        (machinesEach + containersEach) * run.Load.Workspaces,
		"virtualmachines": machinesEach * run.Load.Workspaces, "deployments": containersEach * run.Load.Workspaces,
	})
	if l.Tools.Digest != "" && found.Digest != l.Tools.Digest {
		run.Void = append(run.Void, "the objects are not those that the operator makes")
	}
}

// making is the time from the first request that the API server got (of a workspace, or of the command for a child or about one)
// until the last child was made. So neither the start of a command counts, nor what it does with its files before.
func (l *Lab) making(entries []audit.Entry, d Drive) (time.Duration, error) {
	arm := l.since(d.Began)
	first, last := arm, arm.Made(entries)
	if l.Name == Workspace {
		first = audit.Window{Agent: "bench", From: d.Began}.Of("workspaces")
	}
	began := first.Began(entries)
	if began.IsZero() || last.IsZero() {
		return 0, fmt.Errorf("the audit log has no requests of %s", l.Name)
	}
	return last.Sub(began), nil
}

// told is when the status of each workspace was written.
func (l *Lab) told(entries []audit.Entry, from time.Time) map[string][]time.Time {
	written := map[string][]time.Time{}
	for _, e := range entries {
		if e.Resource == "workspaces/status" && e.Code < 400 && l.since(from).Matches(e) {
			written[e.Name] = append(written[e.Name], e.Began)
		}
	}
	return written
}
