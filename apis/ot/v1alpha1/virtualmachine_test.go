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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

func TestImageKey(t *testing.T) {
	assert.Equal(t, types.NamespacedName{Namespace: "lab", Name: "ubuntu"}, apitest.VirtualMachine("a").ImageKey())
	assert.Equal(t, types.NamespacedName{Namespace: "farm", Name: "b"}, apitest.VirtualMachine("a", apitest.Uses("farm", "b")).ImageKey())
	assert.Equal(t, types.NamespacedName{Namespace: "other", Name: "b"},
		apitest.VirtualMachine("a", apitest.Uses("", "b"), apitest.MachineIn("other")).ImageKey())
}

func TestAdmits(t *testing.T) {
	selector := func(operator metav1.LabelSelectorOperator) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: operator, Values: []string{"red"}}}}
	}
	byName := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "other"}}
	red := map[string]string{"team": "red"}
	cases := map[string]struct {
		image     *v1alpha1.VMDiskImage
		namespace string
		labels    map[string]string
		want      bool
	}{
		"its own namespace, without a grant":      {apitest.Image("a"), "lab", nil, true},
		"its own namespace, granted to others":    {apitest.Image("a", apitest.AllowedIn("Selector", selector("In"))), "lab", nil, true},
		"another, without a grant":                {apitest.Image("a"), "other", red, false},
		"another, granted by default":             {apitest.Image("a", apitest.AllowedIn("", nil)), "other", red, false},
		"another, granted to its own":             {apitest.Image("a", apitest.AllowedIn("Same", nil)), "other", red, false},
		"another, granted to all":                 {apitest.Image("a", apitest.AllowedIn("All", nil)), "other", nil, true},
		"another with the label":                  {apitest.Image("a", apitest.AllowedIn("Selector", selector("In"))), "other", red, true},
		"another without labels":                  {apitest.Image("a", apitest.AllowedIn("Selector", selector("In"))), "other", nil, false},
		"another without the label it must lack":  {apitest.Image("a", apitest.AllowedIn("Selector", selector("NotIn"))), "other", nil, true},
		"another by its name":                     {apitest.Image("a", apitest.AllowedIn("Selector", byName)), "other", map[string]string{"kubernetes.io/metadata.name": "other"}, true},
		"another by a name that is not its own":   {apitest.Image("a", apitest.AllowedIn("Selector", byName)), "third", map[string]string{"kubernetes.io/metadata.name": "third"}, false},
		"a selector that selects all":             {apitest.Image("a", apitest.AllowedIn("Selector", &metav1.LabelSelector{})), "other", nil, true},
		"no selector":                             {apitest.Image("a", apitest.AllowedIn("Selector", nil)), "other", red, false},
		"a selector that says nothing known":      {apitest.Image("a", apitest.AllowedIn("Selector", selector("Like"))), "other", red, false},
		"a grant of a kind that is not known yet": {apitest.Image("a", apitest.AllowedIn("Some", nil)), "other", red, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, c.image.Admits(c.namespace, c.labels))
		})
	}
}

func TestWantedStrategy(t *testing.T) {
	strategy := func(s v1alpha1.RunStrategy, ignore bool) v1alpha1.RunStrategy {
		return apitest.VirtualMachine("a", apitest.MachineSpec(func(spec *v1alpha1.VirtualMachineSpec) {
			spec.RunStrategy, spec.IgnoreOnDeploy = s, ignore
		})).WantedStrategy()
	}
	assert.Equal(t, v1alpha1.RunAlways, strategy("", false))
	for _, s := range strategies(t) {
		assert.Equal(t, s, strategy(s, false))
		assert.Equal(t, v1alpha1.RunHalted, strategy(s, true), "ignoreOnDeploy wins")
	}
}

func TestNeedsGuest(t *testing.T) {
	want := map[v1alpha1.RunStrategy]bool{
		v1alpha1.RunAlways: true, v1alpha1.RunRerunOnFailure: true, v1alpha1.RunOnce: true,
		v1alpha1.RunManual: false, v1alpha1.RunHalted: false,
	}
	assert.Len(t, strategies(t), len(want))
	for _, s := range strategies(t) {
		assert.Equal(t, want[s], s.NeedsGuest(), s)
	}
}

