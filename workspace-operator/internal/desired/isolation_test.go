package desired_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/desired"
	"github.com/stretchr/testify/assert"
)

// network changes the network of a workspace.
func network(change func(*v1alpha1.WorkspaceNetwork)) apitest.WorkspaceMod {
	return apitest.WorkspaceSpec(func(s *v1alpha1.WorkspaceSpec) { change(s.Network) })
}

func to(peers ...v1alpha1.WorkspacePeer) apitest.WorkspaceMod {
	return network(func(n *v1alpha1.WorkspaceNetwork) {
		n.Egress = append(n.Egress, v1alpha1.WorkspaceEgressRule{To: peers})
	})
}

func from(peers ...v1alpha1.WorkspacePeer) apitest.WorkspaceMod {
	return network(func(n *v1alpha1.WorkspaceNetwork) {
		n.Ingress = append(n.Ingress, v1alpha1.WorkspaceIngressRule{From: peers})
	})
}

func allowing(names ...string) apitest.WorkspaceMod {
	return network(func(n *v1alpha1.WorkspaceNetwork) {
		for _, name := range names {
			n.AllowFrom = append(n.AllowFrom, v1alpha1.WorkspaceFriend{Workspace: name})
		}
	})
}

func cidr(text string, except ...string) v1alpha1.WorkspacePeer {
	return v1alpha1.WorkspacePeer{CIDR: text, Except: except}
}

func namespace(name string) v1alpha1.WorkspacePeer { return v1alpha1.WorkspacePeer{Namespace: name} }

// Who reaches whom, and where, is written down in testdata/reach.golden.
func TestReach(t *testing.T) {
	w := newWorld(t, desired.DefaultSettings(),
		apitest.Workspace("a", apitest.Member("db", "postgres")),
		apitest.Workspace("b", apitest.Member("db", "postgres"), to(cidr("0.0.0.0/0"), cidr("::/0")), from(namespace("monitoring"))),
		apitest.Workspace("c", allowing("b", "d"), to(namespace("ws-a"))),
		apitest.Workspace("d", apitest.Targets("team"), to(namespace("ws-c"), cidr("172.18.0.0/16"))),
		apitest.Workspace("e", apitest.Targets("team")),
		apitest.Workspace("f", open),
	)
	places := append([]place{}, everywhere...)
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		places = append(places, w.members[name]...)
	}
	places = append(places, w.uploadServer("a"), place{"a pod of team", "team", nil, "10.2.0.30"})
	var text strings.Builder
	for _, from := range places {
		for _, to := range places {
			if from.namespace == "" && to.namespace == "" || from.name == to.name {
				continue
			}
			fmt.Fprintf(&text, "%s -> %s: %s\n", from.name, to.name, w.doorsBetween(from, to))
		}
	}
	goldenText(t, "reach.golden", text.String())
}

// doorsBetween are those through which one reaches the other.
func (w *world) doorsBetween(from, to place) string {
	var open []string
	for _, at := range doors {
		if w.reach(from, to, at) {
			open = append(open, at.String())
		}
	}
	switch len(open) {
	case 0:
		return "nothing"
	case len(doors):
		return "everything"
	}
	return strings.Join(open, " ")
}

