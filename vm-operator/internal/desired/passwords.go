package desired

import (
	"crypto/sha512"
	"fmt"
	"slices"
	"strings"

	"github.com/go-crypt/x/crypt"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
)

const (
	defaultPasswordKey = "password"
	// maxPassword is what libxcrypt and PAM take, in bytes. The cost of a hash grows with it.
	maxPassword   = 512
	cryptAlphabet = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	// cryptRounds is the default of SHA-crypt, which is not written out.
	cryptRounds = 5000
)

// PasswordSecrets are the keys of Secrets that CloudInit needs.
func PasswordSecrets(vm *v1alpha1.VirtualMachine) []v1alpha1.SecretKeySelector {
	var all []v1alpha1.SecretKeySelector
	for i := range vm.Spec.Users {
		if ref := secretOf(&vm.Spec.Users[i]); ref != nil && !slices.Contains(all, *ref) {
			all = append(all, *ref)
		}
	}
	return all
}

// secretOf is the key that holds the user's password, nil if there is none.
func secretOf(user *v1alpha1.VirtualMachineUser) *v1alpha1.SecretKeySelector {
	if user.PasswordSecretRef == nil || user.HashedPasswd != "" {
		return nil
	}
	ref := *user.PasswordSecretRef
	if ref.Key == "" {
		ref.Key = defaultPasswordKey
	}
	return &ref
}

// hashOf is what crypt(5) makes of the user's password, or empty for a user without one.
func hashOf(vm *v1alpha1.VirtualMachine, user *v1alpha1.VirtualMachineUser, passwords map[v1alpha1.SecretKeySelector]string) (string, error) {
	if user.HashedPasswd != "" {
		return user.HashedPasswd, nil
	}
	password, given := user.PlainTextPasswd, user.PlainTextPasswd != ""
	if ref := secretOf(user); ref != nil {
		if password, given = passwords[*ref]; !given {
			return "", fmt.Errorf("the password of user %q, key %q of Secret %q, is missing", user.Name, ref.Key, ref.Name)
		}
	}
	if !given {
		return "", nil
	}
	password, err := typed(password)
	if err != nil {
		return "", fmt.Errorf("the password of user %q %w", user.Name, err)
	}
	return sha512Crypt(password, salt(vm, user.Name)), nil
}

// typed is the password as somebody types it: without the line break that a Secret made from a file ends in.
func typed(password string) (string, error) {
	password = strings.TrimSuffix(strings.TrimSuffix(password, "\n"), "\r")
	switch {
	case password == "":
		return "", fmt.Errorf("is empty")
	case len(password) > maxPassword:
		return "", fmt.Errorf("is longer than %d bytes, which no login takes", maxPassword)
	case strings.ContainsAny(password, "\n\r\x00"):
		return "", fmt.Errorf("has a line break or a zero byte in it, which nobody can type")
	}
	return password, nil
}

// salt follows from the virtual machine and the user, so that the same password always gives the same hash. A salt is no
// secret: it has to differ, so that one table of hashes does not serve for two accounts.
func salt(vm *v1alpha1.VirtualMachine, user string) string {
	sum := derived(vm, "salt", user)
	text := make([]byte, 16)
	for i := range text {
		text[i] = cryptAlphabet[sum[i]%64]
	}
	return string(text)
}

// sha512Crypt is the hash that every guest knows: glibc's, musl's and libxcrypt's, while yescrypt is libxcrypt's alone.
func sha512Crypt(password, salt string) string {
	return "$6$" + salt + "$" + string(crypt.KeySHACrypt(sha512.New, []byte(password), []byte(salt), cryptRounds))
}
