package arm

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/bench/trace"
	"github.com/pelotech/open-terrain/e2e/chart"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/pelotech/open-terrain/e2e/sim/cdi"
	"github.com/pelotech/open-terrain/e2e/sim/kubevirt"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// machines are VirtualMachines that are brought from creation to Ready, on images of another namespace that are there.
type machines struct{}

func (machines) furnish(ctx context.Context, l *Lab) error {
	for _, ch := range []chart.Chart{chart.DiskSync, chart.VM} {
		if err := ch.Install(ctx, l.client, chart.WithoutOperator); err != nil {
			return err
		}
	}
	return l.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: imageNamespace}})
}

func (machines) simulate(ctx context.Context, l *Lab) error {
	cloner, err := cdi.Start(ctx, l.cluster.Config, cdi.Options{Workers: simulatorWorkers, Instant: &cdi.Instant{}})
	if err != nil {
		return err
	}
	l.done = append(l.done, cloner.Wait)
	virt, err := kubevirt.Start(ctx, l.cluster.Config, kubevirt.Options{Workers: simulatorWorkers, Instant: &kubevirt.Instant{}})
	if err != nil {
		return err
	}
	l.done = append(l.done, virt.Wait)
	return nil
}

func (machines) object(l *Lab, prefix string, i int) client.Object {
	return &otv1alpha1.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace(i), Name: fmt.Sprintf("%s-%05d", prefix, i)},
		Spec: otv1alpha1.VirtualMachineSpec{
			VMDiskImageRef: otv1alpha1.VMDiskImageReference{Namespace: imageNamespace, Name: goldenName(prefix, i%l.Load.Images)},
			MachineSpec:    student(),
		},
	}
}

// student is a machine with a user.
func student() otv1alpha1.MachineSpec {
	return otv1alpha1.MachineSpec{
		Users: []otv1alpha1.VirtualMachineUser{{
			Name: "student", Sudo: "ALL=(ALL) NOPASSWD:ALL",
			HashedPasswd:      "$6$0rEY7zinYR1Zs/JV$JM/UbB5mO1KW2LXQR5qAMd8duGxIUpHw8v05P8lhftQSnlzpdlE.X2U9TtNittKsZ.YzKkleaihs21V/nwOnW1",
			SSHAuthorizedKeys: []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBenchBenchBenchBenchBenchBenchBenchBenchBenc student@lab"},
		}},
		Resources: otv1alpha1.VirtualMachineResources{CPU: new(resource.MustParse("2")), Memory: new(resource.MustParse("2Gi"))},
	}
}

func (machines) path() string { return "apis/pelotech.ot/v1alpha1/virtualmachines" }

func (machines) each() int { return 1 }

func (machines) list() client.ObjectList { return &otv1alpha1.VirtualMachineList{} }

// The phase of the image in a machine's status is never Ready.
func (machines) done() string { return `"phase":"Ready"` }

func (machines) isDone(prefix string, object client.Object) bool {
	vm, is := object.(*otv1alpha1.VirtualMachine)
	return is && strings.HasPrefix(vm.Name, prefix) && vm.Status.Phase == otv1alpha1.VirtualMachineReady
}

func (machines) floor(l *Lab) (string, []string) {
	return l.Tools.VMFloor, []string{"--share=" + strconv.Itoa(l.Load.VMs/l.Load.Images)}
}

func (machines) ignored() []string {
	return []string{"events", "leases", "secrets", "persistentvolumes", "persistentvolumeclaims", "virtualmachineinstances"}
}

func (machines) judge(_ *Lab, run *Run, events []history.Event) {
	found := trace.JudgeMachines(events)
	run.Machines, run.Void = &found, found.Violations(run.Load.VMs)
}
