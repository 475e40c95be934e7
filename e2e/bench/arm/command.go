package arm

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/bench/manifest"
	"github.com/pelotech/open-terrain/e2e/harness"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// isCommand says that the arm's program is run once for each load, and ends.
func (l *Lab) isCommand() bool { return l.Load.Workspaces > 0 && l.Name != Workspace }

// command makes the objects that the operator has made for a load.
func (l *Lab) command(ctx context.Context, prefix string) error {
	files := manifest.Files{Dir: l.Tools.Manifests, Load: prefix}
	var path string
	var args []string
	switch l.Name {
	case Kubectl:
		_, err := l.cluster.Kubectl(ctx, "", "apply", "-f", files.Plain())
		return err
	case Helm:
		root, err := harness.Root()
		if err != nil {
			return err
		}
		path, args = filepath.Join(root, "scripts", "tool.sh"), []string{
			"helm", "install", prefix, files.Chart(), "--kubeconfig", l.cluster.Kubeconfig, "--namespace", namespace(0), "--wait=hookOnly",
		}
	default:
		path, args = l.task.floor(l)
		args = append(args, "--kubeconfig="+l.cluster.Kubeconfig, "--file="+files.Plain(), "--writers="+strconv.Itoa(l.Load.Writers))
	}
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", l.Name, err, out[max(0, len(out)-1000):])
	}
	return nil
}

// Keep writes what the operator has applied for a load, for the arms that are to make the same.
func (l *Lab) Keep(ctx context.Context, prefix string) error {
	byNamespace := map[string][]*unstructured.Unstructured{}
	for _, kind := range []struct{ apiVersion, kind string }{
		{"v1", "Namespace"}, {"networking.k8s.io/v1", "NetworkPolicy"}, {"v1", "Service"},
		{otv1alpha1.SchemeGroupVersion.String(), "VirtualMachine"}, {"apps/v1", "Deployment"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(kind.apiVersion)
		list.SetKind(kind.kind + "List")
		if err := l.client.List(ctx, list, client.HasLabels{otv1alpha1.LabelWorkspaceUID}); err != nil {
			return err
		}
		for i := range list.Items {
			applied, err := manifest.Of(&list.Items[i], string(Workspace))
			if err != nil {
				return err
			}
			namespace := applied.GetNamespace()
			if kind.kind == "Namespace" {
				namespace = applied.GetName()
			}
			byNamespace[namespace] = append(byNamespace[namespace], applied)
		}
	}
	var all []*unstructured.Unstructured
	for i := 0; ; i++ {
		children := byNamespace[otv1alpha1.WorkspaceNamespace(workspaceName(prefix, i))]
		if len(children) == 0 {
			return manifest.Files{Dir: l.Tools.Manifests, Load: prefix}.Write(all)
		}
		all = append(all, children...)
	}
}
