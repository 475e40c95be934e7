package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const snapshotterModule = "github.com/kubernetes-csi/external-snapshotter/client/v8"

// Root finds the repository: the nearest folder at or above the working directory that has scripts/test-env.sh.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		_, err := os.Stat(filepath.Join(dir, "scripts", "test-env.sh"))
		if err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if !errors.Is(err, fs.ErrNotExist) || parent == dir {
			return "", fmt.Errorf("the working directory is not inside the open-terrain repository: %w", err)
		}
		dir = parent
	}
}

// Assets is the folder with etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl and kwok. The first
// call on a machine builds them, which takes minutes.
func Assets(ctx context.Context) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	return output(ctx, root, filepath.Join(root, "scripts", "test-env.sh"))
}

// OwnCRDs is the folder of this repository's CustomResourceDefinitions.
func OwnCRDs() (string, error) { return inRoot("apis", "crds") }

// CDICRDs is the folder of the CustomResourceDefinitions of CDI.
func CDICRDs() (string, error) { return inRoot("e2e", "sim", "crds") }

// KubeVirtCRDs is the folder of the CustomResourceDefinitions of KubeVirt and of networks.
func KubeVirtCRDs() (string, error) { return inRoot("e2e", "sim", "kubevirt", "crds") }

// SnapshotCRDs are the files of the CustomResourceDefinitions of the CSI snapshotter, which its Go module carries.
func SnapshotCRDs(ctx context.Context) ([]string, error) {
	e2e, err := inRoot("e2e")
	if err != nil {
		return nil, err
	}
	dir, err := output(ctx, e2e, "go", "list", "-m", "-f", "{{.Dir}}", snapshotterModule)
	if err != nil {
		return nil, err
	}
	return filepath.Glob(filepath.Join(dir, "config", "crd", "snapshot.storage.k8s.io_*.yaml"))
}

// AllCRDs are the files and folders of every CustomResourceDefinition that the disk-sync-operator knows, and of all of ours.
func AllCRDs(ctx context.Context) ([]string, error) {
	own, err := OwnCRDs()
	if err != nil {
		return nil, err
	}
	cdi, err := CDICRDs()
	if err != nil {
		return nil, err
	}
	snapshot, err := SnapshotCRDs(ctx)
	return append(snapshot, own, cdi), err
}

func (o Options) defaultCRDs(ctx context.Context) ([]string, error) {
	crds, err := AllCRDs(ctx)
	if err != nil || !o.KubeVirt {
		return crds, err
	}
	kubevirt, err := KubeVirtCRDs()
	return append(crds, kubevirt), err
}

func inRoot(path ...string) (string, error) {
	root, err := Root()
	return filepath.Join(append([]string{root}, path...)...), err
}

// output runs a program in dir, outside any Go workspace, and returns what it printed, trimmed. Its standard error
// goes to ours, because a first build takes minutes and says so.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Stderr = os.Stderr
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(out.String()), nil
}
