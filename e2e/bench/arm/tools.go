package arm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/pelotech/open-terrain/e2e/harness"
)

// Tools are the paths of the built executables.
type Tools struct {
	Operator, Floor, Informers string
	// FloorArgs are further flags for the floor.
	FloorArgs []string
}

// Build builds the operator (unless one is given), the floor and the informers.
func Build(ctx context.Context, operator string) (Tools, error) {
	tools := Tools{Operator: operator}
	var err error
	if operator == "" {
		if tools.Operator, err = harness.BuildOperator(ctx, string(Ours)); err != nil {
			return Tools{}, err
		}
	}
	root, err := harness.Root()
	if err != nil {
		return Tools{}, err
	}
	for name, path := range map[string]*string{"floor": &tools.Floor, "informers": &tools.Informers} {
		*path = filepath.Join(filepath.Dir(tools.Operator), "bench-"+name)
		build := exec.CommandContext(ctx, "go", "build", "-o", *path, "./bench/"+name)
		build.Dir, build.Stderr = filepath.Join(root, "e2e"), os.Stderr
		build.Env = append(os.Environ(), "GOWORK=off")
		if err := build.Run(); err != nil {
			return Tools{}, fmt.Errorf("build %s: %w", name, err)
		}
	}
	return tools, nil
}
