package desired

import (
	"net/netip"
	"slices"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
)

// ingress are the rules of the spec.
//
// A rule of nobody is left out, here and below: NetworkPolicy takes a rule without peers for everybody.
func ingress(rules []v1alpha1.WorkspaceIngressRule) []*networkingv1ac.NetworkPolicyIngressRuleApplyConfiguration {
	var all []*networkingv1ac.NetworkPolicyIngressRuleApplyConfiguration
	for _, rule := range rules {
		if from := peers(rule.From, nil); len(from) > 0 {
			all = append(all, networkingv1ac.NetworkPolicyIngressRule().WithFrom(from...).WithPorts(ports(rule.Ports)...))
		}
	}
	return all
}

// egress are the rules of the spec, without the addresses that nobody may reach.
func egress(rules []v1alpha1.WorkspaceEgressRule, unreachable []netip.Prefix) []*networkingv1ac.NetworkPolicyEgressRuleApplyConfiguration {
	var all []*networkingv1ac.NetworkPolicyEgressRuleApplyConfiguration
	for _, rule := range rules {
		if to := peers(rule.To, unreachable); len(to) > 0 {
			all = append(all, networkingv1ac.NetworkPolicyEgressRule().WithTo(to...).WithPorts(ports(rule.Ports)...))
		}
	}
	return all
}

func peers(all []v1alpha1.WorkspacePeer, unreachable []netip.Prefix) []*networkingv1ac.NetworkPolicyPeerApplyConfiguration {
	var out []*networkingv1ac.NetworkPolicyPeerApplyConfiguration
	for _, one := range all {
		if one.Namespace != "" {
			out = append(out, inNamespace(one.Namespace))
		} else if block := without(one, unreachable); block != nil {
			out = append(out, peer().WithIPBlock(block))
		}
	}
	return out
}

// without is a block of addresses less those that nobody may reach; nil when none are left, or when it is not a block: what
// validation does not admit opens nothing.
func without(one v1alpha1.WorkspacePeer, unreachable []netip.Prefix) *networkingv1ac.IPBlockApplyConfiguration {
	block, ok := prefix(one.CIDR)
	if !ok {
		return nil
	}
	var except []netip.Prefix
	for _, text := range one.Except {
		hole, ok := prefix(text)
		if !ok {
			return nil
		}
		except = append(except, hole)
	}
	for _, hole := range unreachable {
		hole = hole.Masked()
		switch {
		case contains(hole, block):
			return nil
		case contains(block, hole) && !slices.ContainsFunc(except, func(other netip.Prefix) bool { return contains(other, hole) }):
			except = append(except, hole)
		}
	}
	out := networkingv1ac.IPBlock().WithCIDR(block.String())
	for _, hole := range except {
		out.WithExcept(hole.String())
	}
	return out
}

// prefix reads a CIDR as the API server does: no zones, and no IPv4 in IPv6, which would be two families at once.
func prefix(text string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err == nil && !p.Addr().Is4In6()
}

// contains says whether all of b is in a.
func contains(a, b netip.Prefix) bool {
	return a.Bits() <= b.Bits() && a.Contains(b.Addr())
}

func ports(all []v1alpha1.WorkspacePolicyPort) []*networkingv1ac.NetworkPolicyPortApplyConfiguration {
	var out []*networkingv1ac.NetworkPolicyPortApplyConfiguration
	for _, one := range all {
		p := port(one.Port, protocolOf(one.Protocol))
		if one.EndPort != nil {
			p.WithEndPort(*one.EndPort)
		}
		out = append(out, p)
	}
	return out
}
