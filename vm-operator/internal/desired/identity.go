package desired

import (
	"crypto/sha256"
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
)

// derived is 32 bytes that follow from the virtual machine's UID, for one purpose and one thing of that purpose. Neither
// purposes nor UIDs have a slash, so no two of them meet.
func derived(vm *v1alpha1.VirtualMachine, purpose, thing string) [sha256.Size]byte {
	return sha256.Sum256([]byte(purpose + "/" + string(vm.UID) + "/" + thing))
}

// firmware is the guest's identity in DMI. cloud-init takes the UUID for the instance: it runs its first start once for
// each. KubeVirt would give random ones.
func firmware(vm *v1alpha1.VirtualMachine) map[string]any {
	id := strings.ToLower(string(vm.UID))
	return map[string]any{"uuid": id, "serial": id}
}
