package desired_test

import (
	"strings"
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/desired"
	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"
)

func named(names ...string) *v1alpha1.VirtualMachine {
	return guest(func(s *v1alpha1.VirtualMachineSpec) {
		for _, name := range names {
			s.Users = append(s.Users, v1alpha1.VirtualMachineUser{Name: name})
		}
	})
}

// loginsOf are all logins, in the order of the users.
func loginsOf(vm *v1alpha1.VirtualMachine) []string {
	changed := map[string]string{}
	for _, user := range desired.Logins(vm) {
		changed[user.Name] = user.Login
	}
	var all []string
	for _, user := range vm.Spec.Users {
		if login, ok := changed[user.Name]; ok {
			all = append(all, login)
		} else {
			all = append(all, user.Name)
		}
	}
	return all
}

func TestLogins(t *testing.T) {
	long := strings.Repeat("a", 40)
	cases := map[string]struct{ names, want []string }{
		"a login stays":                       {[]string{"demo", "_apt", "a-b_c9"}, []string{"demo", "_apt", "a-b_c9"}},
		"a space becomes a dash":              {[]string{"demo user"}, []string{"demo-user"}},
		"capitals become small":               {[]string{"Demo"}, []string{"demo"}},
		"what is no letter becomes one dash":  {[]string{" Jürgen  O'Neil! "}, []string{"j-rgen-o-neil"}},
		"a digit does not begin":              {[]string{"3d artist"}, []string{"_3d-artist"}},
		"nothing is left":                     {[]string{"!", "用户", "-"}, []string{"user", "user-2", "user-3"}},
		"at most 32 letters":                  {[]string{long, long + "b"}, []string{long[:32], long[:30] + "-2"}},
		"names that are logins come first":    {[]string{"Demo", "demo", "DEMO"}, []string{"demo-2", "demo", "demo-3"}},
		"a number may be taken, too":          {[]string{"Demo", "demo", "demo-2"}, []string{"demo-3", "demo", "demo-2"}},
		"root is root":                        {[]string{"root"}, []string{"root"}},
		"nobody becomes root by accident":     {[]string{"Root", "root!", "SSHD"}, []string{"root-2", "root-3", "sshd-2"}},
		"no dash is left where a name is cut": {[]string{strings.Repeat("a", 31) + " b"}, []string{strings.Repeat("a", 31)}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, loginsOf(named(c.names...)))
		})
	}
	assert.Empty(t, desired.Logins(named("demo", "root")), "only those that differ")
}

func TestLoginsAreAlwaysValidAndDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.StringN(1, 64, -1), rapid.StringMatching(`[Aa][ -][Bb]?`), rapid.StringMatching(`[a-zA-Z0-9 _-]{28,64}`))
		vm := named(rapid.SliceOfNDistinct(name, 0, 32, rapid.ID).Draw(t, "names")...)
		logins := loginsOf(vm)
		assert.Len(t, sets.New(logins...), len(logins), "all differ")
		for _, login := range logins {
			assert.Regexp(t, `^[a-z_][a-z0-9_-]{0,31}$`, login)
		}
		assert.Equal(t, logins, loginsOf(vm))
	})
}
