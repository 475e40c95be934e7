package desired

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
)

// maxLogin is what useradd takes.
const maxLogin = 32

var (
	validLogin = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)
	notInLogin = regexp.MustCompile(`[^a-z0-9_]+`)
	// systemLogins are accounts that images have of their own: who means root writes root.
	systemLogins = []string{
		"adm", "backup", "bin", "daemon", "ftp", "games", "halt", "irc", "list", "lp", "mail", "man", "messagebus", "news", "nobody",
		"operator", "polkitd", "proxy", "root", "shutdown", "sshd", "sync", "sys", "syslog", "tss", "uucp", "www-data",
	}
)

// Logins are the users whose login in the guest is not their name.
func Logins(vm *v1alpha1.VirtualMachine) []v1alpha1.VirtualMachineUserStatus {
	var changed []v1alpha1.VirtualMachineUserStatus
	for i, login := range logins(vm.Spec.Users) {
		if name := vm.Spec.Users[i].Name; name != login {
			changed = append(changed, v1alpha1.VirtualMachineUserStatus{Name: name, Login: login})
		}
	}
	return changed
}

// logins gives each user a login of its own. Names that are logins stay as they are, whatever else is in the list; what is
// made of the others is numbered where it is taken, in their order.
func logins(users []v1alpha1.VirtualMachineUser) []string {
	taken := map[string]bool{}
	for _, login := range systemLogins {
		taken[login] = true
	}
	for _, user := range users {
		if validLogin.MatchString(user.Name) {
			taken[user.Name] = true
		}
	}
	all := make([]string, 0, len(users))
	for _, user := range users {
		login := user.Name
		if !validLogin.MatchString(login) {
			login = freeLogin(loginOf(user.Name), taken)
		}
		all = append(all, login)
	}
	return all
}

// loginOf makes a login of a name: demo user becomes demo-user.
func loginOf(name string) string {
	login := strings.Trim(notInLogin.ReplaceAllString(strings.ToLower(name), "-"), "-")
	switch {
	case login == "":
		return "user"
	case login[0] >= '0' && login[0] <= '9':
		login = "_" + login
	}
	return cut(login, maxLogin)
}

func freeLogin(login string, taken map[string]bool) string {
	free := login
	for n := 2; taken[free]; n++ {
		number := "-" + strconv.Itoa(n)
		free = cut(login, maxLogin-len(number)) + number
	}
	taken[free] = true
	return free
}

func cut(s string, length int) string { return strings.TrimRight(s[:min(len(s), length)], "-") }

// fullName is the name as GECOS can hold it, where it is not the login: without the characters that divide its fields.
func fullName(name, login string) string {
	if name == login {
		return ""
	}
	divides := func(r rune) bool { return strings.ContainsRune(":,=", r) || r < ' ' || r == 0x7f }
	return strings.Join(slices.Collect(strings.FieldsFuncSeq(name, divides)), " ")
}
