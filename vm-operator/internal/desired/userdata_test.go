package desired_test

import (
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/desired"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLockedPasswords(t *testing.T) {
	const hash = "$6$abc$def"
	cases := map[string]struct {
		user   v1alpha1.VirtualMachineUser
		locked bool
		ssh    any
	}{
		"without a password it is locked":        {v1alpha1.VirtualMachineUser{}, true, nil},
		"with one it is not":                     {v1alpha1.VirtualMachineUser{HashedPasswd: hash}, false, true},
		"one that is locked does not open SSH":   {v1alpha1.VirtualMachineUser{HashedPasswd: hash, LockPasswd: new(true)}, true, nil},
		"unlocked, without one, opens nothing":   {v1alpha1.VirtualMachineUser{LockPasswd: new(false)}, false, nil},
		"keys do not matter":                     {v1alpha1.VirtualMachineUser{SSHAuthorizedKeys: []string{"k"}}, true, nil},
		"what is said is done, also if it is so": {v1alpha1.VirtualMachineUser{HashedPasswd: hash, LockPasswd: new(false)}, false, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.user.Name = "demo"
			secret, err := desired.CloudInit(guest(users(c.user)), nil)
			require.NoError(t, err)
			data := value(t, string(secret.Data["userdata"])).(map[string]any)
			assert.Equal(t, c.ssh, data["ssh_pwauth"], "left to the image unless somebody can use it")
			assert.Equal(t, c.locked, data["users"].([]any)[0].(map[string]any)["lock_passwd"])
		})
	}
}

func TestFullNames(t *testing.T) {
	for name, want := range map[string]any{
		"demo": nil, "demo user": "demo user", "Jürgen": "Jürgen", "a:b,c=d": "a b c d", "x\ny\x00z\x7f": "x y z", ":": nil, "3d": "3d",
	} {
		user := accounts(t, named(name), nil)[0].(map[string]any)
		assert.Equal(t, want, user["gecos"], "%q", name)
	}
}

func TestTheImagesDefaultUserStaysOnlyWithoutOthers(t *testing.T) {
	assert.Empty(t, accounts(t, guest(), nil), "cloud-init makes the image's")
	all := accounts(t, named("demo"), nil)
	assert.Equal(t, []any{map[string]any{"name": "demo", "lock_passwd": true, "shell": "/bin/bash"}}, all)
}
