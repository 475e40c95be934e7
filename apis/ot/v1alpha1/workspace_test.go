package v1alpha1_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

func TestNamesOfAWorkspacesChildren(t *testing.T) {
	own, shared := apitest.Workspace("a"), apitest.Workspace("a", apitest.Targets("labs"))
	assert.Equal(t, "ws-a", own.ChildNamespace())
	assert.Equal(t, "web", v1alpha1.WorkspaceChild(own, "web"), "its peers find it by it")
	assert.Equal(t, "workspace", v1alpha1.WorkspacePolicyName(own))
	assert.True(t, own.OwnsNamespace())

	assert.Equal(t, "labs", shared.ChildNamespace())
	assert.Regexp(t, `^a-web-[0-9a-f]{8}$`, v1alpha1.WorkspaceChild(shared, "web"))
	assert.Regexp(t, `^a-[0-9a-f]{8}$`, v1alpha1.WorkspacePolicyName(shared))
	assert.False(t, shared.OwnsNamespace())
	assert.Regexp(t, `^ws-1a-web-[0-9a-f]{8}$`, v1alpha1.WorkspaceChild(apitest.Workspace("1a", apitest.Targets("labs")), "web"),
		"the name of a Service begins with a letter")
}

// A child's name is that of a Service, too.
func TestNamesOfAWorkspacesChildrenAreValidAndDistinct(t *testing.T) {
	labels := rapid.OneOf(rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`), rapid.StringMatching(`[ab](-?[ab]){0,3}`),
		rapid.StringMatching(`a{50,60}[ab]{1,3}`))
	rapid.Check(t, func(t *rapid.T) {
		name, entry := labels.Draw(t, "name"), labels.Draw(t, "entry")
		otherName, otherEntry := labels.Draw(t, "other name"), labels.Draw(t, "other entry")
		one, other := apitest.Workspace(name, apitest.Targets("labs")), apitest.Workspace(otherName, apitest.Targets("labs"))
		for _, child := range []string{v1alpha1.WorkspaceNamespace(name), v1alpha1.WorkspaceChild(one, entry), v1alpha1.WorkspacePolicyName(one)} {
			assert.Empty(t, validation.IsDNS1035Label(child), child)
		}
		assert.Equal(t, name == otherName, v1alpha1.WorkspaceNamespace(name) == v1alpha1.WorkspaceNamespace(otherName))
		assert.Equal(t, name == otherName, v1alpha1.WorkspacePolicyName(one) == v1alpha1.WorkspacePolicyName(other))
		assert.Equal(t, name == otherName && entry == otherEntry, v1alpha1.WorkspaceChild(one, entry) == v1alpha1.WorkspaceChild(other, otherEntry))
	})
}

func TestNobodyChoosesTheNamespaceOfALongName(t *testing.T) {
	long := strings.Repeat("a", 63)
	namespace := v1alpha1.WorkspaceNamespace(long)
	assert.Len(t, namespace, 63)
	assert.NotEqual(t, namespace, v1alpha1.WorkspaceNamespace(strings.TrimPrefix(namespace, "ws-")), "that is a name, too")
}

func TestDefaultsOfAWorkspace(t *testing.T) {
	w := apitest.Workspace("a")
	w.Spec.Network = nil
	assert.True(t, w.Isolates())
	assert.True(t, w.AllowsDNS())
	assert.Equal(t, 30*time.Minute, w.Timeout())
	assert.Equal(t, int32(1), (&v1alpha1.WorkspaceContainer{}).WantedReplicas())

	w.Spec.Network = &v1alpha1.WorkspaceNetwork{}
	assert.True(t, w.Isolates())
	assert.True(t, w.AllowsDNS())

	w.Spec.Network = &v1alpha1.WorkspaceNetwork{Isolate: new(false), AllowDNS: new(false)}
	w.Spec.ProvisioningTimeout = &metav1.Duration{}
	assert.False(t, w.Isolates())
	assert.False(t, w.AllowsDNS())
	assert.Zero(t, w.Timeout(), "0s waits for ever")
}

func TestTheImageOfAMember(t *testing.T) {
	ref := func(namespace, name string) v1alpha1.VMDiskImageReference {
		return v1alpha1.VMDiskImageReference{Namespace: namespace, Name: name}
	}
	w := apitest.Workspace("a", apitest.Member("short", "ubuntu"), apitest.Member("full", "", func(s *v1alpha1.WorkspaceVirtualMachineSpec) {
		s.VMDiskImageRef = new(ref("farm", "debian"))
	}), apitest.Member("near", "", func(s *v1alpha1.WorkspaceVirtualMachineSpec) { s.VMDiskImageRef = new(ref("", "debian")) }))
	var got []v1alpha1.VMDiskImageReference
	for i := range w.Spec.VirtualMachines {
		got = append(got, w.Spec.VirtualMachines[i].Image("vm-images"))
	}
	assert.Equal(t, []v1alpha1.VMDiskImageReference{ref("vm-images", "ubuntu"), ref("farm", "debian"), ref("vm-images", "debian")}, got)
	assert.Empty(t, w.Spec.VirtualMachines[2].Spec.VMDiskImageRef.Namespace, "the spec is not touched")
}

func TestPhaseOfAWorkspace(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	cases := map[string]struct {
		ready, stalled metav1.ConditionStatus
		want           v1alpha1.WorkspacePhase
	}{
		"nothing is known":                 {"", "", v1alpha1.WorkspaceProvisioning},
		"not ready":                        {no, no, v1alpha1.WorkspaceProvisioning},
		"nobody knows":                     {metav1.ConditionUnknown, metav1.ConditionUnknown, v1alpha1.WorkspaceProvisioning},
		"ready":                            {yes, no, v1alpha1.WorkspaceReady},
		"stalled":                          {no, yes, v1alpha1.WorkspaceFailed},
		"stalled, and ready with what was": {yes, yes, v1alpha1.WorkspaceFailed},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var conditions []metav1.Condition
			if c.ready != "" {
				conditions = append(conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: c.ready}, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: c.stalled})
			}
			assert.Equal(t, c.want, v1alpha1.WorkspacePhaseOf(conditions))
			slices.Reverse(conditions)
			assert.Equal(t, c.want, v1alpha1.WorkspacePhaseOf(conditions), "in any order")
		})
	}
}

// What the phases may be is what the CRD admits, and a reason is one that a condition may have.
func TestListsOfAWorkspaceAreClosed(t *testing.T) {
	status := crd(t, "workspaces").Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	assert.Len(t, status.Properties["phase"].Enum, 3)
	assert.Len(t, status.Properties["resourceStatus"].Properties["containers"].Items.Schema.Properties["status"].Enum, 3)

	source, err := os.ReadFile("workspace.go")
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, match := range regexp.MustCompile(`Workspace(\w+)\s+WorkspaceReason = "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		assert.False(t, seen[match[2]], "%s is there twice", match[2])
		assert.Equal(t, match[1], match[2])
		seen[match[2]] = true
	}
	assert.GreaterOrEqual(t, len(seen), 25)
}
