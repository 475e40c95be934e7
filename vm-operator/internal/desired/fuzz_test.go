package desired_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/desired"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// unprintable is what the parser of cloud-init refuses to read at all, anywhere in a document.
var unprintable = regexp.MustCompile(`[^\x09\x0A\x0D\x20-\x7E\x{85}\x{A0}-\x{D7FF}\x{E000}-\x{FFFD}\x{10000}-\x{10FFFF}]`)

// FuzzUserData puts any text wherever an author may write one, and expects to find it as the value of the one key that
// it belongs to.
func FuzzUserData(f *testing.F) {
	for _, text := range []string{
		"demo user", "", "yes", "12:34:56", "=", "<<", "~", "null", "0x1f", "1e3", "*a", "&a", "!!binary aGk=", "- a", "{a: b}", "[", "|", ">-", "#", "a #b",
		"a: b", "\"", "'", "\\", "%YAML 1.1", "---\nusers: []", "...\n", "a\nruncmd: [reboot]", "\r\n", "\t", "\x00", "\x7f", "\u0085", "\u2028", "\ufeff",
		"\uffff", "😀", "{{ jinja }}", "@", "`", "?", "?a", " a ", "2026-11-21", ".inf", "0o7", "+1_000", strings.Repeat("long ", 100),
	} {
		f.Add(text, "demo", text, text)
		f.Add("a", text, "b", text)
	}
	f.Add("A", "000\n", "A", " 00\n") // a block in a list, which Go's parser does not read as its encoder wrote it
	f.Fuzz(func(t *testing.T, one, two, three, four string) {
		for _, text := range []string{one, two, three, four} {
			if !utf8.ValidString(text) {
				t.Skip("the API server holds none")
			}
		}
		if one == "dhcp" {
			t.Skip("a network is in the list once")
		}
		vm := guest(
			users(v1alpha1.VirtualMachineUser{
				Name: one, HashedPasswd: two, Sudo: three, Groups: four, Shell: two, SSHAuthorizedKeys: []string{three, four},
			}),
			on(
				v1alpha1.VirtualMachineInterface{
					Network: one, IPAddress: two, Gateway: three, Nameservers: []string{four, one}, MACAddress: strings.ToLower(two),
				},
				v1alpha1.VirtualMachineInterface{Network: "dhcp"},
			),
			func(s *v1alpha1.VirtualMachineSpec) { s.Name = two },
		)
		secret, err := desired.CloudInit(vm, nil)
		require.NoError(t, err)
		userdata, networkdata := secret.Data["userdata"], secret.Data["networkdata"]
		assert.True(t, bytes.HasPrefix(userdata, []byte("#cloud-config\n")))
		same(t, wantUserData(vm, one, two, three, four), userdata)
		same(t, wantNetworkData(vm, deviceOf(one), []string{two, three, four, one}), networkdata)
	})
}

// wantUserData leaves out what is empty.
func wantUserData(vm *v1alpha1.VirtualMachine, one, two, three, four string) map[string]any {
	login := loginsOf(vm)[0]
	shell, host := "/bin/bash", vm.Name
	if two != "" {
		shell, host = two, two
	}
	user := map[string]any{"name": login, "shell": shell, "lock_passwd": two == "", "ssh_authorized_keys": []any{three, four}}
	want := map[string]any{"hostname": host, "users": []any{user}}
	if two != "" {
		user["hashed_passwd"], want["ssh_pwauth"] = two, true
	}
	if three != "" {
		user["sudo"] = three
	}
	name := strings.Join(strings.FieldsFunc(one, func(r rune) bool { return r < 32 || strings.ContainsRune(":,=\x7f", r) }), " ")
	if login != one && name != "" {
		user["gecos"] = name
	}
	var groups []any
	for group := range strings.SplitSeq(four, ",") {
		if group = strings.TrimSpace(group); group != "" {
			groups = append(groups, group)
		}
	}
	if groups != nil {
		user["groups"] = groups
	}
	return want
}

func deviceOf(network string) string {
	if regexp.MustCompile(`^[a-z0-9-]{1,11}$`).MatchString(network) {
		return "net-" + network
	}
	return fmt.Sprintf("net-%.4x", sha256.Sum256([]byte(network)))
}

// wantNetworkData takes the interface's address and gateway, and two name servers.
func wantNetworkData(vm *v1alpha1.VirtualMachine, name string, texts []string) map[string]any {
	address, gateway, nameservers := texts[0], texts[1], []any{texts[2], texts[3]}
	macs := each(desired.Interfaces(vm), func(i v1alpha1.VirtualMachineInterfaceStatus) string { return i.MACAddress })
	device := func(name, mac string, dhcp bool) map[string]any {
		return map[string]any{"match": map[string]any{"macaddress": mac}, "set-name": name, "dhcp4": dhcp}
	}
	pod, static, dhcp := device("pod0", macs[0], true), device(name, macs[1], address == ""), device("net-dhcp", macs[2], true)
	podOverrides := map[string]any{"route-metric": 1000}
	pod["dhcp4-overrides"] = podOverrides
	dhcp["dhcp4-overrides"], dhcp["optional"] = map[string]any{"route-metric": 1002}, true
	static["nameservers"] = map[string]any{"addresses": nameservers}
	if address == "" {
		static["dhcp4-overrides"], static["optional"] = map[string]any{"route-metric": 1001}, true
	} else {
		static["addresses"] = []any{address}
	}
	switch {
	case strings.Contains(gateway, ":"):
		static["routes"] = []any{map[string]any{"to": "::/0", "via": gateway}}
	case gateway != "":
		static["routes"] = []any{map[string]any{"to": "0.0.0.0/0", "via": gateway}}
		podOverrides["use-routes"], podOverrides["use-dns"] = false, false
	}
	return map[string]any{"version": 2, "ethernets": map[string]any{"pod0": pod, name: static, "net-dhcp": dhcp}}
}

// same reads the document with two parsers: there is one, and it is what is wanted.
func same(t *testing.T, want map[string]any, document []byte) {
	t.Helper()
	assert.NotRegexp(t, unprintable, string(document))
	decoder := yamlv3.NewDecoder(bytes.NewReader(document))
	var first, second map[string]any
	require.NoError(t, decoder.Decode(&first))
	assert.Equal(t, want, first)
	assert.True(t, errors.Is(decoder.Decode(&second), io.EOF), "one document")

	raw, err := json.Marshal(want)
	require.NoError(t, err)
	var asJSON map[string]any
	require.NoError(t, json.Unmarshal(raw, &asJSON))
	require.NoError(t, yaml.UnmarshalStrict(document, &second))
	assert.Equal(t, asJSON, second)
}
