package desired_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/desired"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// Specs are drawn from what admission takes, and from what it does not: nothing may be opened by what it overlooks.
var (
	blocks = []string{
		"0.0.0.0/0", "::/0", "0.0.0.0/1", "128.0.0.0/1", "169.254.0.0/16", "169.254.169.254/32", "169.254.169.0/24", "169.254.169.254/31",
		"fd00::/8", "fd00:ec2::254/128", "fd00:ec2::/64", "10.0.0.0/8", "10.1.0.0/16", "10.1.1.0/24", "10.2.0.0/16", "172.18.0.0/16",
		"93.184.216.34/32", "198.51.100.0/25", "198.51.0.0/16", "100.100.100.200/30",
	}
	rubbish = []string{
		"", "garbage", "::ffff:169.254.169.254/128", "::ffff:0:0/96", "169.254.169.254", "169.254.1.1/0", "fe80::1%eth0/64", "1.2.3.4/33",
	}
	namespaces = []string{"ws-a", "ws-b", "ws-c", "team", "kube-system", "shop", "monitoring", "nobody"}
	workspaces = []string{"a", "b", "c", "nobody"}
	numbers    = []int32{53, 80, 443, 8080, 8443}
	protocols  = []corev1.Protocol{"", "TCP", "UDP", "SCTP"}
)

func aPeer(t *rapid.T) v1alpha1.WorkspacePeer {
	var peer v1alpha1.WorkspacePeer
	kind := rapid.IntRange(0, 9).Draw(t, "kind of peer")
	if kind < 8 {
		peer.CIDR = rapid.SampledFrom(blocks).Draw(t, "cidr")
		peer.Except = rapid.SliceOfN(rapid.SampledFrom(blocks), 0, 1).Draw(t, "except")
	}
	if kind == 0 {
		peer.CIDR = rapid.SampledFrom(rubbish).Draw(t, "rubbish")
	}
	if kind == 1 {
		peer.Except = append(peer.Except, rapid.SampledFrom(rubbish).Draw(t, "rubbish"))
	}
	if kind > 6 {
		peer.Namespace = rapid.SampledFrom(namespaces).Draw(t, "namespace")
	}
	return peer
}

func aPort(t *rapid.T) v1alpha1.WorkspacePolicyPort {
	p := v1alpha1.WorkspacePolicyPort{Port: rapid.SampledFrom(numbers).Draw(t, "port"), Protocol: rapid.SampledFrom(protocols).Draw(t, "protocol")}
	if end := rapid.SampledFrom(numbers).Draw(t, "end"); end > p.Port {
		p.EndPort = &end
	}
	return p
}

func aNetwork(t *rapid.T) *v1alpha1.WorkspaceNetwork {
	peers, ports := rapid.SliceOfN(rapid.Custom(aPeer), 0, 3), rapid.SliceOfN(rapid.Custom(aPort), 0, 2)
	n := &v1alpha1.WorkspaceNetwork{AllowDNS: new(rapid.Bool().Draw(t, "dns"))}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(workspaces), 0, 2, rapid.ID).Draw(t, "friends") {
		n.AllowFrom = append(n.AllowFrom, v1alpha1.WorkspaceFriend{Workspace: name})
	}
	for range rapid.IntRange(0, 2).Draw(t, "ingress") {
		n.Ingress = append(n.Ingress, v1alpha1.WorkspaceIngressRule{From: peers.Draw(t, "from"), Ports: ports.Draw(t, "ports")})
	}
	for range rapid.IntRange(0, 2).Draw(t, "egress") {
		n.Egress = append(n.Egress, v1alpha1.WorkspaceEgressRule{To: peers.Draw(t, "to"), Ports: ports.Draw(t, "ports")})
	}
	return n
}

func aWorkspace(t *rapid.T, name string) *v1alpha1.Workspace {
	w := apitest.Workspace(name)
	w.Spec.Network = rapid.OneOf(rapid.Custom(aNetwork), rapid.Just[*v1alpha1.WorkspaceNetwork](nil)).Draw(t, "network of "+name)
	if rapid.IntRange(0, 2).Draw(t, "target") == 0 {
		w.Spec.TargetNamespace = "team"
	}
	return w
}

func aWorld(t *rapid.T) *world {
	settings := desired.DefaultSettings()
	if rapid.Bool().Draw(t, "dual") {
		settings = dual()
	}
	return newWorld(t, settings, aWorkspace(t, "a"), aWorkspace(t, "b"), aWorkspace(t, "c"))
}