func TestIsolation(t *testing.T) {
	a, b := apitest.Workspace("a"), apitest.Workspace("b")
	web, all := door{"TCP", 80}, doors
	cases := map[string]struct {
		world *world
		from  func(*world) place
		to    func(*world) place
		at    []door
		want  bool
	}{
		"members reach each other":                 {with(t, a), member("a"), stranger("a"), all, true},
		"a member reaches nothing outside":         {with(t, a), member("a"), is(internet), all, false},
		"nor the API":                              {with(t, a), member("a"), is(api), all, false},
		"nor another namespace":                    {with(t, a), member("a"), is(shop), all, false},
		"nothing outside reaches a member":         {with(t, a), is(internet), member("a"), all, false},
		"nor does another namespace":               {with(t, a), is(shop), member("a"), all, false},
		"nor does a label":                         {with(t, a), is(forger), member("a"), all, false},
		"DNS on its port":                          {with(t, a), member("a"), is(dns), doors[:2], true},
		"DNS on no other":                          {with(t, a), member("a"), is(dns), doors[2:], false},
		"DNS of the node on its port":              {with(t, a), member("a"), is(nodeDNS), doors[:2], true},
		"DNS of the node on no other":              {with(t, a), member("a"), is(nodeDNS), doors[2:], false},
		"who is not the DNS":                       {with(t, a), member("a"), is(notDNS), all, false},
		"who is labelled as the DNS":               {with(t, a), member("a"), is(fakeDNS), all, false},
		"the DNS does not reach a member":          {with(t, a), is(dns), member("a"), all, false},
		"no DNS":                                   {with(t, apitest.Workspace("a", network(noDNS))), member("a"), is(dns), all, false},
		"DNS that is not configured is nobody":     {newWorld(t, desired.Settings{DNS: desired.DNS{Namespace: "kube-system"}}, a), member("a"), is(notDNS), all, false},
		"two workspaces":                           {with(t, a, b), member("a"), member("b"), all, false},
		"allowFrom is not enough":                  {with(t, a, apitest.Workspace("b", allowing("a"))), member("a"), member("b"), all, false},
		"egress is not enough":                     {with(t, apitest.Workspace("a", to(namespace("ws-b"))), b), member("a"), member("b"), all, false},
		"everywhere is not enough":                 {with(t, apitest.Workspace("a", to(cidr("0.0.0.0/0"))), b), member("a"), member("b"), all, false},
		"both are":                                 {with(t, apitest.Workspace("a", to(namespace("ws-b"))), apitest.Workspace("b", allowing("a"))), member("a"), member("b"), all, true},
		"and not back":                             {with(t, apitest.Workspace("a", to(namespace("ws-b"))), apitest.Workspace("b", allowing("a"))), member("b"), member("a"), all, false},
		"nobody else in the namespace of a friend": {with(t, apitest.Workspace("a", to(namespace("ws-b"))), apitest.Workspace("b", allowing("a"))), stranger("a"), member("b"), all, false},
		"two in one namespace":                     {with(t, apitest.Workspace("a", apitest.Targets("team")), apitest.Workspace("b", apitest.Targets("team"))), member("a"), member("b"), all, false},
		"CDI fills disks":                          {with(t, apitest.Workspace("a", apitest.Member("db", "i"))), is(cloneSource), upload("a"), []door{{"TCP", 8443}}, true},
		"CDI does nothing else there":              {with(t, apitest.Workspace("a", apitest.Member("db", "i"))), is(cloneSource), upload("a"), []door{web, {"UDP", 8443}}, false},
		"CDI reaches no member":                    {with(t, apitest.Workspace("a", apitest.Member("db", "i"))), is(cloneSource), member("a"), all, false},
		"a label makes nobody CDI":                 {with(t, apitest.Workspace("a", apitest.Member("db", "i"))), is(fakeSource), upload("a"), all, false},
		"others beside the images do not fill":     {with(t, apitest.Workspace("a", apitest.Member("db", "i"))), is(otherImages), upload("a"), all, false},
		"CDI's pods get nowhere":                   {with(t, apitest.Workspace("a", apitest.Member("db", "i"))), upload("a"), is(internet), all, false},
		"without machines nobody fills disks":      {with(t, a), is(cloneSource), upload("a"), all, false},
		"metadata, when everything is allowed":     {with(t, apitest.Workspace("a", to(cidr("0.0.0.0/0"), cidr("::/0")))), member("a"), is(metadata), all, false},
		"metadata on IPv6":                         {with(t, apitest.Workspace("a", to(cidr("0.0.0.0/0"), cidr("::/0")))), member("a"), is(metadata6), all, false},
		"metadata by its own address":              {with(t, apitest.Workspace("a", to(cidr("169.254.169.254/32")))), member("a"), is(metadata), all, false},
		"a rule of nothing is not for everybody":   {with(t, apitest.Workspace("a", to(cidr("169.254.169.254/32")))), member("a"), is(internet), all, false},
		"metadata by two rules":                    {with(t, apitest.Workspace("a", to(cidr("0.0.0.0/1"), cidr("128.0.0.0/1")), to(cidr("169.254.0.0/16")))), member("a"), is(metadata), all, false},
		"the administrator's addresses":            {newWorld(t, dual(), apitest.Workspace("a", to(cidr("0.0.0.0/0")))), member("a"), is(place{"", "", nil, "198.51.100.9"}), all, false},
		"one of the administrator's addresses":     {newWorld(t, dual(), apitest.Workspace("a", to(cidr("198.51.100.9/32")))), member("a"), is(place{"", "", nil, "198.51.100.9"}), all, false},
		"the internet, when it is allowed":         {with(t, apitest.Workspace("a", to(cidr("0.0.0.0/0")))), member("a"), is(internet), all, true},
		"but not on IPv6":                          {with(t, apitest.Workspace("a", to(cidr("0.0.0.0/0")))), member("a"), is(internet6), all, false},
		"not isolated":                             {with(t, apitest.Workspace("a", open)), member("a"), is(metadata), all, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, at := range c.at {
				assert.Equal(t, c.want, c.world.reach(c.from(c.world), c.to(c.world), at), at)
			}
		})
	}
}

func with(t *testing.T, all ...*v1alpha1.Workspace) *world {
	t.Helper()
	return newWorld(t, desired.DefaultSettings(), all...)
}

func noDNS(n *v1alpha1.WorkspaceNetwork) { n.AllowDNS = new(false) }

func is(p place) func(*world) place         { return func(*world) place { return p } }
func member(name string) func(*world) place { return func(w *world) place { return w.member(name) } }
func stranger(name string) func(*world) place {
	return func(w *world) place { return w.members[name][1] }
}
func upload(name string) func(*world) place {
	return func(w *world) place { return w.uploadServer(name) }
}
