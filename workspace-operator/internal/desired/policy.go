package desired

import (
	"maps"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
)

const portDNS = 53

// NetworkPolicies isolate the workspace; there are none with isolate: false.
//
// In a namespace of its own the policy selects every pod, whatever its labels: also those of CDI, and what somebody else puts
// there. In a namespace that others use, too, it selects what has the workspace's UID in a label. There, whoever may create pods
// can give one that label, and make it a member.
//
// Policies only ever add up. What is not in these is denied, both ways:
//
//   - members reach each other;
//   - members reach the DNS on port 53, if allowDNS;
//   - members of the workspaces in allowFrom reach the members, where their own policy lets them out;
//   - the rules of ingress and egress, without the addresses of Unreachable.
func NetworkPolicies(w *v1alpha1.Workspace, friends Friends, s Settings) []*unstructured.Unstructured {
	if !w.Isolates() {
		return nil
	}
	all := []*unstructured.Unstructured{isolation(w, friends, s)}
	if disks := disksPolicy(w, s); disks != nil {
		all = append(all, disks)
	}
	return all
}

func isolation(w *v1alpha1.Workspace, friends Friends, s Settings) *unstructured.Unstructured {
	spec := networkingv1ac.NetworkPolicySpec().
		WithPodSelector(members(w)).
		WithPolicyTypes(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress).
		WithIngress(networkingv1ac.NetworkPolicyIngressRule().WithFrom(peer().WithPodSelector(members(w)))).
		WithEgress(networkingv1ac.NetworkPolicyEgressRule().WithTo(peer().WithPodSelector(members(w))))
	if from := friendPeers(w, friends); len(from) > 0 {
		spec.WithIngress(networkingv1ac.NetworkPolicyIngressRule().WithFrom(from...))
	}
	if to := s.DNS.peers(); w.AllowsDNS() && len(to) > 0 {
		spec.WithEgress(networkingv1ac.NetworkPolicyEgressRule().WithTo(to...).WithPorts(
			port(portDNS, corev1.ProtocolUDP), port(portDNS, corev1.ProtocolTCP)))
	}
	if network := w.Spec.Network; network != nil {
		spec.WithIngress(ingress(network.Ingress)...).WithEgress(egress(network.Egress, s.Unreachable())...)
	}
	return sealed(networkPolicy(w, v1alpha1.WorkspacePolicyName(w)).WithSpec(spec))
}

func networkPolicy(w *v1alpha1.Workspace, name string) *networkingv1ac.NetworkPolicyApplyConfiguration {
	return networkingv1ac.NetworkPolicy(name, w.ChildNamespace()).WithLabels(labels(w)).WithOwnerReferences(owner(w))
}

// members selects the members of the workspace in its namespace.
func members(w *v1alpha1.Workspace) *metav1ac.LabelSelectorApplyConfiguration {
	if w.OwnsNamespace() {
		return metav1ac.LabelSelector()
	}
	return labelled(w)
}

// labelled selects what has the workspace's UID in a label.
func labelled(w *v1alpha1.Workspace) *metav1ac.LabelSelectorApplyConfiguration {
	return metav1ac.LabelSelector().WithMatchLabels(map[string]string{v1alpha1.LabelWorkspaceUID: string(w.UID)})
}

// friendPeers are the members of the workspaces that may reach this one: in their namespaces, with their UIDs. A workspace that
// does not exist has no members, and nobody can take its place by making a namespace or a label before it does.
func friendPeers(w *v1alpha1.Workspace, friends Friends) []*networkingv1ac.NetworkPolicyPeerApplyConfiguration {
	if w.Spec.Network == nil {
		return nil
	}
	var all []*networkingv1ac.NetworkPolicyPeerApplyConfiguration
	for _, named := range w.Spec.Network.AllowFrom {
		if friend := friends[named.Workspace]; friend != nil && friend.UID != "" && friend.UID != w.UID {
			all = append(all, inNamespace(friend.ChildNamespace()).WithPodSelector(labelled(friend)))
		}
	}
	return all
}

// peers are the DNS. What has no labels, or no namespace, is left out: it would open port 53 of every pod.
func (d DNS) peers() []*networkingv1ac.NetworkPolicyPeerApplyConfiguration {
	var all []*networkingv1ac.NetworkPolicyPeerApplyConfiguration
	if d.Namespace != "" && len(d.Labels) > 0 {
		all = append(all, inNamespace(d.Namespace).WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(maps.Clone(d.Labels))))
	}
	for _, cidr := range d.CIDRs {
		all = append(all, peer().WithIPBlock(networkingv1ac.IPBlock().WithCIDR(cidr.Masked().String())))
	}
	return all
}

func peer() *networkingv1ac.NetworkPolicyPeerApplyConfiguration {
	return networkingv1ac.NetworkPolicyPeer()
}

// inNamespace are all pods of the namespaces of these names.
func inNamespace(names ...string) *networkingv1ac.NetworkPolicyPeerApplyConfiguration {
	selector := metav1ac.LabelSelector()
	if len(names) == 1 {
		selector.WithMatchLabels(map[string]string{labelNamespace: names[0]})
	} else {
		selector.WithMatchExpressions(metav1ac.LabelSelectorRequirement().
			WithKey(labelNamespace).WithOperator("In").WithValues(names...))
	}
	return peer().WithNamespaceSelector(selector)
}

func port(number int32, protocol corev1.Protocol) *networkingv1ac.NetworkPolicyPortApplyConfiguration {
	return networkingv1ac.NetworkPolicyPort().WithPort(intstr.FromInt32(number)).WithProtocol(protocol)
}
