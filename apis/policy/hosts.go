package policy

import (
	"net/netip"
	"regexp"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// inside says what kind of a host that is not a public one the location has; it is empty for a public one.
func inside(at location) string {
	if at.scheme == schemeArchive {
		return "a file in the pod that imports, and no public host"
	}
	if addr, err := netip.ParseAddr(at.host); err == nil {
		return insideAddr(addr)
	}
	return insideName(at.host)
}

// globalIPv6 is all that the Internet has of IPv6: what lies outside is local, embeds an IPv4 address, or is nobody's.
var globalIPv6 = netip.MustParsePrefix("2000::/3")

// special are the networks that are not public, as IANA's registries of special-purpose addresses list them, and one
// public address that a cloud answers from inside.
var special = []struct{ what, networks string }{
	{"an address of the pod that imports", "0.0.0.0/8 127.0.0.0/8"},
	{"a link-local address, where clouds keep their metadata services", "169.254.0.0/16"},
	{"the address of a cloud's metadata service", "168.63.129.16/32"},
	{"a private address", "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10"},
	{"an address for documentation or benchmarks", "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 198.18.0.0/15 2001:db8::/32 3fff::/20"},
	{"an address that stands for another one", "192.88.99.0/24 2002::/16 2001::/23"},
	{"a reserved address", "192.0.0.0/24 224.0.0.0/4 240.0.0.0/4 3ffe::/16"},
}

func insideAddr(addr netip.Addr) string {
	if addr.Is6() && !globalIPv6.Contains(addr) {
		return "an IPv6 address outside 2000::/3, so not a public one"
	}
	for _, s := range special {
		for network := range strings.FieldsSeq(s.networks) {
			if netip.MustParsePrefix(network).Contains(addr) {
				return s.what
			}
		}
	}
	return ""
}

// insideNames are domains that are not public though they, or their top-level domains, are registered.
var insideNames = []struct{ what, domains string }{
	{"the name of a cloud's metadata service", "metadata.goog metadata.tencentyun.com metadata.packet.net metadata.platformequinix.com"},
	{"a domain of addresses that whoever writes the name chooses", "nip.io sslip.io xip.io localtest.me lvh.me vcap.me lacolhost.com traefik.me backname.io rbndr.us 1u.ms"},
	{"a domain that the Internet does not resolve", "arpa onion"},
}

// podName is the record of a pod: its address with dashes.
var podName = regexp.MustCompile(`^[0-9a-f-]+\.[^.]+\.pod\.`)

func insideName(host string) string {
	switch {
	case !strings.Contains(host, "."):
		return "a name without a domain, which is looked up in the cluster"
	case strings.Contains(host+".", ".svc.") || podName.MatchString(host):
		return "a name inside the cluster"
	}
	for _, n := range insideNames {
		for domain := range strings.FieldsSeq(n.domains) {
			if host == domain || strings.HasSuffix(host, "."+domain) {
				return n.what
			}
		}
	}
	// A name such as kubernetes.default is a service of the cluster: its last label is a namespace.
	suffix, registered := publicsuffix.PublicSuffix(host)
	if !registered && !strings.Contains(suffix, ".") {
		return "not under a public top-level domain, so perhaps a name inside the cluster"
	}
	return ""
}
