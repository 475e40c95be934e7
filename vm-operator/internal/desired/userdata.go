package desired

import (
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/utils/ptr"
)

const defaultShell = "/bin/bash"

// userData is cloud-init's cloud-config. Without users there is no list, and the image's default user stays.
type userData struct {
	Hostname text `yaml:"hostname"`
	// SSHPasswords is left to the image unless somebody is to log in with a password.
	SSHPasswords bool      `yaml:"ssh_pwauth,omitempty"`
	Users        []account `yaml:"users,omitempty"`
}

// account is an entry of cloud-init's users.
type account struct {
	Name         text   `yaml:"name"`
	FullName     text   `yaml:"gecos,omitempty"`
	Shell        text   `yaml:"shell"`
	Groups       []text `yaml:"groups,omitempty"`
	Sudo         text   `yaml:"sudo,omitempty"`
	LockPassword bool   `yaml:"lock_passwd"`
	// HashedPassword is used also when the image has such an account already, as plain_text_passwd would be, and unlike passwd.
	HashedPassword text   `yaml:"hashed_passwd,omitempty"`
	SSHKeys        []text `yaml:"ssh_authorized_keys,omitempty"`
}

func userDataOf(vm *v1alpha1.VirtualMachine, password func(*v1alpha1.VirtualMachineUser) (string, error)) (userData, error) {
	data := userData{Hostname: text(hostname(vm))}
	logins := logins(vm.Spec.Users)
	for i := range vm.Spec.Users {
		user := &vm.Spec.Users[i]
		hash, err := password(user)
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
		Name:           text(login),
		FullName:       text(fullName(user.Name, login)),
		Shell:          text(user.Shell),
		Groups:         groups(user.Groups),
		Sudo:           text(user.Sudo),
		LockPassword:   ptr.Deref(user.LockPasswd, hash == ""),
		HashedPassword: text(hash),
		SSHKeys:        texts(user.SSHAuthorizedKeys),
	}
	if entry.Shell == "" {
		entry.Shell = defaultShell
	}
	return entry
}

func groups(list string) []text {
	var all []text
	for group := range strings.SplitSeq(list, ",") {
		if group = strings.TrimSpace(group); group != "" {
			all = append(all, text(group))
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
