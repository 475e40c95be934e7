package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
)

// Fingerprint is another one when the cloud-init Secret that shall be is another one. It is kept in an annotation, which many
// may read. So nothing of a password goes into it, not even a hash, at which somebody could try out guesses: where a password
// would stand there is where it comes from. That is the spec's generation, or the version (UID and resourceVersion) of the
// Secret that holds it. What is the same by this is the same; what differs may be the same still, and is applied once in vain.
//
// It also costs no hash of a password.
func Fingerprint(vm *v1alpha1.VirtualMachine, versions map[v1alpha1.SecretKeySelector]string) string {
	secret, err := cloudInit(vm, func(user *v1alpha1.VirtualMachineUser) (string, error) { return originOf(vm, user, versions), nil })
	if err != nil {
		panic(err) // there is no password that could be wrong
	}
	raw, err := json.Marshal(secret)
	if err != nil {
		panic(err) // texts and lists: cannot fail
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// originOf is where the user's password comes from; empty for a user without one.
func originOf(vm *v1alpha1.VirtualMachine, user *v1alpha1.VirtualMachineUser, versions map[v1alpha1.SecretKeySelector]string) string {
	if ref := secretOf(user); ref != nil {
		return fmt.Sprintf("secret %s %s %s", ref.Name, ref.Key, versions[*ref])
	}
	if user.HashedPasswd != "" || user.PlainTextPasswd != "" {
		return fmt.Sprintf("generation %d", vm.Generation)
	}
	return ""
}
