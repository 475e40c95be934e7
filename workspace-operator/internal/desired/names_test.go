package desired_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

var service = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// label is a name that validation admits, of those that look alike: few letters, many "-", lengths about the limits.
func label(t *rapid.T, name string) string {
	length := rapid.SampledFrom([]int{1, 2, 3, 51, 54, 60, 61, 63}).Draw(t, name+" length")
	text := rapid.StringOfN(rapid.SampledFrom([]rune("a0-")), length, length, -1).Draw(t, name)
	if text = strings.Trim(text, "-"); text == "" {
		return "a"
	}
	return text
}

// Two workspaces never share a namespace, also where one is called as the other's namespace.
func TestNamespacesAreDistinct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := label(t, "a")
		b := rapid.OneOf(
			rapid.Custom(func(t *rapid.T) string { return label(t, "b") }),
			rapid.Just(strings.TrimPrefix(v1alpha1.WorkspaceNamespace(a), "ws-")),
			rapid.Just(v1alpha1.WorkspaceNamespace(a)),
		).Draw(t, "the other")
		assert.Empty(t, validation.IsDNS1123Label(v1alpha1.WorkspaceNamespace(a)))
		if a != b {
			assert.NotEqual(t, v1alpha1.WorkspaceNamespace(a), v1alpha1.WorkspaceNamespace(b), "%s and %s", a, b)
		}
	})
}

// Two entries never share a child, nor do those of two workspaces in one namespace, however their names are put together.
func TestChildrenAreDistinct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		joined := label(t, "workspace") + "-" + label(t, "entry")
		pair := func(name string) (string, string) {
			cuts := rapid.OneOf(rapid.Just(0), rapid.IntRange(1, len(joined)-1)).Draw(t, name+" cut")
			w, entry := joined[:cuts], joined[cuts:]
			if len(validation.IsDNS1123Label(w)) > 0 || len(validation.IsDNS1123Label(strings.TrimLeft(entry, "-"))) > 0 {
				return label(t, name+" workspace"), label(t, name+" entry")
			}
			return w, strings.TrimLeft(entry, "-")
		}
		w1, e1 := pair("one")
		w2, e2 := pair("other")
		one, other := apitest.Workspace(w1, apitest.Targets("team")), apitest.Workspace(w2, apitest.Targets("team"))
		for _, name := range []string{v1alpha1.WorkspaceChild(one, e1), v1alpha1.WorkspacePolicyName(one)} {
			assert.Regexp(t, service, name)
			assert.LessOrEqual(t, len(name), validation.DNS1123LabelMaxLength)
		}
		assert.Empty(t, validation.IsValidLabelValue(v1alpha1.WorkspaceEntry(one, e1)))
		if w1 != w2 || e1 != e2 {
			assert.NotEqual(t, v1alpha1.WorkspaceChild(one, e1), v1alpha1.WorkspaceChild(other, e2))
			assert.NotEqual(t, v1alpha1.WorkspaceEntry(one, e1), v1alpha1.WorkspaceEntry(other, e2))
		}
		if w1 != w2 {
			assert.NotEqual(t, v1alpha1.WorkspacePolicyName(one), v1alpha1.WorkspacePolicyName(other))
		}
		own := apitest.Workspace(w1)
		assert.Equal(t, e1, v1alpha1.WorkspaceChild(own, e1), "in a namespace of its own a child is called as its entry")
	})
}
