package demo

import (
	"context"
	"fmt"
	"path/filepath"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/chart"
	"github.com/pelotech/open-terrain/e2e/demo/claims"
	"github.com/pelotech/open-terrain/e2e/demo/screen"
	"github.com/pelotech/open-terrain/e2e/demo/stage"
)

// lesson is the workspace in manifests/workspace.
const lesson = "lesson-1"

// workspace goes from nothing to Ready, its images through a queue with room for one, and is deleted.
func workspace(ctx context.Context, s *stage.Stage, out *screen.Screen, w *watcher, folder string) (claims.Run, error) {
	out.Leave()
	out.Say("\nNow two virtual machines and a container as one object (manifests/workspace). There is room for one image at a time:\n")
	patch := `{"data":{"concurrency":"1"}}`
	if err := kubectl(ctx, s, out, "-n", chart.Namespace, "patch", "configmap", otv1alpha1.PolicyConfigMapName, "--type=merge", "-p", patch); err != nil {
		return claims.Run{}, err
	}
	w = w.anew()
	if err := kubectl(ctx, s, out, "apply", "-f", filepath.Join(folder, "workspace")); err != nil {
		return claims.Run{}, err
	}
	out.Say("")
	if err := w.until(ctx, func() bool { return w.ledger.Space(lesson) != nil && w.ledger.Space(lesson).Ready() }); err != nil {
		return claims.Run{}, err
	}
	out.Leave()
	out.Say("")
	if err := kubectl(ctx, s, out, "-n", w.ledger.Space(lesson).Namespace, "get", "virtualmachines.pelotech.ot,deployments,pods,services,networkpolicies"); err != nil {
		return claims.Run{}, err
	}
	out.Say("\nThe lesson is over:\n")
	if err := kubectl(ctx, s, out, "delete", fmt.Sprint("workspaces.pelotech.ot/", lesson)); err != nil {
		return claims.Run{}, err
	}
	if err := w.until(ctx, func() bool { return len(w.ledger.Spaces()) == 0 }); err != nil {
		return claims.Run{}, err
	}
	return taken(ctx, s, out)
}
