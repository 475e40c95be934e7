package desired_test

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/desired"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files anew")

const uid = "0f6c2b1e-1111-4222-8333-abcdef012345"

// friends are the other workspaces that exist.
var friends = desired.Friends{
	"monitoring": apitest.Workspace("monitoring"),
	"guest":      apitest.Workspace("guest", apitest.Targets("guests")),
}

// dual are the settings of a cluster with both families, and with addresses of its own that nobody may reach.
func dual() desired.Settings {
	s := desired.DefaultSettings()
	s.DNS.CIDRs = append(s.DNS.CIDRs, netip.MustParsePrefix("fd00:10::a/128"))
	s.Metadata = []netip.Prefix{netip.MustParsePrefix("100.100.100.200/32"), netip.MustParsePrefix("198.51.100.0/24")}
	return s
}

func TestChildren(t *testing.T) {
	for name, settings := range map[string]desired.Settings{
		"proposal": desired.DefaultSettings(), "full": desired.DefaultSettings(), "foreign": desired.DefaultSettings(), "dual-stack": dual(),
	} {
		t.Run(name, func(t *testing.T) {
			w := read(t, name)
			before := w.DeepCopy()
			got := desired.Children(w, friends, settings)
			golden(t, name, got)
			assert.Equal(t, got, desired.Children(w, friends, settings), "the same again: a second apply changes nothing")
			assert.Equal(t, before, w, "the workspace is only read")
		})
	}
}

// read is a Workspace of testdata, with a UID such as the API server gives.
func read(t *testing.T, name string) *v1alpha1.Workspace {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	require.NoError(t, err)
	w := &v1alpha1.Workspace{}
	require.NoError(t, yaml.UnmarshalStrict(raw, w))
	w.UID = uid
	return w
}

// golden compares objects as they are written, in their order.
func golden(t *testing.T, name string, objects []*unstructured.Unstructured) {
	t.Helper()
	var got []byte
	for _, object := range objects {
		raw, err := yaml.Marshal(object.Object)
		require.NoError(t, err)
		got = append(append(got, "---\n"...), raw...)
	}
	goldenText(t, name+".golden.yaml", string(got))
}

// goldenText compares a text with that of a file.
func goldenText(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run go test with -update")
	assert.Equal(t, string(want), got)
}

func TestChildrenBelongToTheWorkspaceByUID(t *testing.T) {
	for _, name := range []string{"full", "foreign"} {
		w := read(t, name)
		for _, child := range desired.Children(w, friends, desired.DefaultSettings()) {
			assert.True(t, metav1.IsControlledBy(child, w), child.GetName())
			assert.Equal(t, uid, child.GetLabels()[v1alpha1.LabelWorkspaceUID], "the operator's cache finds it")
			if child.GetKind() != "Namespace" {
				assert.Equal(t, w.ChildNamespace(), child.GetNamespace())
			}
		}
	}
}

func TestWhatThereIs(t *testing.T) {
	cases := map[string]struct {
		mods []apitest.WorkspaceMod
		want []string
	}{
		"nothing but isolation": {nil, []string{"Namespace ws-lab", "NetworkPolicy workspace"}},
		"not isolated":          {[]apitest.WorkspaceMod{open}, []string{"Namespace ws-lab"}},
		"a virtual machine": {
			[]apitest.WorkspaceMod{apitest.Member("db", "image")},
			[]string{"Namespace ws-lab", "NetworkPolicy workspace", "NetworkPolicy workspace-disks", "Service db", "VirtualMachine db"},
		},
		"a container without ports": {
			[]apitest.WorkspaceMod{open, apitest.Runs("api", "api:1")}, []string{"Namespace ws-lab", "Deployment api"},
		},
		"a container with ports": {
			[]apitest.WorkspaceMod{open, apitest.Runs("api", "api:1", apitest.Listens(80))},
			[]string{"Namespace ws-lab", "Service api", "Deployment api"},
		},
		"a virtual machine that no Service can be called after": {
			[]apitest.WorkspaceMod{open, apitest.Member("9db", "image")}, []string{"Namespace ws-lab", "VirtualMachine 9db"},
		},
		"in a namespace of others": {
			[]apitest.WorkspaceMod{apitest.Targets("team"), apitest.Member("9db", "image")},
			[]string{"NetworkPolicy lab-a51146d3", "Service lab-9db-d21c0283", "VirtualMachine lab-9db-d21c0283"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, child := range desired.Children(apitest.Workspace("lab", c.mods...), nil, desired.DefaultSettings()) {
				got = append(got, child.GetKind()+" "+child.GetName())
			}
			assert.Equal(t, c.want, got)
		})
	}
}

func open(w *v1alpha1.Workspace) {
	w.Spec.Network = &v1alpha1.WorkspaceNetwork{Isolate: new(false)}
}
