package plan

import (
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/desired"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// interfaces are those of the spec, with the addresses that the cluster gave once the guest runs: on the way there each
// address would cost a write.
func interfaces(s Snapshot, ready bool) []v1alpha1.VirtualMachineInterfaceStatus {
	all := desired.Interfaces(s.VM)
	if !ready || s.Instance == nil {
		return all
	}
	seen := addresses(s.Instance)
	for i := range all {
		if all[i].IPAddress == "" {
			all[i].IPAddress = seen[strings.ToLower(all[i].MACAddress)]
		}
	}
	return all
}

// addresses of an instance by MAC.
func addresses(instance *unstructured.Unstructured) map[string]string {
	found := map[string]string{}
	list, _, _ := unstructured.NestedSlice(instance.Object, "status", "interfaces")
	for _, item := range list {
		one, ok := item.(map[string]any)
		if !ok {
			continue
		}
		mac, _ := one["mac"].(string)
		address, _ := one["ipAddress"].(string)
		if mac != "" {
			found[strings.ToLower(mac)] = address
		}
	}
	return found
}
