package desired

import "net/netip"

// Settings are what the administrator of the cluster decides for all workspaces.
type Settings struct {
	// ImageNamespace is where an image is that is named without a namespace.
	ImageNamespace string
	// PodSecurity is the level of Pod Security that a workspace's own namespace enforces: privileged, baseline or restricted.
	// A virtual machine needs baseline: see the comment at Namespace.
	PodSecurity string
	// DNS is where the members find it.
	DNS DNS
	// Metadata are addresses that no member may ever reach, besides those that are always in it: see Unreachable.
	Metadata []netip.Prefix
}

// DNS is the DNS of the cluster: pods, and addresses that are none (NodeLocal DNS).
type DNS struct {
	// Namespace and Labels are those of the pods. Both or none must be there: without labels every pod would be the DNS.
	Namespace string
	Labels    map[string]string
	// CIDRs are further addresses.
	CIDRs []netip.Prefix
}

// DefaultSettings are those of a cluster as kubeadm makes it, with NodeLocal DNS or without.
func DefaultSettings() Settings {
	return Settings{
		ImageNamespace: "vm-images",
		PodSecurity:    "baseline",
		DNS: DNS{
			Namespace: "kube-system",
			Labels:    map[string]string{"k8s-app": "kube-dns"},
			CIDRs:     []netip.Prefix{netip.MustParsePrefix("169.254.20.10/32")},
		},
	}
}

// Unreachable are the addresses at which clouds serve credentials to whoever asks (AWS, Azure, Google, OpenStack, and most
// others; AWS on IPv6), and the administrator's.
func (s Settings) Unreachable() []netip.Prefix {
	return append([]netip.Prefix{
		netip.MustParsePrefix("169.254.169.254/32"),
		netip.MustParsePrefix("fd00:ec2::254/128"),
	}, s.Metadata...)
}
