package webhook

import (
	"fmt"
	"net"
	"regexp"

	virtv1 "kubevirt.io/api/core/v1"
)

// macBytes is the length of an Ethernet address.
const macBytes = 6

func checkNetworks(c *causes, spec *virtv1.VirtualMachineInstanceSpec) {
	interfaces, seen, pods := map[string]bool{}, map[string]bool{}, 0
	for _, i := range spec.Domain.Devices.Interfaces {
		interfaces[i.Name] = true
	}
	for i, network := range spec.Networks {
		field := fmt.Sprintf("%s.networks[%d]", templateSpec, i)
		if seen[network.Name] {
			c.add(field+".name", "Network with name %q already exists, every network must have a unique name", network.Name)
		}
		seen[network.Name] = true
		if !interfaces[network.Name] {
			c.add(field+".name", "%s.name '%s' not found.", field, network.Name)
		}
		if network.Multus != nil && network.Multus.NetworkName == "" {
			c.add(field, "CNI delegating plugin must have a networkName")
		}
		if network.Pod != nil {
			pods++
		}
	}
	if pods > 1 {
		field := templateSpec + ".interfaces"
		c.add(field, "more than one interface is connected to a pod network in %s", field)
	}
}

func checkInterfaces(c *causes, spec *virtv1.VirtualMachineInstanceSpec) {
	networks, seen := map[string]virtv1.Network{}, map[string]bool{}
	for _, network := range spec.Networks {
		networks[network.Name] = network
	}
	name := regexp.MustCompile(`^[A-Za-z0-9-_]+$`)
	for index, i := range spec.Domain.Devices.Interfaces {
		field := fmt.Sprintf("%s.domain.devices.interfaces[%d]", templateSpec, index)
		network, has := networks[i.Name]
		if !has {
			c.add(field+".name", "%s.name '%s' not found.", field, i.Name)
		}
		if seen[i.Name] {
			c.add(field+".name", "Only one interface can be connected to one specific network")
		}
		seen[i.Name] = true
		if !name.MatchString(i.Name) {
			c.add(field+".name", "Network interface name can only contain alphabetical characters, numbers, dashes (-) or underscores (_)")
		}
		if i.Masquerade != nil && has && network.Pod == nil {
			c.add(field+".name", "Masquerade interface only implemented with pod network")
		}
		checkMAC(c, field, i.MacAddress)
	}
}

func checkMAC(c *causes, field, address string) {
	if address == "" {
		return
	}
	mac, err := net.ParseMAC(address)
	switch {
	case err != nil && plain.MatchString(address): // which is accepted, too
	case err != nil:
		c.add(field+".macAddress", "interface %s.name has malformed MAC address (%s).", field, address)
	case len(mac) > macBytes:
		c.add(field+".macAddress", "interface %s.name has too long MAC address (%s).", field, address)
	}
}

// plain is an address without colons.
var plain = regexp.MustCompile(`^[0-9A-Fa-f]{12}$`)