// strategies that the API server takes.
func strategies(t *testing.T) []v1alpha1.RunStrategy {
	t.Helper()
	spec := crd(t, "virtualmachines").Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	var all []v1alpha1.RunStrategy
	for _, value := range spec.Properties["runStrategy"].Enum {
		all = append(all, v1alpha1.RunStrategy(strings.Trim(string(value.Raw), `"`)))
	}
	require.NotEmpty(t, all)
	return all
}

func TestDefaultsOfAMachine(t *testing.T) {
	vm := apitest.VirtualMachine("a", apitest.MachineSpec(func(s *v1alpha1.VirtualMachineSpec) { s.PodNetwork = nil }))
	assert.Equal(t, 30*time.Minute, vm.Timeout())
	assert.True(t, vm.HasPodNetwork())

	no := false
	vm.Spec.ProvisioningTimeout, vm.Spec.PodNetwork = &metav1.Duration{}, &no
	assert.Zero(t, vm.Timeout(), "0s waits for ever")
	assert.False(t, vm.HasPodNetwork())
}

// A child is a DataVolume, its claim, and a Secret; the machine's name is a label value.
func TestNamesOfChildrenAreValidAndDistinct(t *testing.T) {
	labels := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`)
	uids := rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	rapid.Check(t, func(t *rapid.T) {
		name, uid, other := labels.Draw(t, "name"), uids.Draw(t, "uid"), uids.Draw(t, "other")
		child := v1alpha1.VirtualMachineChild(apitest.VirtualMachine(name, apitest.MachineUID(types.UID(uid))))
		assert.Empty(t, validation.IsDNS1123Subdomain(child))
		assert.Empty(t, validation.IsValidLabelValue(name))
		again := v1alpha1.VirtualMachineChild(apitest.VirtualMachine(name, apitest.MachineUID(types.UID(other))))
		assert.Equal(t, uid == other, child == again, "one that is made anew never meets the children of the former one")
	})
}

func TestPhaseOfAMachine(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	cases := map[string]struct {
		ready, stalled metav1.ConditionStatus
		want           v1alpha1.VirtualMachinePhase
	}{
		"nothing is known":                 {"", "", v1alpha1.VirtualMachineProvisioning},
		"not ready":                        {no, no, v1alpha1.VirtualMachineProvisioning},
		"nobody knows":                     {metav1.ConditionUnknown, metav1.ConditionUnknown, v1alpha1.VirtualMachineProvisioning},
		"ready":                            {yes, no, v1alpha1.VirtualMachineReady},
		"stalled":                          {no, yes, v1alpha1.VirtualMachineFailed},
		"stalled, and ready with what was": {yes, yes, v1alpha1.VirtualMachineFailed},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var conditions []metav1.Condition
			if c.ready != "" {
				conditions = append(conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: c.ready}, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: c.stalled})
			}
			assert.Equal(t, c.want, v1alpha1.VirtualMachinePhaseOf(conditions))
			slices.Reverse(conditions)
			assert.Equal(t, c.want, v1alpha1.VirtualMachinePhaseOf(conditions), "in any order")
		})
	}
}

// What the phase may be is what the CRD admits, and a reason is one that a condition may have.
func TestListsOfAMachineAreClosed(t *testing.T) {
	status := crd(t, "virtualmachines").Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	assert.Len(t, status.Properties["phase"].Enum, 3)

	source, err := os.ReadFile("virtualmachine.go")
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, match := range regexp.MustCompile(`Reason(\w+)\s+VirtualMachineReason = "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		assert.False(t, seen[match[2]], "%s is there twice", match[2])
		assert.Regexp(t, `^[A-Z][A-Za-z]+$`, match[2])
		seen[match[2]] = true
	}
	assert.GreaterOrEqual(t, len(seen), 25)
}
