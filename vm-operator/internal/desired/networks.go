package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
)

const (
	// podNetwork is the pod network in KubeVirt's lists and in our status.
	podNetwork = "pod"
	podDevice  = "pod0"
	// devicePrefix is none that the kernel (eth0) or udev (enp1s0) begins a name with: renaming never meets a name that is
	// taken.
	devicePrefix = "net-"
	// reservedMAC is the one that KubeVirt gives to its own bridges in the pod.
	reservedMAC = "02:00:00:00:00:00"
)

// plainNetwork is one that makes a name of a device: at most 15 characters, with the prefix.
var plainNetwork = regexp.MustCompile(`^[a-z0-9-]{1,11}$`)

// nic is a network interface of the guest. Names and address follow from the network alone: another interface before it in
// the list changes nothing.
type nic struct {
	// name of the interface and of its network in KubeVirt.
	name string
	// device in the guest.
	device string
	mac    string
	// spec is nil for the pod network.
	spec *v1alpha1.VirtualMachineInterface
}

// Interfaces are those of the guest as the spec has them, the pod network's first.
func Interfaces(vm *v1alpha1.VirtualMachine) []v1alpha1.VirtualMachineInterfaceStatus {
	var all []v1alpha1.VirtualMachineInterfaceStatus
	for _, n := range nics(vm) {
		status := v1alpha1.VirtualMachineInterfaceStatus{Network: podNetwork, MACAddress: n.mac}
		if n.spec != nil {
			status.Network = n.spec.Network
			status.IPAddress, _, _ = strings.Cut(n.spec.IPAddress, "/")
		}
		all = append(all, status)
	}
	return all
}

func nics(vm *v1alpha1.VirtualMachine) []nic {
	taken := map[string]bool{reservedMAC: true}
	for _, spec := range vm.Spec.Interfaces {
		taken[strings.ToLower(spec.MACAddress)] = true
	}
	var all []nic
	if vm.HasPodNetwork() {
		all = append(all, nic{name: podNetwork, device: podDevice, mac: freeMAC(vm, "", taken)})
	}
	for i := range vm.Spec.Interfaces {
		spec := &vm.Spec.Interfaces[i]
		n := nic{name: interfaceName(spec.Network), device: deviceName(spec.Network), mac: strings.ToLower(spec.MACAddress), spec: spec}
		if n.mac == "" {
			n.mac = freeMAC(vm, spec.Network, taken)
		}
		all = append(all, n)
	}
	return all
}

// interfaceName writes a network as KubeVirt wants it: letters, digits, - and _ only. Neither namespaces nor names have an
// underscore, so no two networks become one, and none becomes the pod network.
func interfaceName(network string) string {
	if network == podNetwork {
		return network + "_"
	}
	return strings.NewReplacer("/", "__", ".", "_").Replace(network)
}

// deviceName is the network's own name where the kernel takes it, and a hash otherwise. It must not be a number: cloud-init
// gives names anew at every start, and would give those of other interfaces when the list changes.
func deviceName(network string) string {
	if plainNetwork.MatchString(network) {
		return devicePrefix + network
	}
	sum := sha256.Sum256([]byte(network))
	return devicePrefix + hex.EncodeToString(sum[:4])
}

// freeMAC is the address of the virtual machine on that network: unicast and locally administered, and never one that
// begins with fe, which libvirt keeps for the host's side. KubeVirt would give a new one at each start, and the guest would
// not know its interface again.
func freeMAC(vm *v1alpha1.VirtualMachine, network string, taken map[string]bool) string {
	for n := 0; ; n++ {
		sum := derived(vm, "mac", network+"/"+strconv.Itoa(n))
		sum[0] = sum[0]&0x7c | 0x02
		mac := fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", sum[0], sum[1], sum[2], sum[3], sum[4], sum[5])
		if !taken[mac] {
			taken[mac] = true
			return mac
		}
	}
}
