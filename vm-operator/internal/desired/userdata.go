package desired

import (
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/utils/ptr"
)

const defaultShell = "/bin/bash"

// userData is cloud-init's cloud-config. Without users there is no list, and the image's default user stays.
type userData struct {
	Hostname string `yaml:"hostname"`
	// SSHPasswords is left to the image unless somebody is to log in with a password.
	SSHPasswords bool      `yaml:"ssh_pwauth,omitempty"`
	Users        []account `yaml:"users,omitempty"`
}

// account is an entry of cloud-init's users.
type account struct {
	Name         string   `yaml:"name"`
	FullName     string   `yaml:"gecos,omitempty"`
	Shell        string   `yaml:"shell"`
	Groups       []string `yaml:"groups,omitempty"`
	Sudo         string   `yaml:"sudo,omitempty"`
	LockPassword bool     `yaml:"lock_passwd"`
	// HashedPassword is used also when the image has such an account already, as plain_text_passwd would be, and unlike passwd.
	HashedPassword string   `yaml:"hashed_passwd,omitempty"`
	SSHKeys        []string `yaml:"ssh_authorized_keys,omitempty"`
}

func userDataOf(vm *v1alpha1.VirtualMachine, passwords map[v1alpha1.SecretKeySelector]string) (userData, error) {
	data := userData{Hostname: hostname(vm)}
	logins := logins(vm.Spec.Users)
	for i := range vm.Spec.Users {
		user := &vm.Spec.Users[i]
		hash, err := hashOf(vm, user, passwords)
		if err != nil {
			return userData{}, err
		}
		entry := accountOf(user, logins[i], hash)
		data.SSHPasswords = data.SSHPasswords || hash != "" && !entry.LockPassword
		data.Users = append(data.Users, entry)
	}
	return data, nil
}

func accountOf(user *v1alpha1.VirtualMachineUser, login, hash string) account {
	entry := account{
		Name:           login,
		FullName:       fullName(user.Name, login),
		Shell:          user.Shell,
		Groups:         groups(user.Groups),
		Sudo:           user.Sudo,
		LockPassword:   ptr.Deref(user.LockPasswd, hash == ""),
		HashedPassword: hash,
		SSHKeys:        user.SSHAuthorizedKeys,
	}
	if entry.Shell == "" {
		entry.Shell = defaultShell
	}
	return entry
}

func groups(list string) []string {
	var all []string
	for group := range strings.SplitSeq(list, ",") {
		if group = strings.TrimSpace(group); group != "" {
			all = append(all, group)
		}
	}
	return all
}

func hostname(vm *v1alpha1.VirtualMachine) string {
	if vm.Spec.Name != "" {
		return vm.Spec.Name
	}
	return vm.Name
}
