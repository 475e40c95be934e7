// Package chart renders the operators' charts and puts them into a cluster, so that tests, the demo and the bench run
// with the same policies, rights and CustomResourceDefinitions as an installation by Helm.
package chart

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/harness"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Namespace that the chart of the disk-sync-operator is rendered for: the operator's default.
const Namespace = harness.DefaultNamespace

// Chart is one of the charts of this repository.
type Chart struct {
	// Name of its folder, of its operator, and of the release.
	Name string
	// Namespace that it is rendered for: the operator's default.
	Namespace string
}

// The charts.
var (
	DiskSync  = Chart{Name: "disk-sync-operator", Namespace: Namespace}
	VM        = Chart{Name: "vm-operator", Namespace: "vm-operator"}
	Workspace = Chart{Name: "workspace-operator", Namespace: "workspace-operator"}
)

// WithoutOperator renders all but the Deployment: the operator runs as a process beside the cluster.
const WithoutOperator = "operator.enabled=false"

// WithImportOnce renders the MutatingAdmissionPolicy, which the chart leaves out where it cannot ask a cluster for
// its APIs.
const WithImportOnce = "importOnce.enabled=true"

// AllowedSources is the value that lists the prefixes in the policy. It has to follow a value for the whole policy.
func AllowedSources(prefixes ...string) (string, error) {
	list, err := json.Marshal(prefixes)
	return "policy.allowedSources=" + string(list), err
}

const (
	fieldOwner    = "open-terrain-e2e"
	activePoll    = 50 * time.Millisecond
	activeTimeout = 30 * time.Second
)

// Render returns the manifests of the disk-sync-operator's chart, see Chart.Render.
func Render(ctx context.Context, values ...string) ([]byte, error) {
	return DiskSync.Render(ctx, values...)
}

// Install puts the disk-sync-operator's chart into the cluster, see Chart.Install.
func Install(ctx context.Context, c client.Client, values ...string) error {
	return DiskSync.Install(ctx, c, values...)
}

// Render returns the chart's manifests. Each value is a path and JSON, such as policy={"concurrency":2}. The error
// holds what Helm said.
func (ch Chart) Render(ctx context.Context, values ...string) ([]byte, error) {
	root, err := harness.Root()
	if err != nil {
		return nil, err
	}
	args := []string{ch.Name, ch.Namespace}
	for _, value := range values {
		args = append(args, "--set-json", value)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(root, "scripts", "render-chart.sh"), args...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("render the chart %s: %w: %s", ch.Name, err, strings.TrimSpace(complaint.String()))
	}
	return out.Bytes(), nil
}

// Objects splits manifests into objects, in their order.
func Objects(manifests []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("manifest %d: %w", len(objects)+1, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// Install renders the chart, applies it and returns when its mutating admission policy, if it has one, is at work. It makes
// the namespace, and may be repeated.
func (ch Chart) Install(ctx context.Context, c client.Client, values ...string) error {
	manifests, err := ch.Render(ctx, values...)
	if err != nil {
		return err
	}
	objects, err := Objects(manifests)
	if err != nil {
		return err
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	namespace.SetName(ch.Namespace)
	strict := client.WithFieldValidation(c, metav1.FieldValidationStrict)
	admission := false
	for _, object := range append([]*unstructured.Unstructured{namespace}, objects...) {
		admission = admission || object.GetKind() == "MutatingAdmissionPolicyBinding"
		err := strict.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fieldOwner), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	if !admission {
		return nil
	}
	return awaitImportOnce(ctx, c)
}

// awaitImportOnce tries the policy until it answers: the API server takes a moment to see a new one.
func awaitImportOnce(ctx context.Context, c client.Client) error {
	dryRun := client.NewDryRunClient(c)
	var last error
	err := wait.PollUntilContextTimeout(ctx, activePoll, activeTimeout, true, func(ctx context.Context) (bool, error) {
		pod := importerPod()
		last = dryRun.Create(ctx, pod)
		return last == nil && pod.Spec.RestartPolicy == corev1.RestartPolicyNever, nil
	})
	if err != nil {
		return fmt.Errorf("the policy for importer pods is not at work: %w", errors.Join(err, last))
	}
	return nil
}

// importerPod is one as CDI makes it, as far as admission looks at it.
func importerPod() *corev1.Pod {
	yes, no, user := true, false, int64(107)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, GenerateName: "importer-", Labels: map[string]string{"cdi.kubevirt.io": "importer"},
		},
		Spec: corev1.PodSpec{
			PriorityClassName:            otv1alpha1.ImportPriorityClass,
			RestartPolicy:                corev1.RestartPolicyOnFailure,
			AutomountServiceAccountToken: &no,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &user,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "importer", Image: "quay.io/kubevirt/cdi-importer:v1.65.0",
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}
