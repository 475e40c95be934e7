package demo

import (
	"context"
	"fmt"
	"strings"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/demo/claims"
	"github.com/pelotech/open-terrain/e2e/demo/ledger"
	"github.com/pelotech/open-terrain/e2e/demo/screen"
	"github.com/pelotech/open-terrain/e2e/demo/stage"
	"k8s.io/apimachinery/pkg/types"
)

// life is what happens to images that have succeeded, and to virtual machines.
func life() claims.Life {
	return claims.Life{
		Updated:  types.NamespacedName{Namespace: "lab-a", Name: "ubuntu"},
		Healed:   types.NamespacedName{Namespace: "lab-b", Name: "debian"},
		InUse:    types.NamespacedName{Namespace: "lab-a", Name: "rocky"},
		DataSync: types.NamespacedName{Namespace: "lab-b", Name: "course"},
		Early:    types.NamespacedName{Namespace: "lab-a", Name: "web"},
		Repaired: types.NamespacedName{Namespace: "lab-a", Name: "database"},
	}
}

// later changes images that have succeeded and deletes what is needed, and watches what becomes of it.
func later(ctx context.Context, s *stage.Stage, out *screen.Screen, w *watcher, folder string) (claims.Life, error) {
	told := life()
	out.Leave()
	out.Say("\nSomebody deletes the image that student-vm of the other team uses:\n")
	if err := kubectl(ctx, s, out, "-n", told.InUse.Namespace, "delete", "vmdiskimages.pelotech.ot", told.InUse.Name); err != nil {
		_, told.Refusal, _ = strings.Cut(err.Error(), "exit status 1: ")
		out.Say("%s", out.Style(red, told.Refusal))
	}
	out.Say("\nSomebody deletes the machine that KubeVirt runs for database:\n")
	if err := kubectl(ctx, s, out, "-n", told.Repaired.Namespace, "delete", "virtualmachines.kubevirt.io", told.Repaired.Name, "--wait=false"); err != nil {
		return told, err
	}
	healed := w.ledger.Image(told.Healed)
	if healed == nil || healed.Status.Artifact == nil {
		return told, fmt.Errorf("%s has not succeeded", told.Healed)
	}
	out.Say("\nA snapshot is lost:\n")
	if err := kubectl(ctx, s, out, "-n", told.Healed.Namespace, "delete", "volumesnapshot", healed.Status.Artifact.Snapshot); err != nil {
		return told, err
	}
	out.Say("\nThere is another release of ubuntu, and a workspace needs two disks (manifests/later):\n")
	if err := kubectl(ctx, s, out, "apply", "-f", folder); err != nil {
		return told, err
	}
	out.Say("")
	if err := w.until(ctx, func() bool { return settled(w.ledger, told) }); err != nil {
		return told, err
	}
	second, err := again(ctx, s, out, w)
	told.Second = second
	return told, err
}

// again starts the vm-operator once more when it has nothing to do: a process that knows nothing looks at everything.
func again(ctx context.Context, s *stage.Stage, out *screen.Screen, w *watcher) (second claims.Second, err error) {
	if err := w.calm(ctx); err != nil {
		return second, err
	}
	out.Leave()
	out.Say("\nThe vm-operator is ended and started again; it looks at every virtual machine:")
	if second.After, err = s.History.Sync(ctx); err != nil {
		return second, err
	}
	if err := s.RestartVMOperator(ctx); err != nil {
		return second, err
	}
	err = w.until(ctx, func() bool {
		second.Looks = s.Looks(ctx)
		return second.Looks >= machines
	})
	if err != nil {
		return second, err
	}
	return second, w.calm(ctx)
}

// settled says that all is as it was asked for, and that what was replaced is gone.
func settled(l *ledger.Ledger, life claims.Life) bool {
	updated, healed, set := l.Image(life.Updated), l.Image(life.Healed), l.DataSync(life.DataSync)
	return updated != nil && healed != nil && set != nil && set.Status.Phase == otv1alpha1.DataSyncSucceeded &&
		updated.Ended() && updated.Status.ObservedGeneration > 1 && l.Snapshots(updated) == 1 &&
		healed.Ended() && healed.Status.LastLoss != nil && l.Held() == 0 && repaired(l, life)
}

func repaired(l *ledger.Ledger, life claims.Life) bool {
	machine := l.Machine(life.Repaired)
	return machine != nil && machine.Ready() && len(machine.Guests) > 1
}
