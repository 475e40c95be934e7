package desired_test

import (
	"strings"
	"testing"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/desired"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

var ref = v1alpha1.SecretKeySelector{Name: "passwords", Key: "password"}

// accounts are the users in the guest's user data.
func accounts(t *testing.T, vm *v1alpha1.VirtualMachine, secrets map[v1alpha1.SecretKeySelector]string) []any {
	t.Helper()
	secret, err := desired.CloudInit(vm, secrets)
	require.NoError(t, err)
	users, _ := value(t, string(secret.Data["userdata"])).(map[string]any)["users"].([]any)
	return users
}

func hashFor(t *testing.T, vm *v1alpha1.VirtualMachine, secrets map[v1alpha1.SecretKeySelector]string) string {
	t.Helper()
	hash, _ := accounts(t, vm, secrets)[0].(map[string]any)["hashed_passwd"].(string)
	return hash
}

func TestHashes(t *testing.T) {
	plain := guest(users(v1alpha1.VirtualMachineUser{Name: "demo", PlainTextPasswd: "demo-pwd"}))
	hash := hashFor(t, plain, nil)
	assert.Regexp(t, `^\$6\$[./0-9A-Za-z]{16}\$[./0-9A-Za-z]{86}$`, hash)
	assert.Equal(t, hash, hashFor(t, plain, nil), "always the same")

	secret := guest(users(v1alpha1.VirtualMachineUser{Name: "demo", PasswordSecretRef: &v1alpha1.SecretKeySelector{Name: "passwords"}}))
	assert.Equal(t, []v1alpha1.SecretKeySelector{ref}, desired.PasswordSecrets(secret), "the key has a default")
	for _, stored := range []string{"demo-pwd", "demo-pwd\n", "demo-pwd\r\n"} {
		assert.Equal(t, hash, hashFor(t, secret, map[v1alpha1.SecretKeySelector]string{ref: stored}), "a file ends in a line break")
	}

	other := plain.DeepCopy()
	other.UID = types.UID("another")
	assert.NotEqual(t, hash, hashFor(t, other, nil), "another machine, another salt")
	other = plain.DeepCopy()
	other.Spec.Users[0].Name = "demo2"
	assert.NotEqual(t, hash, hashFor(t, other, nil), "another user, another salt")

	given := guest(users(v1alpha1.VirtualMachineUser{Name: "demo", HashedPasswd: "$y$j9T$abc$def"}))
	assert.Equal(t, "$y$j9T$abc$def", hashFor(t, given, nil), "as it is")
	assert.Empty(t, desired.PasswordSecrets(given))
}

func TestPasswordSecrets(t *testing.T) {
	user := func(name, secret, key string) v1alpha1.VirtualMachineUser {
		return v1alpha1.VirtualMachineUser{Name: name, PasswordSecretRef: &v1alpha1.SecretKeySelector{Name: secret, Key: key}}
	}
	vm := guest(users(user("a", "passwords", ""), user("b", "passwords", "password"), user("c", "passwords", "c"), user("d", "other", "")))
	assert.Equal(t, []v1alpha1.SecretKeySelector{ref, {Name: "passwords", Key: "c"}, {Name: "other", Key: "password"}},
		desired.PasswordSecrets(vm), "each once")
	assert.Equal(t, "", vm.Spec.Users[0].PasswordSecretRef.Key, "the virtual machine is only read")
}

func TestPasswordsThatCannotBe(t *testing.T) {
	const canary = "c4n4ry"
	cases := map[string]struct {
		stored map[v1alpha1.SecretKeySelector]string
		want   string
	}{
		"missing":       {nil, `the password of user "demo", key "password" of Secret "passwords", is missing`},
		"empty":         {map[v1alpha1.SecretKeySelector]string{ref: "\n"}, `the password of user "demo" is empty`},
		"two lines":     {map[v1alpha1.SecretKeySelector]string{ref: canary + "\n" + canary}, `the password of user "demo" has a line break or a zero byte in it, which nobody can type`},
		"two at end":    {map[v1alpha1.SecretKeySelector]string{ref: canary + "\n\n"}, `the password of user "demo" has a line break or a zero byte in it, which nobody can type`},
		"a zero byte":   {map[v1alpha1.SecretKeySelector]string{ref: canary + "\x00"}, `the password of user "demo" has a line break or a zero byte in it, which nobody can type`},
		"far too long":  {map[v1alpha1.SecretKeySelector]string{ref: strings.Repeat(canary, 100_000)}, `the password of user "demo" is longer than 512 bytes, which no login takes`},
		"of some other": {map[v1alpha1.SecretKeySelector]string{{Name: "passwords", Key: "x"}: canary}, `the password of user "demo", key "password" of Secret "passwords", is missing`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			secret, err := desired.CloudInit(guest(users(v1alpha1.VirtualMachineUser{Name: "demo", PasswordSecretRef: &ref})), c.stored)
			assert.EqualError(t, err, c.want)
			assert.Nil(t, secret)
		})
	}
}

// TestNoPasswordAnywhere looks for what was typed in all that is made. The Secret has hashes only.
func TestNoPasswordAnywhere(t *testing.T) {
	const plain, stored = "pl4in-c4n4ry", "st0red-c4n4ry"
	vm := guest(users(
		v1alpha1.VirtualMachineUser{Name: "a", PlainTextPasswd: plain},
		v1alpha1.VirtualMachineUser{Name: "b c", PasswordSecretRef: &ref, LockPasswd: new(true)},
	), func(s *v1alpha1.VirtualMachineSpec) { s.VMDiskImageTemplate = apitest.Image("t").Spec.DeepCopy() })
	secrets[ref] = stored
	t.Cleanup(func() { secrets[ref] = "Hello world!\n" })
	for kind, document := range documents(t, vm) {
		assert.NotContains(t, document, plain, kind)
		assert.NotContains(t, document, stored, kind)
		if kind != "userdata" {
			assert.NotContains(t, document, "$6$", kind)
		}
	}
}
