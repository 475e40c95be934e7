package desired_test

import (
	"encoding/json"
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/desired"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Many may read the fingertold: nothing of a password goes into it, so that no guess can be tried out.
func TestFingerprintHasNothingOfAPassword(t *testing.T) {
	user := func(password, hash string) mod {
		return users(v1alpha1.VirtualMachineUser{Name: "demo", PlainTextPasswd: password, HashedPasswd: hash})
	}
	told := desired.Fingerprint(guest(user("one", "")), nil)
	assert.Len(t, told, 64)
	assert.Equal(t, told, desired.Fingerprint(guest(user("two", "")), nil))
	assert.Equal(t, told, desired.Fingerprint(guest(user("", "$6$x$y")), nil))
	assert.NotEqual(t, told, desired.Fingerprint(guest(user("", "")), nil))
}

func TestFingerprintFollowsThePasswords(t *testing.T) {
	later := func(mods ...mod) *v1alpha1.VirtualMachine {
		vm := guest(mods...)
		vm.Generation++
		return vm
	}
	plain := users(v1alpha1.VirtualMachineUser{Name: "demo", PlainTextPasswd: "one"})
	assert.NotEqual(t, desired.Fingerprint(guest(plain), nil), desired.Fingerprint(later(plain), nil))
	none := users(v1alpha1.VirtualMachineUser{Name: "demo"})
	assert.Equal(t, desired.Fingerprint(guest(none), nil), desired.Fingerprint(later(none), nil))

	stored := users(v1alpha1.VirtualMachineUser{Name: "demo", PasswordSecretRef: &ref})
	version := func(v string) map[v1alpha1.SecretKeySelector]string {
		return map[v1alpha1.SecretKeySelector]string{ref: v}
	}
	assert.NotEqual(t, desired.Fingerprint(guest(stored), version("uid/1")), desired.Fingerprint(guest(stored), version("uid/2")))
	assert.Equal(t, desired.Fingerprint(guest(stored), version("uid/1")), desired.Fingerprint(later(stored), version("uid/1")))
}

// TestFingerprintFollowsTheSecret: two Secrets that differ have two fingertolds, and the other way round without passwords.
func TestFingerprintFollowsTheSecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) *v1alpha1.VirtualMachine {
			return guest(func(s *v1alpha1.VirtualMachineSpec) {
				s.Name = rapid.SampledFrom([]string{"", "host"}).Draw(t, label+"host")
				for range rapid.IntRange(0, 2).Draw(t, label+"users") {
					s.Users = append(s.Users, v1alpha1.VirtualMachineUser{
						Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, label+"user"), Sudo: rapid.SampledFrom([]string{"", "ALL"}).Draw(t, label+"sudo"),
					})
				}
				for range rapid.IntRange(0, 2).Draw(t, label+"interfaces") {
					s.Interfaces = append(s.Interfaces, v1alpha1.VirtualMachineInterface{Network: rapid.SampledFrom([]string{"x", "y"}).Draw(t, label+"network")})
				}
			})
		}
		one, other := draw("one "), draw("other ")
		text := func(vm *v1alpha1.VirtualMachine) string {
			secret, err := desired.CloudInit(vm, nil)
			require.NoError(t, err)
			raw, err := json.Marshal(secret)
			require.NoError(t, err)
			return string(raw)
		}
		assert.Equal(t, text(one) == text(other), desired.Fingerprint(one, nil) == desired.Fingerprint(other, nil))
	})
}

// It stands on the machine, and not on its template, which KubeVirt would want a restart for.
func TestFingerprintIsOnTheMachine(t *testing.T) {
	bare, err := desired.Machine(guest(), "")
	require.NoError(t, err)
	assert.Empty(t, bare.GetAnnotations())
	machine, err := desired.Machine(guest(), "abc")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{v1alpha1.AnnotationCloudInit: "abc"}, machine.GetAnnotations())
	assert.Equal(t, bare.Object["spec"], machine.Object["spec"])
}
