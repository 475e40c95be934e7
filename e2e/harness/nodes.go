package harness

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
)

// stages of pods that do not run, beside KWOK's own of those that do.
//
//go:embed stages
var stages embed.FS

// What a node has. It is less than the simulators' guests may ask for: their launchers have a node of their own.
const (
	nodeCPU    = "32"
	nodeMemory = "64Gi"
	nodePods   = "500"
)

// labelNode marks the nodes that KWOK is to look after.
const labelNode = "open-terrain-e2e/node"

// podControllers make pods of Deployments, and endpoints of Services.
func podControllers() []string {
	return []string{"deployment-controller", "replicaset-controller", "endpointslice-controller"}
}

// startNodes runs KWOK, and returns when that many nodes are ready for pods. Pods that a simulator plays are bound to a node
// that does not exist: KWOK does not touch them.
//
// There is no heartbeat, and no controller that misses it: a machine that is busy would lose its nodes.
func (c *Cluster) startNodes(ctx context.Context, count int) error {
	config := filepath.Join(c.Dir, "kwok.yaml")
	text, err := kwokConfig()
	if err != nil {
		return err
	}
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	program := filepath.Join(c.assets, "kwok")
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("nodes need the control plane of scripts/test-env.sh, which KUBEBUILDER_ASSETS replaces: %w", err)
	}
	log, err := c.logFile("kwok")
	if err != nil {
		return err
	}
	process, err := StartProcess(ctx, Command{Path: program, Log: log, Args: []string{
		"--kubeconfig=" + c.Kubeconfig, "--config=" + config, "--manage-nodes-with-label-selector=" + labelNode,
	}})
	if err != nil {
		return err
	}
	c.processes = append(c.processes, process)
	return c.makeNodes(ctx, count, process)
}

// kwokConfig is KWOK's and our stages as one file.
func kwokConfig() (string, error) {
	all := []string{nodefast.DefaultNodeInit, podfast.DefaultPodReady, podfast.DefaultPodComplete, podfast.DefaultPodDelete}
	files, err := stages.ReadDir("stages")
	if err != nil {
		return "", err
	}
	for _, file := range files {
		text, err := stages.ReadFile("stages/" + file.Name())
		if err != nil {
			return "", err
		}
		all = append(all, string(text))
	}
	return strings.Join(all, "\n---\n"), nil
}

func (c *Cluster) makeNodes(ctx context.Context, count int, kwok *Process) error {
	cl, err := c.Client("harness")
	if err != nil {
		return err
	}
	for i := range count {
		name := fmt.Sprintf("node-%d", i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{labelNode: "", corev1.LabelHostname: name}}}
		has := corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(nodeCPU), corev1.ResourceMemory: resource.MustParse(nodeMemory), corev1.ResourcePods: resource.MustParse(nodePods),
		}
		node.Status.Capacity, node.Status.Allocatable = has, has
		if err := cl.Create(ctx, node); err != nil {
			return err
		}
		if err := c.awaitNode(ctx, cl, node, kwok); err != nil {
			return fmt.Errorf("wait for the node %s: %w; see %s", name, err, filepath.Join(c.Dir, "logs", "kwok.log"))
		}
	}
	return nil
}

// awaitNode returns when the node is ready and takes pods: nobody else takes away the taint that admission gives to a new one.
func (c *Cluster) awaitNode(ctx context.Context, cl client.Client, node *corev1.Node, kwok *Process) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, controlPlaneTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-kwok.Done():
			return false, errors.New("kwok has ended")
		default:
		}
		if err := cl.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
			return false, err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				before := node.DeepCopy()
				node.Spec.Taints = nil
				return true, cl.Patch(ctx, node, client.MergeFrom(before))
			}
		}
		return false, nil
	})
}
