// Package docs holds the documentation to what is there: examples that the API server takes, links that lead somewhere,
// and tables that leave nothing out.
package docs

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pelotech/open-terrain/e2e/chart"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInSlug = regexp.MustCompile(`[^a-z0-9 _-]`)
)

func root(t *testing.T) string {
	t.Helper()
	dir, err := harness.Root()
	require.NoError(t, err)
	return dir
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root(t)}, path...)...))
	require.NoError(t, err)
	return string(text)
}

// pages are the paths of all pages, from the root of the repository.
func pages(t *testing.T) []string {
	t.Helper()
	found := []string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "*-operator/*.md"} {
		matches, err := filepath.Glob(filepath.Join(root(t), pattern))
		require.NoError(t, err)
		for _, match := range matches {
			page, err := filepath.Rel(root(t), match)
			require.NoError(t, err)
			found = append(found, page)
		}
	}
	require.Contains(t, found, "README.md")
	return found
}

func TestTheAPIServerTakesEveryExample(t *testing.T) {
	if os.Getenv("OT_E2E") == "existing" {
		t.Skip("needs no cluster that exists")
	}
	crds, err := harness.OwnCRDs()
	require.NoError(t, err)
	cluster, err := harness.Start(t.Context(), harness.Options{CRDs: []string{crds}, Controllers: []string{}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	c, err := cluster.Client("docs-test")
	require.NoError(t, err)
	for _, name := range []string{"lab-a", "vmdi-farm", "vm-images", chart.Namespace} {
		require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	examples := 0
	for _, page := range pages(t) {
		for _, block := range yamlBlock.FindAllStringSubmatch(read(t, page), -1) {
			examples += try(t, c, page, block[1])
		}
	}
	assert.GreaterOrEqual(t, examples, 6)
}

// try creates the objects of an example, without keeping them, and tells how many there are.
func try(t *testing.T, c client.Client, page, example string) int {
	t.Helper()
	objects, err := chart.Objects([]byte(example))
	require.NoError(t, err, "%s:\n%s", page, example)
	strict := client.WithFieldValidation(client.NewDryRunClient(c), metav1.FieldValidationStrict)
	for _, object := range objects {
		assert.NoError(t, strict.Create(context.WithoutCancel(t.Context()), object), "%s:\n%s", page, example)
	}
	return len(objects)
}

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	for _, page := range pages(t) {
		for _, match := range link.FindAllStringSubmatch(read(t, page), -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := filepath.Join(filepath.Dir(page), target)
			if target == "" {
				path = page
			}
			_, err := os.Stat(filepath.Join(root(t), path))
			if assert.NoError(t, err, "%s: %s", page, match[1]) && anchor != "" {
				assert.Contains(t, anchors(read(t, path)), anchor, "%s: %s", page, match[1])
			}
		}
	}
}

// anchors of a page's headings, as GitHub makes them.
func anchors(text string) []string {
	var found []string
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		slug := notInSlug.ReplaceAllString(strings.ToLower(match[1]), "")
		found = append(found, strings.ReplaceAll(slug, " ", "-"))
	}
	return found
}

func TestTheTablesLeaveNothingOut(t *testing.T) {
	cases := map[string]struct {
		source  []string
		pattern string
		page    []string
		least   int
	}{
		"every key of the policy": {
			[]string{"apis", "policy", "policy.go"}, `Key\w+\s+= "(\w+)"`, []string{"docs", "policy.md"}, 12,
		},
		"every failure reason": {
			[]string{"apis", "ot", "v1alpha1", "conditions.go"}, `Failure\w+ FailureReason = "(\w+)"`, []string{"docs", "vmdiskimage.md"}, 13,
		},
		"every condition and every reason": {
			[]string{"apis", "ot", "v1alpha1", "conditions.go"}, `(?:Condition|Reason)\w+ = "(\w+)"`, []string{"docs", "vmdiskimage.md"}, 12,
		},
		"every field": {
			[]string{"apis", "ot", "v1alpha1", "vmdiskimage_types.go"}, `json:"(\w+),omitempty"`, []string{"docs", "vmdiskimage.md"}, 25,
		},
		"every condition and every reason of a DataSync": {
			[]string{"apis", "ot", "v1alpha1", "datasync.go"}, `(?:Condition|Reason|DataSync)\w+(?: DataSyncPhase)? = "([\w./-]+)"`, []string{"docs", "datasync.md"}, 9,
		},
		"every field of a DataSync": {
			[]string{"apis", "ot", "v1alpha1", "datasync_types.go"}, `json:"(\w+)`, []string{"docs", "datasync.md"}, 25,
		},
		"every condition and every reason of a VirtualMachine": {
			[]string{"apis", "ot", "v1alpha1", "virtualmachine.go"}, `(?:Condition|Reason|VirtualMachine)\w+(?: VirtualMachine(?:Phase|Reason))?\s+= "(\w+)"`, []string{"docs", "virtualmachine.md"}, 35,
		},
		"every label, annotation and finalizer of a VirtualMachine": {
			[]string{"apis", "ot", "v1alpha1", "virtualmachine.go"}, `(?:Label|Annotation|Finalizer)\w+\s+= "([\w./-]+)"`, []string{"docs", "virtualmachine.md"}, 8,
		},
		"every field of a VirtualMachine": {
			[]string{"apis", "ot", "v1alpha1", "virtualmachine_types.go"}, `json:"(\w+)`, []string{"docs", "virtualmachine.md"}, 35,
		},
		"every field of a VirtualMachine's status": {
			[]string{"apis", "ot", "v1alpha1", "virtualmachine_status_types.go"}, `json:"(\w+)`, []string{"docs", "virtualmachine.md"}, 20,
		},
		"every condition and every reason of a Workspace": {
			[]string{"apis", "ot", "v1alpha1", "workspace.go"}, `(?:Condition|Workspace)\w+(?: Workspace(?:Phase|ContainerState|Reason))?\s+= "(\w+)"`, []string{"docs", "workspace.md"}, 35,
		},
		"every label and finalizer of a Workspace": {
			[]string{"apis", "ot", "v1alpha1", "workspace.go"}, `(?:Label|Finalizer)\w+\s+= "([\w./-]+)"`, []string{"docs", "workspace.md"}, 3,
		},
		"every field of a Workspace": {
			[]string{"apis", "ot", "v1alpha1", "workspace_types.go"}, `json:"(\w+)`, []string{"docs", "workspace.md"}, 8,
		},
		"every field of a Workspace's containers": {
			[]string{"apis", "ot", "v1alpha1", "workspace_container_types.go"}, `json:"([\w-]+)`, []string{"docs", "workspace.md"}, 20,
		},
		"every field of a Workspace's network": {
			[]string{"apis", "ot", "v1alpha1", "workspace_network_types.go"}, `json:"(\w+)`, []string{"docs", "workspace.md"}, 12,
		},
		"every field of a Workspace's status": {
			[]string{"apis", "ot", "v1alpha1", "workspace_status_types.go"}, `json:"(\w+)`, []string{"docs", "workspace.md"}, 18,
		},
		"every flag of the workspace-operator": {
			[]string{"workspace-operator", "cmd", "workspace-operator", "options.go"}, `Var\(&o\.[\w.]+, "([\w-]+)"`, []string{"workspace-operator", "README.md"}, 15,
		},
		"every metric of the workspace-operator": {
			[]string{"workspace-operator", "internal", "controller", "metrics.go"}, `"(workspaceoperator_\w+)"`, []string{"workspace-operator", "README.md"}, 3,
		},
		"every metric of DataSyncs": {
			[]string{"disk-sync-operator", "internal", "controller", "datasync_metrics.go"}, `"(disksync_\w+)"`, []string{"disk-sync-operator", "README.md"}, 1,
		},
		"every flag": {
			[]string{"disk-sync-operator", "cmd", "disk-sync-operator", "options.go"}, `Var\(&o\.\w+, "([\w-]+)"`, []string{"disk-sync-operator", "README.md"}, 10,
		},
		"every metric": {
			[]string{"disk-sync-operator", "internal", "controller", "metrics.go"}, `"(disksync_\w+)"`, []string{"disk-sync-operator", "README.md"}, 8,
		},
	}
	// Fields of parts that the page does not take apart.
	elsewhere := map[string]bool{"from": true, "selector": true, "metadata": true, "spec": true, "status": true, "sample": true, "items": true, "lastReferencedAt": true}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			page := read(t, c.page...)
			found := regexp.MustCompile(c.pattern).FindAllStringSubmatch(read(t, c.source...), -1)
			assert.GreaterOrEqual(t, len(found), c.least)
			for _, match := range found {
				if !elsewhere[match[1]] && !strings.Contains(page, match[1]) {
					t.Errorf("%s does not tell of %s", filepath.Join(c.page...), match[1])
				}
			}
		})
	}
}