func TestMetadataIsNeverReachable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := aWorld(t)
		for _, unreachable := range w.settings.Unreachable() {
			first := unreachable.Addr()
			for _, address := range []netip.Addr{first, first.Next(), first.Prev()} {
				if !unreachable.Contains(address) {
					continue
				}
				for _, members := range w.members {
					for _, member := range members {
						for _, at := range doors {
							if w.reach(member, place{"metadata", "", nil, address.String()}, at) {
								t.Fatalf("%s reaches %s at %s", member.name, address, at)
							}
						}
					}
				}
			}
		}
	})
}

// Whoever reaches whom, it is what the specs say, and nothing else: an evaluator that knows nothing of NetworkPolicies agrees
// with one that knows nothing of Workspaces.
func TestPoliciesMeanWhatTheSpecSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := aWorld(t)
		all := slices.Clone(everywhere)
		for _, name := range []string{"a", "b", "c"} {
			all = append(all, w.members[name]...)
		}
		for _, from := range all {
			for _, to := range all {
				for _, at := range doors {
					if got, want := w.reach(from, to, at), w.leaves(from, to, at) && w.enters(from, to, at); got != want {
						t.Fatalf("%s -> %s at %s: the policies say %t, the specs %t", from.name, to.name, at, got, want)
					}
				}
			}
		}
	})
}

// confined is the workspace whose policy a pod is under; nil for none.
func (w *world) confined(p place) *v1alpha1.Workspace {
	for _, ws := range w.all {
		if p.namespace == ws.ChildNamespace() && (ws.OwnsNamespace() || p.labels[v1alpha1.LabelWorkspaceUID] == string(ws.UID)) {
			return ws
		}
	}
	return nil
}

// leaves says whether the sender's own workspace lets it out there.
func (w *world) leaves(from, to place, at door) bool {
	ws := w.confined(from)
	switch {
	case ws == nil || w.confined(to) == ws:
		return true
	case in(to.ip, w.settings.DNS.CIDRs...) || to.namespace == "kube-system" && to.labels["k8s-app"] == "kube-dns":
		if at.port == 53 && at.protocol != "SCTP" && (ws.Spec.Network == nil || *ws.Spec.Network.AllowDNS) {
			return true
		}
	}
	if ws.Spec.Network == nil || in(to.ip, w.settings.Unreachable()...) {
		return false
	}
	return slices.ContainsFunc(ws.Spec.Network.Egress, func(r v1alpha1.WorkspaceEgressRule) bool {
		return anyPeer(r.To, to) && anyPort(r.Ports, at)
	})
}

// enters says whether the receiver's own workspace lets the sender in.
func (w *world) enters(from, to place, at door) bool {
	ws, friend := w.confined(to), w.confined(from)
	switch {
	case ws == nil || friend == ws:
		return true
	case ws.Spec.Network == nil:
		return false
	case friend != nil && from.labels[v1alpha1.LabelWorkspaceUID] == string(friend.UID) &&
		slices.Contains(ws.Spec.Network.AllowFrom, v1alpha1.WorkspaceFriend{Workspace: friend.Name}):
		return true
	}
	return slices.ContainsFunc(ws.Spec.Network.Ingress, func(r v1alpha1.WorkspaceIngressRule) bool {
		return anyPeer(r.From, from) && anyPort(r.Ports, at)
	})
}

// anyPeer says whether the place is one of them. Whoever cannot be understood is nobody.
func anyPeer(peers []v1alpha1.WorkspacePeer, p place) bool {
	return slices.ContainsFunc(peers, func(one v1alpha1.WorkspacePeer) bool {
		if one.Namespace != "" {
			return one.Namespace == p.namespace
		}
		block, err := netip.ParsePrefix(one.CIDR)
		if err != nil || block.Addr().Is4In6() || !in(p.ip, block) {
			return false
		}
		return !slices.ContainsFunc(one.Except, func(text string) bool {
			hole, err := netip.ParsePrefix(text)
			return err != nil || hole.Addr().Is4In6() || in(p.ip, hole)
		})
	})
}

func anyPort(ports []v1alpha1.WorkspacePolicyPort, at door) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p v1alpha1.WorkspacePolicyPort) bool {
		end := p.Port
		if p.EndPort != nil {
			end = *p.EndPort
		}
		protocol := p.Protocol
		if protocol == "" {
			protocol = corev1.ProtocolTCP
		}
		return protocol == at.protocol && int(p.Port) <= at.port && at.port <= int(end)
	})
}
