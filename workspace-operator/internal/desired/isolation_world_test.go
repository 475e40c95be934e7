package desired_test

import (
	"fmt"
	"net/netip"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/desired"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// What the policies mean is asked of Cyclonus' matcher, which the conformance tests of SIG Network come from.

// place is somebody who sends or is sent to: a pod, or an address outside of the cluster where namespace is empty.
type place struct {
	name      string
	namespace string
	labels    map[string]string
	ip        string
}

func (p place) peer() *matcher.TrafficPeer {
	peer := &matcher.TrafficPeer{IP: p.ip}
	if p.namespace != "" {
		peer.Internal = &matcher.InternalPeer{
			Namespace: p.namespace, NamespaceLabels: map[string]string{"kubernetes.io/metadata.name": p.namespace}, PodLabels: p.labels,
		}
	}
	return peer
}

// door is a port.
type door struct {
	protocol corev1.Protocol
	port     int
}

func (d door) String() string { return fmt.Sprintf("%s/%d", d.protocol, d.port) }

// world is a cluster with these workspaces, and with what every cluster has.
type world struct {
	policy   *matcher.Policy
	settings desired.Settings
	all      desired.Friends
	// members of each workspace: one as its children make it, and in a namespace of its own one without our label.
	members map[string][]place
}

func newWorld(t require.TestingT, settings desired.Settings, all ...*v1alpha1.Workspace) *world {
	w := &world{settings: settings, all: desired.Friends{}, members: map[string][]place{}}
	for _, ws := range all {
		w.all[ws.Name] = ws
	}
	var policies []*networkingv1.NetworkPolicy
	for i, ws := range all {
		for _, object := range desired.NetworkPolicies(ws, w.all, settings) {
			policy := &networkingv1.NetworkPolicy{}
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, policy, true))
			policies = append(policies, policy)
		}
		address := fmt.Sprintf("10.1.%d.", i)
		w.members[ws.Name] = []place{{ws.Name, ws.ChildNamespace(), map[string]string{
			v1alpha1.LabelWorkspaceUID: string(ws.UID), v1alpha1.LabelWorkspaceEntry: v1alpha1.WorkspaceEntry(ws, "db"), "kubevirt.io": "virt-launcher",
		}, address + "1"}}
		if ws.OwnsNamespace() {
			w.members[ws.Name] = append(w.members[ws.Name], place{ws.Name + "'s stranger", ws.ChildNamespace(), nil, address + "2"})
		}
	}
	w.policy = matcher.BuildNetworkPolicies(true, policies)
	return w
}

// reach says whether one reaches the other's door, by both their policies.
func (w *world) reach(from, to place, at door) bool {
	return w.policy.IsTrafficAllowed(&matcher.Traffic{
		Source: from.peer(), Destination: to.peer(), ResolvedPort: at.port, Protocol: at.protocol,
	}).IsAllowed()
}

func (w *world) member(name string) place { return w.members[name][0] }

// uploadServer is CDI's pod that fills a disk in the namespace of a workspace.
func (w *world) uploadServer(name string) place {
	return place{"upload server of " + name, w.all[name].ChildNamespace(), map[string]string{"cdi.kubevirt.io": "cdi-upload-server"}, "10.1.9.1"}
}

// What every cluster has.
var (
	dns         = place{"DNS", "kube-system", map[string]string{"k8s-app": "kube-dns"}, "10.2.0.10"}
	nodeDNS     = place{"DNS of the node", "", nil, "169.254.20.10"}
	notDNS      = place{"another pod of kube-system", "kube-system", map[string]string{"k8s-app": "metrics-server"}, "10.2.0.11"}
	fakeDNS     = place{"a pod labelled as DNS elsewhere", "shop", map[string]string{"k8s-app": "kube-dns"}, "10.2.0.12"}
	api         = place{"Kubernetes API", "", nil, "172.18.0.2"}
	internet    = place{"internet", "", nil, "93.184.216.34"}
	internet6   = place{"internet on IPv6", "", nil, "2606:2800:220:1::1"}
	metadata    = place{"metadata", "", nil, "169.254.169.254"}
	metadata6   = place{"metadata on IPv6", "", nil, "fd00:ec2::254"}
	shop        = place{"a pod of shop", "shop", map[string]string{"app": "shop"}, "10.2.0.13"}
	forger      = place{"a pod of shop that is labelled as a member of a", "shop", map[string]string{v1alpha1.LabelWorkspaceUID: "uid-a"}, "10.2.0.14"}
	monitoring  = place{"monitoring", "monitoring", map[string]string{"app": "prometheus"}, "10.2.0.15"}
	cloneSource = place{"CDI's source pod", "vm-images", map[string]string{"cdi.kubevirt.io": "cdi-clone-source"}, "10.2.0.16"}
	fakeSource  = place{"a pod labelled as CDI's elsewhere", "shop", map[string]string{"cdi.kubevirt.io": "cdi-clone-source"}, "10.2.0.17"}
	otherImages = place{"another pod of the images", "vm-images", map[string]string{"cdi.kubevirt.io": "importer"}, "10.2.0.18"}
)

// everywhere is all of it.
var everywhere = []place{
	dns, nodeDNS, notDNS, fakeDNS, api, internet, internet6, metadata, metadata6, shop, forger, monitoring, cloneSource, fakeSource, otherImages,
}

// doors are ports that rules are about, and one that none is about.
var doors = []door{{"TCP", 53}, {"UDP", 53}, {"TCP", 80}, {"TCP", 443}, {"UDP", 8080}, {"TCP", 8443}, {"SCTP", 80}}

// in says whether an address is in one of the blocks.
func in(ip string, prefixes ...netip.Prefix) bool {
	address := netip.MustParseAddr(ip)
	for _, p := range prefixes {
		if p.Contains(address) {
			return true
		}
	}
	return false
}
