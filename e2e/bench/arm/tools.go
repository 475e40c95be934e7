package arm

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/pelotech/open-terrain/e2e/harness"
)

// Tools are the paths of the built executables.
type Tools struct {
	Operators map[Name]string
	// Floor is the disk-sync-operator's, VMFloor the vm-operator's, WorkspaceFloor the workspace-operator's.
	Floor, VMFloor, WorkspaceFloor, Informers string
	// Manifests is a folder for what the workspace-operator has applied, once its arm has run: see Keep. Digest is that of the
	// objects.
	Manifests, Digest string
	// FloorArgs are further flags for the floor.
	FloorArgs []string
}

// Build builds the operators (unless their path is given), the floors and the informers.
func Build(ctx context.Context, operators map[Name]string) (Tools, error) {
	tools := Tools{Operators: maps.Clone(operators)}
	var dir string
	for name, path := range operators {
		if path == "" {
			built, err := harness.BuildOperator(ctx, string(name))
			if err != nil {
				return Tools{}, err
			}
			tools.Operators[name], path = built, built
		}
		dir = filepath.Dir(path)
	}
	root, err := harness.Root()
	if err != nil {
		return Tools{}, err
	}
	for name, path := range map[string]*string{"floor": &tools.Floor, "vmfloor": &tools.VMFloor, "wsfloor": &tools.WorkspaceFloor, "informers": &tools.Informers} {
		*path = filepath.Join(dir, "bench-"+name)
		build := exec.CommandContext(ctx, "go", "build", "-o", *path, "./bench/"+name)
		build.Dir, build.Stderr = filepath.Join(root, "e2e"), os.Stderr
		build.Env = append(os.Environ(), "GOWORK=off")
		if err := build.Run(); err != nil {
			return Tools{}, fmt.Errorf("build %s: %w", name, err)
		}
	}
	return tools, nil
}
