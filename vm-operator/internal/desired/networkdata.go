package desired

import (
	"slices"
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
)

// baseMetric orders the default routes that DHCP gives: the pod network's, then the interfaces in their order. It is above
// what a guest gives to a route that was written down, so that a gateway wins, whatever renders the configuration.
const baseMetric = 1000

// networkData is cloud-init's network configuration, version 2. With one there is no other: cloud-init asks DHCP by
// itself only where there is none, so all interfaces are in it.
type networkData struct {
	Version   int                 `yaml:"version"`
	Ethernets map[string]ethernet `yaml:"ethernets"`
}

// ethernet is an interface, known by its MAC address: names depend on the guest's kernel and on the order of devices.
type ethernet struct {
	Match struct {
		MACAddress text `yaml:"macaddress"`
	} `yaml:"match"`
	// SetName gives a name, because ifcfg files and ifupdown know interfaces by name only.
	SetName   text       `yaml:"set-name"`
	DHCP4     bool       `yaml:"dhcp4"`
	Overrides *overrides `yaml:"dhcp4-overrides,omitempty"`
	// Optional keeps the guest from waiting at its start for a DHCP server that may not be there.
	Optional    bool         `yaml:"optional,omitempty"`
	Addresses   []text       `yaml:"addresses,omitempty"`
	Nameservers *nameservers `yaml:"nameservers,omitempty"`
	Routes      []route      `yaml:"routes,omitempty"`
}

type overrides struct {
	RouteMetric int   `yaml:"route-metric"`
	UseRoutes   *bool `yaml:"use-routes,omitempty"`
	UseDNS      *bool `yaml:"use-dns,omitempty"`
}

type nameservers struct {
	Addresses []text `yaml:"addresses"`
}

type route struct {
	To  text `yaml:"to"`
	Via text `yaml:"via"`
}

func networkDataOf(vm *v1alpha1.VirtualMachine) networkData {
	data := networkData{Version: 2, Ethernets: map[string]ethernet{}}
	for i, n := range nics(vm) {
		entry := ethernet{SetName: text(n.device)}
		entry.Match.MACAddress = text(n.mac)
		if n.spec == nil {
			entry.DHCP4, entry.Overrides = true, podOverrides(vm)
		} else {
			configure(&entry, n.spec, baseMetric+i)
		}
		data.Ethernets[n.device] = entry
	}
	return data
}

// podOverrides leave the pod network's default route alone unless an interface has a gateway. Then the guest reaches the
// pod network's own subnet through it, and asks the cluster's name servers only where it is given no others.
func podOverrides(vm *v1alpha1.VirtualMachine) *overrides {
	over := &overrides{RouteMetric: baseMetric}
	if slices.ContainsFunc(vm.Spec.Interfaces, func(i v1alpha1.VirtualMachineInterface) bool { return isIPv4(i.Gateway) }) {
		over.UseRoutes = new(false)
		if slices.ContainsFunc(vm.Spec.Interfaces, func(i v1alpha1.VirtualMachineInterface) bool { return len(i.Nameservers) > 0 }) {
			over.UseDNS = new(false)
		}
	}
	return over
}

func configure(entry *ethernet, spec *v1alpha1.VirtualMachineInterface, metric int) {
	if spec.IPAddress != "" {
		entry.Addresses = []text{text(spec.IPAddress)}
	} else {
		entry.DHCP4, entry.Optional, entry.Overrides = true, true, &overrides{RouteMetric: metric}
	}
	if len(spec.Nameservers) > 0 {
		entry.Nameservers = &nameservers{Addresses: texts(spec.Nameservers)}
	}
	// Not "default": older versions of cloud-init and netplan do not know the word.
	switch {
	case isIPv4(spec.Gateway):
		entry.Routes = []route{{To: "0.0.0.0/0", Via: text(spec.Gateway)}}
	case spec.Gateway != "":
		entry.Routes = []route{{To: "::/0", Via: text(spec.Gateway)}}
	}
}

func isIPv4(address string) bool { return address != "" && !strings.Contains(address, ":") }
