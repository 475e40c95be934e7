package desired_test

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/desired"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"
)

func TestMACAddresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := guest()
		vm.UID = types.UID(rapid.StringMatching(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).Draw(t, "uid"))
		for i := range 16 {
			vm.Spec.Interfaces = append(vm.Spec.Interfaces, v1alpha1.VirtualMachineInterface{Network: fmt.Sprintf("net-%d", i)})
		}
		all := desired.Interfaces(vm)
		assert.Len(t, all, 17)
		seen := sets.New[string]()
		for _, i := range all {
			mac, err := net.ParseMAC(i.MACAddress)
			require.NoError(t, err)
			assert.Len(t, mac, 6)
			assert.Zero(t, mac[0]&1, "unicast")
			assert.NotZero(t, mac[0]&2, "locally administered")
			assert.NotEqual(t, byte(0xfe), mac[0], "the host's side")
			assert.NotEqual(t, "02:00:00:00:00:00", i.MACAddress, "KubeVirt's own")
			assert.Equal(t, strings.ToLower(i.MACAddress), i.MACAddress)
			seen.Insert(i.MACAddress)
		}
		assert.Len(t, seen, 17, "all differ")

		// What else is in the list, and where, changes no address.
		drop := rapid.IntRange(0, 15).Draw(t, "drop")
		vm.Spec.Interfaces = append(vm.Spec.Interfaces[:drop:drop], vm.Spec.Interfaces[drop+1:]...)
		assert.Equal(t, append(all[:drop+1:drop+1], all[drop+2:]...), desired.Interfaces(vm))
		vm.Name, vm.Namespace, vm.Generation = "other", "other", 7
		assert.Equal(t, all[0], desired.Interfaces(vm)[0], "it follows from the UID alone")
	})
}

func TestInterfaces(t *testing.T) {
	vm := guest(everything)
	all := desired.Interfaces(vm)
	assert.Equal(t, []string{"pod", "infra/edge.net", "pod", "six"}, each(all, func(i v1alpha1.VirtualMachineInterfaceStatus) string { return i.Network }))
	assert.Equal(t, []string{"", "10.10.0.161", "", "fd00::5"}, each(all, func(i v1alpha1.VirtualMachineInterfaceStatus) string { return i.IPAddress }))
	assert.Equal(t, "52:54:00:aa:bb:cc", all[2].MACAddress, "the one that is given, in small letters")
	withoutPodNetwork(&vm.Spec)
	assert.Equal(t, all[1:], desired.Interfaces(vm))
	assert.Empty(t, desired.Interfaces(guest(withoutPodNetwork)))
}

func each[T any](all []T, get func(T) string) []string {
	out := make([]string, 0, len(all))
	for _, v := range all {
		out = append(out, get(v))
	}
	return out
}

func TestAGivenMACAddressIsNotTakenTwice(t *testing.T) {
	derived := desired.Interfaces(guest())[0].MACAddress
	all := desired.Interfaces(guest(on(v1alpha1.VirtualMachineInterface{Network: "lan", MACAddress: strings.ToUpper(derived)})))
	assert.Equal(t, derived, all[1].MACAddress)
	assert.NotEqual(t, derived, all[0].MACAddress)
}

func TestInterfacesAreNamedAsKubeVirtWantsIt(t *testing.T) {
	networks := []string{"pod", "lan", "a.b", "a/b", "a-b", "a/b.c", "a.b.c", "a-b.c"}
	var specs []v1alpha1.VirtualMachineInterface
	for _, network := range networks {
		specs = append(specs, v1alpha1.VirtualMachineInterface{Network: network})
	}
	machine, err := desired.Machine(guest(on(specs...)), "")
	require.NoError(t, err)
	names := sets.New[string]()
	for _, i := range nested(t, machine, "spec", "template", "spec", "domain", "devices", "interfaces") {
		name := i["name"].(string)
		assert.Regexp(t, `^[A-Za-z0-9_-]+$`, name)
		names.Insert(name)
	}
	assert.Len(t, names, 9, "no two are one")
	for i, n := range nested(t, machine, "spec", "template", "spec", "networks")[1:] {
		assert.True(t, names.Has(n["name"].(string)))
		assert.Equal(t, map[string]any{"networkName": networks[i]}, n["multus"])
	}
}

func TestDevicesKeepTheirNames(t *testing.T) {
	devices := func(networks ...string) map[string]string {
		var specs []v1alpha1.VirtualMachineInterface
		for _, network := range networks {
			specs = append(specs, v1alpha1.VirtualMachineInterface{Network: network})
		}
		secret, err := desired.CloudInit(guest(on(specs...)), nil)
		require.NoError(t, err)
		byMAC := map[string]string{}
		for name, ethernet := range value(t, string(secret.Data["networkdata"])).(map[string]any)["ethernets"].(map[string]any) {
			entry := ethernet.(map[string]any)
			assert.Equal(t, name, entry["set-name"])
			assert.Regexp(t, `^[a-z0-9-]{1,15}$`, name, "as the kernel and every tool takes it")
			byMAC[entry["match"].(map[string]any)["macaddress"].(string)] = name
		}
		return byMAC
	}
	all := devices("lan", "control-net", "infra/lan", "a.b", "a-rather-long-name", "another-rather-long-name")
	names := sets.New[string]()
	for _, name := range all {
		names.Insert(name)
	}
	assert.Len(t, names, 7, "each its own")
	assert.True(t, names.HasAll("pod0", "net-lan", "net-control-net"))
	for mac, name := range devices("new", "another-rather-long-name", "control-net") {
		if name != "net-new" {
			assert.Equal(t, all[mac], name, "cloud-init gives names at every start: they must not wander")
		}
	}
}

func nested(t *testing.T, object *unstructured.Unstructured, fields ...string) []map[string]any {
	t.Helper()
	list, found, err := unstructured.NestedSlice(object.Object, fields...)
	require.NoError(t, err)
	require.True(t, found)
	raw, err := json.Marshal(list)
	require.NoError(t, err)
	var all []map[string]any
	require.NoError(t, json.Unmarshal(raw, &all))
	return all
}
