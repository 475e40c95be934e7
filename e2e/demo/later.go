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

// life is what happens to images that have succeeded.
func life() claims.Life {
	return claims.Life{
		Updated:  types.NamespacedName{Namespace: "lab-a", Name: "ubuntu"},
		Healed:   types.NamespacedName{Namespace: "lab-b", Name: "debian"},
		InUse:    types.NamespacedName{Namespace: "lab-a", Name: "rocky"},
		DataSync: types.NamespacedName{Namespace: "lab-b", Name: "course"},
	}
}

// inUse is what vm-operator will write; here it is written by hand.
const inUse = `{"status":{"references":{"count":1,"sample":["lab-a/student-vm"]}}}`

// later changes images that have succeeded, and watches what becomes of them.
func later(ctx context.Context, s *stage.Stage, out *screen.Screen, w *watcher, folder string) (claims.Life, error) {
	told := life()
	out.Leave()
	out.Say("\nA virtual machine uses rocky (its operator would write that), and somebody deletes the image:\n")
	if err := kubectl(ctx, s, out, "-n", told.InUse.Namespace, "patch", "vmdi", told.InUse.Name, "--subresource=status", "--type=merge", "-p", inUse); err != nil {
		return told, err
	}
	if err := kubectl(ctx, s, out, "-n", told.InUse.Namespace, "delete", "vmdi", told.InUse.Name); err != nil {
		_, told.Refusal, _ = strings.Cut(err.Error(), "exit status 1: ")
		out.Say("%s", out.Style(red, told.Refusal))
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
	return told, w.until(ctx, func() bool { return settled(w.ledger, told) })
}

// settled says that all is as it was asked for, and that what was replaced is gone.
func settled(l *ledger.Ledger, life claims.Life) bool {
	updated, healed, set := l.Image(life.Updated), l.Image(life.Healed), l.DataSync(life.DataSync)
	return updated != nil && healed != nil && set != nil && set.Status.Phase == otv1alpha1.DataSyncSucceeded &&
		updated.Ended() && updated.Status.ObservedGeneration > 1 && l.Snapshots(updated) == 1 &&
		healed.Ended() && healed.Status.LastLoss != nil && l.Held() == 0
}
