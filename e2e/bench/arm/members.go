package arm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/bench/audit"
	"github.com/pelotech/open-terrain/e2e/bench/trace"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Rise is how the members of all workspaces become ready, one piece of news after the other, and the operator tells of it.
type Rise struct {
	// Wall is the time from the first news until all workspaces are Ready; News is how many there were.
	Wall  time.Duration `json:"wallNs"`
	News  int           `json:"news"`
	Count audit.Count   `json:"count"`
}

// newsEach is how often each virtual machine tells of its image's place in the queue before it is Ready.
const newsEach = 4

// rise plays the vm-operator and the controller of Deployments for what the load has made: every virtual machine tells of the
// queue a few times, as fast as it can be written, and then all members become ready.
func (l *Lab) rise(ctx context.Context, run *Run, prefix string, d Drive) error {
	began := time.Now()
	r := &Rise{}
	for n := range newsEach + 1 {
		for machine := range machinesEach {
			name := fmt.Sprintf("machine-%d", machine)
			if err := l.crowd(ctx, l.Load.Workspaces, func(ctx context.Context, i int) error {
				return l.tell(ctx, otv1alpha1.WorkspaceNamespace(workspaceName(prefix, i)), name, newsEach-n)
			}); err != nil {
				return fmt.Errorf("play the virtual machines: %w", err)
			}
			r.News += l.Load.Workspaces
		}
	}
	for container := range containersEach {
		name := fmt.Sprintf("container-%d", container)
		if err := l.crowd(ctx, l.Load.Workspaces, func(ctx context.Context, i int) error {
			return l.rollOut(ctx, otv1alpha1.WorkspaceNamespace(workspaceName(prefix, i)), name)
		}); err != nil {
			return fmt.Errorf("play the containers: %w", err)
		}
		r.News += l.Load.Workspaces
	}
	if err := l.allReady(ctx, prefix); err != nil {
		return fmt.Errorf("wait until all workspaces are Ready: %w", err)
	}
	r.Wall = time.Since(began)
	if err := l.Quiet(ctx, 2*time.Second, drainTimeout); err != nil {
		return err
	}
	entries, err := audit.Read(l.cluster.AuditLog)
	if err != nil {
		return err
	}
	events, err := l.history(ctx, d.base)
	if err != nil {
		return err
	}
	r.Count = l.since(began).Count(entries)
	run.Rise, run.Workspaces.Pace = r, trace.PaceOf(events, l.told(entries, d.Began))
	return nil
}

// tell of the image's place in the queue; without one the guest runs.
func (l *Lab) tell(ctx context.Context, namespace, name string, place int) error {
	vm := &otv1alpha1.VirtualMachine{}
	vm.Namespace, vm.Name, vm.Generation = namespace, name, 1
	ready := metav1.Condition{
		Type: otv1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: string(otv1alpha1.ReasonImageNotReady),
		Message: fmt.Sprintf("Its image is Queued, position %d", place), ObservedGeneration: vm.Generation, LastTransitionTime: metav1.Now(),
	}
	vm.Status.Phase = otv1alpha1.VirtualMachineProvisioning
	if place == 0 {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionTrue, string(otv1alpha1.ReasonRunning), "The guest runs"
		vm.Status.Phase = otv1alpha1.VirtualMachineReady
	}
	vm.Status.ObservedGeneration, vm.Status.Message, vm.Status.Conditions = vm.Generation, ready.Message, []metav1.Condition{ready}
	return l.patchStatus(ctx, vm, map[string]any{"status": vm.Status})
}

func (l *Lab) rollOut(ctx context.Context, namespace, name string) error {
	deployment := &appsv1.Deployment{}
	deployment.Namespace, deployment.Name = namespace, name
	deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	return l.patchStatus(ctx, deployment, map[string]any{"status": deployment.Status})
}

func (l *Lab) allReady(ctx context.Context, prefix string) error {
	return wait.PollUntilContextTimeout(ctx, poll, l.timeout(l.Load.Workspaces), true, func(ctx context.Context) (bool, error) {
		var all otv1alpha1.WorkspaceList
		if err := l.client.List(ctx, &all); err != nil {
			return false, err
		}
		ready := 0
		for i := range all.Items {
			if strings.HasPrefix(all.Items[i].Name, prefix) && all.Items[i].Status.Phase == otv1alpha1.WorkspaceReady {
				ready++
			}
		}
		return ready >= l.Load.Workspaces, l.subject.alive()
	})
}

func (l *Lab) patchStatus(ctx context.Context, object client.Object, status map[string]any) error {
	raw, err := json.Marshal(status)
	if err != nil {
		return err
	}
	return l.client.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, raw))
}
