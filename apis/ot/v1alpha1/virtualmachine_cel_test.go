package v1alpha1_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
)

const (
	controls     = "must not contain line breaks or control characters"
	onePassword  = "give at most one of plain_text_passwd, passwordSecretRef and hashed_passwd"
	noPassword   = "lock_passwd: false needs a password"
	badHash      = "hashed_passwd must be a hash of crypt(5)"
	badShell     = "shell must be the path of a program"
	badKeys      = "ssh_authorized_keys are public keys, one line each"
	badCPU       = "cpu must be more than 0 and at most 512"
	badMemory    = "memory must be at least 32Mi and at most 16Ti"
	badNetwork   = "network must be the name of a NetworkAttachmentDefinition"
	badAddress   = "ipAddress must be an address and the length of its network's prefix"
	noMachine    = "ipAddress must be one that a machine can have"
	itself       = "ipAddress is that of the network itself"
	broadcast    = "ipAddress is the broadcast address of its network"
	gatewayAlone = "gateway needs ipAddress"
	farGateway   = "gateway must be another address of the network"
	badMAC       = "macAddress must be six bytes with colons"
	badTimeout   = "provisioningTimeout must be a duration such as 30m or 2h"
	fixedRef     = "vmDiskImageRef is immutable"
	badVMName    = "metadata.name must be a DNS label of at most 63 characters"
)

func user(fields string) string { return "users: [{name: a, " + fields + "}]" }

func nic(fields string) string { return "interfaces: [{network: lan, " + fields + "}]" }

// Each entry is a spec without its vmDiskImageRef in one line of YAML, and what the API server says against it; nothing
// where it is accepted.
var machines = map[string]struct{ spec, want string }{
	"nothing more": {"", ""},
	"all fields": {"baseVm: a b, baseVmVersion: 2.1.2, version: 2.1.0, ignoreOnDeploy: true, name: web, podNetwork: false, runStrategy: RerunOnFailure, " +
		"provisioningTimeout: 1h30m, resources: {cpu: 2, memory: 2Gi, diskSize: 18Gi}, vmDiskImageTemplate: {" + http + ", name: x}, " +
		"users: [{name: demo user, hashed_passwd: $6$salt$0123456789, lock_passwd: true, sudo: 'ALL=(ALL) NOPASSWD:ALL', groups: 'sudo, adm', shell: /bin/sh, ssh_authorized_keys: [ssh-ed25519 AAAA me@x]}], " +
		"interfaces: [{network: other/lan.a, ipAddress: 10.0.0.2/24, gateway: 10.0.0.1, nameservers: [10.0.0.1, 'fd00::1'], macAddress: '02:1A:2b:3c:4d:5e'}]", ""},

	"a host name":                   {"name: demo-vm", ""},
	"a host name with a dot":        {"name: a.b", badName},
	"a host name in capitals":       {"name: VM", badName},
	"a host name of 63":             {"name: " + strings.Repeat("a", 63), ""},
	"a host name of 64":             {"name: " + strings.Repeat("a", 64), "spec.name: Too long"},
	"a host name with a line break": {`name: "a\nb"`, badName},
	"an empty host name":            {"name: ''", "spec.name"},
	"a version that is a number":    {"version: 2.1", "spec.version"},
	"another run strategy":          {"runStrategy: Sometimes", `spec.runStrategy: Unsupported value: "Sometimes"`},

	"a timeout of 0s":          {"provisioningTimeout: 0s", ""},
	"a timeout as Go writes":   {"provisioningTimeout: 1h0m0s", ""},
	"a timeout without a unit": {"provisioningTimeout: '30'", badTimeout},
	"a negative timeout":       {"provisioningTimeout: '-1h'", badTimeout},
	"an empty timeout":         {"provisioningTimeout: ''", badTimeout},
	"a timeout as a number":    {"provisioningTimeout: 30", "spec.provisioningTimeout"},

	"an account by its name":            {"users: [{name: demo user}]", ""},
	"an account without a name":         {"users: [{groups: sudo}]", "spec.users[0].name: Required"},
	"an account with an empty name":     {"users: [{name: ''}]", "spec.users[0].name"},
	"the same name twice":               {"users: [{name: a}, {name: a}]", "spec.users[1]: Duplicate value"},
	"33 accounts":                       {"users: [" + accounts(33) + "]", "spec.users: Too many"},
	"a name with a line break":          {`users: [{name: "a\nb"}]`, "name " + controls},
	"a name with a NUL":                 {`users: [{name: "a\0"}]`, "name " + controls},
	"a name with a line separator":      {`users: [{name: "a\u2028b"}]`, "name " + controls},
	"a name with a next line":           {`users: [{name: "a\u0085b"}]`, "name " + controls},
	"a name in other letters":           {"users: [{name: Jürgen Æ}]", ""},
	"a password":                        {user("plain_text_passwd: 'a \" : # ü %'"), ""},
	"a password that may be used":       {user("plain_text_passwd: a, lock_passwd: false"), ""},
	"a password that is locked":         {user("plain_text_passwd: a, lock_passwd: true"), ""},
	"a password with a line break":      {user(`plain_text_passwd: "a\nb"`), "plain_text_passwd " + controls},
	"a password with a return":          {user(`plain_text_passwd: "a\rb"`), "plain_text_passwd " + controls},
	"a password with a NUL":             {user(`plain_text_passwd: "a\0b"`), "plain_text_passwd " + controls},
	"an empty password":                 {user("plain_text_passwd: ''"), "spec.users[0].plain_text_passwd"},
	"a password that is a number":       {user("plain_text_passwd: 1234"), "spec.users[0].plain_text_passwd"},
	"a password from a secret":          {user("passwordSecretRef: {name: a.b}, lock_passwd: false"), ""},
	"a key of a secret":                 {user("passwordSecretRef: {name: a, key: _a.B-1}"), ""},
	"a secret without a name":           {user("passwordSecretRef: {key: a}"), "spec.users[0].passwordSecretRef.name: Required"},
	"a secret elsewhere":                {user("passwordSecretRef: {name: other/a}"), "name must be that of a Secret"},
	"a secret up the tree":              {user("passwordSecretRef: {name: ..}"), "name must be that of a Secret"},
	"a key that no secret has":          {user("passwordSecretRef: {name: a, key: 'a b'}"), "key must be one of a Secret"},
	"an empty key":                      {user("passwordSecretRef: {name: a, key: ''}"), "spec.users[0].passwordSecretRef.key"},
	"two passwords":                     {user("plain_text_passwd: a, passwordSecretRef: {name: a}"), onePassword},
	"two other passwords":               {user("hashed_passwd: $6$salt$0123456789, passwordSecretRef: {name: a}"), onePassword},
	"not locked, and no password":       {user("lock_passwd: false"), noPassword},
	"locked, and no password":           {user("lock_passwd: true"), ""},
	"a hash of sha-512":                 {user("hashed_passwd: '$6$rounds=4096$./aZ09$" + strings.Repeat("./aZ09", 14) + "', lock_passwd: false"), ""},
	"a hash of yescrypt":                {user("hashed_passwd: $y$j9T$F5Jx5fExrKuPp53xLKQ..1$X3DX6M94c7o.9agCG9G317fhZg9SqC.5i5rd.RhAtQ7"), ""},
	"a hash of bcrypt":                  {user("hashed_passwd: $2b$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW"), ""},
	"no hash but the password":          {user("hashed_passwd: demo-pwd"), badHash},
	"a hash with a colon":               {user("hashed_passwd: '$6$salt$0123456789:0'"), badHash},
	"a hash with a line break":          {user(`hashed_passwd: "$6$salt$0123456789\n"`), badHash},
	"an account that is locked by hash": {user("hashed_passwd: '!'"), badHash},
	"a hash of nothing":                 {user("hashed_passwd: $6$"), badHash},
	"a rule of sudo with a line break":  {user(`sudo: "ALL\nroot"`), "sudo " + controls},
	"groups with a line break":          {user(`groups: "a\nb"`), "groups " + controls},
	"a shell without a path":            {user("shell: bash"), badShell},
	"a shell with a colon":              {user("shell: '/bin/a:b'"), badShell},
	"a shell with a line break":         {user(`shell: "/bin/a\n"`), badShell},
	"an empty shell":                    {user("shell: ''"), badShell},
	"two keys":                          {user("ssh_authorized_keys: [ssh-ed25519 AAAA, 'from=\"10.0.0.0/8\" ssh-rsa AAAA= x']"), ""},
	"a key with a line break":           {user(`ssh_authorized_keys: ["ssh-rsa A\nssh-rsa B"]`), badKeys},
	"an empty key for ssh":              {user("ssh_authorized_keys: ['']"), "spec.users[0].ssh_authorized_keys[0]"},
	"33 keys":                           {user("ssh_authorized_keys: [" + strings.Repeat("a, ", 32) + "a]"), "ssh_authorized_keys: Too many"},
	"a key of 4097":                     {user("ssh_authorized_keys: [" + strings.Repeat("a", 4097) + "]"), "ssh_authorized_keys[0]: Too long"},

	"cores as text":              {"resources: {cpu: '2'}", ""},
	"half a core":                {"resources: {cpu: 500m}", ""},
	"half a core, with a dot":    {"resources: {cpu: '0.5'}", ""},
	"512 cores":                  {"resources: {cpu: 512}", ""},
	"513 cores":                  {"resources: {cpu: 513}", badCPU},
	"more than 512 cores":        {"resources: {cpu: 512001m}", badCPU},
	"no core":                    {"resources: {cpu: 0}", badCPU},
	"no thousandth":              {"resources: {cpu: 0m}", badCPU},
	"less than no core":          {"resources: {cpu: -1}", badCPU},
	"cores with an exponent":     {"resources: {cpu: 1e-2147483647}", badCPU},
	"cores in a unit of memory":  {"resources: {cpu: 1Ki}", badCPU},
	"some cores":                 {"resources: {cpu: some}", "spec.resources.cpu"},
	"memory":                     {"resources: {memory: 2Gi}", ""},
	"memory as a number":         {"resources: {memory: 1073741824}", ""},
	"memory with a fraction":     {"resources: {memory: 1.5Gi}", ""},
	"the least memory":           {"resources: {memory: 32Mi}", ""},
	"the most memory":            {"resources: {memory: 16Ti}", ""},
	"too little memory":          {"resources: {memory: 31Mi}", badMemory},
	"too much memory":            {"resources: {memory: 17Ti}", badMemory},
	"no memory":                  {"resources: {memory: 0}", badMemory},
	"less than no memory":        {"resources: {memory: -1Mi}", badMemory},
	"memory without its unit":    {"resources: {memory: 2}", badMemory},
	"memory with an exponent":    {"resources: {memory: 1e-2147483647}", badMemory},
	"a disk":                     {"resources: {diskSize: 18Gi}", ""},
	"a disk of nothing":          {"resources: {diskSize: 0}", badSize},
	"a disk of less":             {"resources: {diskSize: -1Gi}", badSize},
	"a disk that is too large":   {"resources: {diskSize: 65Ti}", badSize},
	"a disk with an exponent":    {"resources: {diskSize: '1e-2147483647'}", badSize},
	"a resource that is unknown": {"resources: {gpu: 1}", ""}, // pruned; kubectl and strict clients refuse it

	"a network of another namespace":         {"interfaces: [{network: a-1/b-2}]", ""},
	"a network with a dot":                   {"interfaces: [{network: a.b}]", ""},
	"no network":                             {"interfaces: [{ipAddress: 10.0.0.2/24}]", "spec.interfaces[0].network: Required"},
	"an empty network":                       {"interfaces: [{network: ''}]", "spec.interfaces[0].network"},
	"a network in capitals":                  {"interfaces: [{network: LAN}]", badNetwork},
	"a network with an underscore":           {"interfaces: [{network: a_b}]", badNetwork},
	"a network of three parts":               {"interfaces: [{network: a/b/c}]", badNetwork},
	"a network of no namespace":              {"interfaces: [{network: /b}]", badNetwork},
	"a namespace and no network":             {"interfaces: [{network: a/}]", badNetwork},
	"a network of a namespace with a dot":    {"interfaces: [{network: a.b/c}]", badNetwork},
	"a network of a namespace of 64":         {"interfaces: [{network: " + strings.Repeat("a", 64) + "/c}]", badNetwork},
	"a network twice":                        {"interfaces: [{network: a}, {network: a}]", "spec.interfaces[1]: Duplicate value"},
	"16 networks":                            {"interfaces: [" + nics(16) + "]", ""},
	"17 networks":                            {"interfaces: [" + nics(17) + "]", "spec.interfaces: Too many"},
	"an address":                             {nic("ipAddress: 10.10.0.161/24"), ""},
	"an address of IPv6":                     {nic("ipAddress: 'fd00::1/64'"), ""},
	"a link-local address":                   {nic("ipAddress: 169.254.1.1/16"), ""},
	"an address without a prefix":            {nic("ipAddress: 10.10.0.161"), badAddress},
	"an empty address":                       {nic("ipAddress: ''"), badAddress},
	"an address and a mask":                  {nic("ipAddress: 10.10.0.161/255.255.255.0"), badAddress},
	"a prefix that is too long":              {nic("ipAddress: 10.10.0.161/33"), badAddress},
	"an octet that is too large":             {nic("ipAddress: 10.10.0.256/24"), badAddress},
	"an octet with a zero before it":         {nic("ipAddress: 10.10.0.010/24"), badAddress},
	"an address with a zone":                 {nic("ipAddress: 'fe80::1%eth0/64'"), badAddress},
	"an IPv4 address in IPv6":                {nic("ipAddress: '::ffff:10.0.0.1/120'"), badAddress},
	"an address with a line break":           {nic(`ipAddress: "10.0.0.2/24\n"`), badAddress},
	"an address that is too long":            {nic("ipAddress: a" + strings.Repeat("1", 64)), "ipAddress: Too long"},
	"an address of the whole internet":       {nic("ipAddress: 10.0.0.2/0"), noMachine},
	"a multicast address":                    {nic("ipAddress: 224.0.1.1/24"), noMachine},
	"a multicast address of IPv6":            {nic("ipAddress: 'ff02::1/64'"), noMachine},
	"the loopback address":                   {nic("ipAddress: 127.0.0.1/8"), noMachine},
	"everybody's address":                    {nic("ipAddress: 255.255.255.255/32"), noMachine},
	"the network's address":                  {nic("ipAddress: 10.10.0.0/24"), itself},
	"the network's address, within an octet": {nic("ipAddress: 172.27.11.16/28"), itself},
	"the network's address of IPv6":          {nic("ipAddress: 'fd00::/64'"), itself},
	"the broadcast address":                  {nic("ipAddress: 10.10.0.255/24"), broadcast},
	"the broadcast address, within an octet": {nic("ipAddress: 172.27.11.31/28"), broadcast},
	"the broadcast address of a large one":   {nic("ipAddress: 10.127.255.255/9"), broadcast},
	"255 that is no broadcast address":       {nic("ipAddress: 10.10.0.255/16"), ""},
	"0 that is no network":                   {nic("ipAddress: 10.10.1.0/16"), ""},
	"the last but one":                       {nic("ipAddress: 172.27.11.30/28"), ""},
	"the last one of IPv6":                   {nic("ipAddress: 'fd00::ffff:ffff:ffff:ffff/64'"), ""},
	"the first of a link of two":             {nic("ipAddress: 10.0.0.0/31"), ""},
	"the second of a link of two":            {nic("ipAddress: 10.0.0.1/31"), ""},
	"an address alone":                       {nic("ipAddress: 10.0.0.0/32"), ""},
	"an address of IPv6 alone":               {nic("ipAddress: 'fd00::/128'"), ""},
	"the same address twice":                 {"interfaces: [{network: a, ipAddress: 10.0.0.2/24}, {network: b, ipAddress: 10.0.0.2/16}]", "two interfaces have the same ipAddress"},
	"the same, written otherwise":            {"interfaces: [{network: a, ipAddress: 'fd00::a/64'}, {network: b, ipAddress: 'FD00:0::A/64'}]", "two interfaces have the same ipAddress"},
	"addresses of one network":               {"interfaces: [{network: a, ipAddress: 10.0.0.2/24}, {network: b, ipAddress: 10.0.0.3/24}, {network: c}, {network: d}]", ""},

	"a gateway":                            {nic("ipAddress: 10.10.0.161/24, gateway: 10.10.0.1"), ""},
	"a gateway of IPv6":                    {nic("ipAddress: 'fd00::2/64', gateway: 'fd00::1'"), ""},
	"a link-local gateway of IPv6":         {nic("ipAddress: 'fd00::2/64', gateway: 'fe80::1'"), ""},
	"a gateway without an address":         {nic("gateway: 10.10.0.1"), gatewayAlone},
	"a gateway elsewhere":                  {nic("ipAddress: 10.10.0.161/24, gateway: 10.10.1.1"), farGateway},
	"a gateway that is the guest":          {nic("ipAddress: 10.10.0.161/24, gateway: 10.10.0.161"), farGateway},
	"a gateway of another kind":            {nic("ipAddress: 10.10.0.161/24, gateway: 'fd00::1'"), farGateway},
	"a link-local gateway, but not for v4": {nic("ipAddress: 10.10.0.161/24, gateway: 'fe80::1'"), farGateway},
	"a gateway with a prefix":              {nic("ipAddress: 10.10.0.161/24, gateway: 10.10.0.1/24"), "gateway must be an IP address"},
	"a gateway by name":                    {nic("ipAddress: 10.10.0.161/24, gateway: router"), "gateway must be an IP address"},
	"two gateways": {"interfaces: [{network: a, ipAddress: 10.0.0.2/24, gateway: 10.0.0.1}, {network: b, ipAddress: 10.0.1.2/24, gateway: 10.0.1.1}]",
		"at most one interface may have a gateway"},
	"nameservers with DHCP":      {nic("nameservers: [10.0.0.1, 'fd00::1']"), ""},
	"a nameserver by name":       {nic("nameservers: [dns]"), "nameservers must be IP addresses"},
	"a nameserver with a prefix": {nic("nameservers: [10.0.0.1/24]"), "nameservers must be IP addresses"},
	"nine nameservers":           {nic("nameservers: [1.1.1.1, 1.1.1.2, 1.1.1.3, 1.1.1.4, 1.1.1.5, 1.1.1.6, 1.1.1.7, 1.1.1.8, 1.1.1.9]"), "nameservers: Too many"},

	"a MAC":                                {nic("macAddress: '52:54:00:ab:CD:01'"), ""},
	"a MAC that is none":                   {nic("macAddress: 'zz:00:00:00:00:01'"), badMAC},
	"a MAC with dashes":                    {nic("macAddress: 52-54-00-00-00-01"), badMAC},
	"a MAC without colons":                 {nic("macAddress: '525400000001'"), badMAC},
	"a MAC of five bytes":                  {nic("macAddress: '52:54:00:00:00'"), badMAC},
	"a MAC of eight bytes":                 {nic("macAddress: '52:54:00:00:00:01:02:03'"), "macAddress: Too long"},
	"a MAC of zeros":                       {nic("macAddress: '00:00:00:00:00:00'"), badMAC},
	"the MAC of the bridge in the pod":     {nic("macAddress: '02:00:00:00:00:00'"), badMAC},
	"a MAC of the host's side":             {nic("macAddress: 'FE:54:00:00:00:01'"), badMAC},
	"a MAC that is not":                    {nic("macAddress: 'ee:54:00:00:00:fe'"), ""},
	"a multicast MAC":                      {nic("macAddress: '01:00:5e:00:00:01'"), badMAC},
	"the broadcast MAC":                    {nic("macAddress: 'ff:ff:ff:ff:ff:ff'"), badMAC},
	"an empty MAC":                         {nic("macAddress: ''"), badMAC},
	"a MAC twice":                          {"interfaces: [{network: a, macAddress: '52:54:00:ab:cd:01'}, {network: b, macAddress: '52:54:00:AB:cd:01'}]", "two interfaces have the same macAddress"},
	"two MACs":                             {"interfaces: [{network: a, macAddress: '52:54:00:ab:cd:01'}, {network: b, macAddress: '52:54:00:ab:cd:02'}, {network: c}, {network: d}]", ""},
	"a template":                           {"vmDiskImageTemplate: {" + http + "}", ""},
	"a template that is wrong":             {"vmDiskImageTemplate: {" + http + ", secretRef: ''}", "spec.vmDiskImageTemplate.secretRef"},
	"a template without a source":          {"vmDiskImageTemplate: {diskSize: 1Gi}", "spec.vmDiskImageTemplate.sourceType: Required"},
	"a template that breaks a rule of all": {"vmDiskImageTemplate: {sourceType: http, diskSize: 1Gi}", urlRequired},
}

func accounts(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("{name: u%d}", i)
	}
	return strings.Join(names, ", ")
}

func nics(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("{network: lan-%d, ipAddress: 10.0.%d.2/24, macAddress: '02:00:00:00:01:%02x'}", i, i, i)
	}
	return strings.Join(all, ", ")
}

func machine(t *testing.T, spec string) map[string]any {
	t.Helper()
	if spec != "" {
		spec = ", " + spec
	}
	return machineOf(t, "a", "vmDiskImageRef: {name: a}"+spec)
}

func machineOf(t *testing.T, name, spec string) map[string]any {
	t.Helper()
	return object(t, "{apiVersion: pelotech.ot/v1alpha1, kind: VirtualMachine, metadata: {name: "+name+"}, spec: {"+spec+"}}")
}

func TestMachinesThatAreAcceptedAndRejected(t *testing.T) {
	g := gateOf(t, "virtualmachines")
	for name, c := range machines {
		t.Run(name, func(t *testing.T) {
			obj := machine(t, c.spec)
			complaints := g.complaints(t, obj, nil)
			if c.want != "" {
				assert.Contains(t, strings.Join(complaints, "\n"), c.want)
				assert.LessOrEqual(t, len(complaints), 3, "nobody should have to guess which is meant: %v", complaints)
				return
			}
			assert.Empty(t, complaints)
			decoded := &v1alpha1.VirtualMachine{}
			assert.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj, decoded),
				"what is stored must be readable: one that is not would blind every informer")
		})
	}
}

func TestReferencesAndNames(t *testing.T) {
	long := strings.Repeat("a", 63)
	cases := map[string]struct{ name, spec, want string }{
		"an image":                     {"a", "vmDiskImageRef: {name: a.b}", ""},
		"an image elsewhere":           {"a", "vmDiskImageRef: {name: a, namespace: farm}", ""},
		"no spec":                      {"a", "", "spec.vmDiskImageRef: Required"},
		"no name of the image":         {"a", "vmDiskImageRef: {namespace: farm}", "spec.vmDiskImageRef.name: Required"},
		"an empty name of the image":   {"a", "vmDiskImageRef: {name: ''}", "spec.vmDiskImageRef.name"},
		"a slash in the image's name":  {"a", "vmDiskImageRef: {name: farm/a}", "name must be that of a VMDiskImage"},
		"an image in capitals":         {"a", "vmDiskImageRef: {name: A}", "name must be that of a VMDiskImage"},
		"an empty namespace":           {"a", "vmDiskImageRef: {name: a, namespace: ''}", "spec.vmDiskImageRef.namespace"},
		"a namespace with a dot":       {"a", "vmDiskImageRef: {name: a, namespace: a.b}", "namespace must be a DNS label"},
		"a machine's name of 63":       {long, "vmDiskImageRef: {name: a}", ""},
		"a machine's name of 64":       {long + "a", "vmDiskImageRef: {name: a}", badVMName},
		"a machine's name with a dot":  {"web.example", "vmDiskImageRef: {name: a}", badVMName},
		"a machine's name with dashes": {"a-b-1", "vmDiskImageRef: {name: a}", ""},
	}
	g := gateOf(t, "virtualmachines")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			complaints := strings.Join(g.complaints(t, machineOf(t, c.name, c.spec), nil), "\n")
			if c.want == "" {
				assert.Empty(t, complaints)
			} else {
				assert.Contains(t, complaints, c.want)
			}
		})
	}
}

func TestChangesOfAMachine(t *testing.T) {
	const ref, template = "vmDiskImageRef: {name: a}", ", vmDiskImageTemplate: {" + http + "}"
	cases := map[string]struct{ old, spec, want string }{
		"nothing changes":              {ref, ref, ""},
		"the image changes":            {ref, "vmDiskImageRef: {name: b}", fixedRef},
		"the namespace is given later": {ref, "vmDiskImageRef: {name: a, namespace: farm}", fixedRef},
		"the namespace is taken away":  {"vmDiskImageRef: {name: a, namespace: farm}", ref, fixedRef},
		"a template comes":             {ref, ref + template, ""},
		"a template goes":              {ref + template, ref, ""},
		"a template's url changes":     {ref + template, ref + ", vmDiskImageTemplate: {url: https://b.example/x, sourceType: http, diskSize: 1Gi}", ""},
		"a template's name changes":    {ref + template, ref + ", vmDiskImageTemplate: {name: b, " + http + "}", fixedName},
		"resources change":             {ref + ", resources: {cpu: 1}", ref + ", resources: {cpu: 2}", ""},
		"users change":                 {ref + ", users: [{name: a}]", ref + ", users: [{name: b}]", ""},
		"interfaces change":            {ref + ", interfaces: [{network: a}]", ref + ", interfaces: [{network: b}]", ""},
		"the run strategy changes":     {ref, ref + ", runStrategy: Halted", ""},
		"a change to what is bad":      {ref, ref + ", resources: {memory: 0}", badMemory},
	}
	g := gateOf(t, "virtualmachines")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			complaints := strings.Join(g.complaints(t, machineOf(t, "a", c.spec), machineOf(t, "a", c.old)), "\n")
			if c.want == "" {
				assert.Empty(t, complaints)
			} else {
				assert.Contains(t, complaints, c.want)
			}
		})
	}
}

// All addresses of a network but its first and its last are a machine's, whatever the length of its prefix.
func TestTheFirstAndTheLastAddressOfANetworkAreNoMachines(t *testing.T) {
	g := gateOf(t, "virtualmachines")
	rapid.Check(t, func(rt *rapid.T) {
		bits := rapid.IntRange(1, 32).Draw(rt, "bits")
		hosts := uint32(1<<(32-bits) - 1)
		host := rapid.OneOf(rapid.Just(uint32(0)), rapid.Just(hosts), rapid.Just(hosts/2), rapid.Uint32Range(0, hosts)).Draw(rt, "host")
		address := rapid.Uint32Range(11<<24, 100<<24).Draw(rt, "network")&^hosts | host
		raw := binary.BigEndian.AppendUint32(nil, address)
		if raw[0] == 0 || raw[0] == 127 || raw[0] >= 224 {
			return
		}
		var want string
		if hosts > 1 && host == 0 {
			want = itself
		} else if hosts > 1 && host == hosts {
			want = broadcast
		}
		text := fmt.Sprintf("%d.%d.%d.%d/%d", raw[0], raw[1], raw[2], raw[3], bits)
		complaints := strings.Join(g.complaints(t, machine(t, nic("ipAddress: "+text)), nil), "\n")
		if want == "" {
			assert.Empty(t, complaints, text)
		} else {
			assert.Contains(t, complaints, want, text)
		}
	})
}

// A template is judged by the image's own rules.
func TestATemplateIsAcceptedAndRejectedAsAnImageIs(t *testing.T) {
	g := gateOf(t, "virtualmachines")
	for name, c := range specs {
		t.Run(name, func(t *testing.T) {
			complaints := strings.Join(g.complaints(t, machine(t, "vmDiskImageTemplate: {"+c.spec+"}"), nil), "\n")
			if c.want == "" {
				assert.Empty(t, complaints)
				return
			}
			assert.Contains(t, complaints, strings.Replace(c.want, "spec.", "spec.vmDiskImageTemplate.", 1))
		})
	}
}

func TestTheExampleOfAVirtualMachine(t *testing.T) {
	raw, err := os.ReadFile("testdata/virtualmachine.yaml")
	require.NoError(t, err)
	obj := object(t, string(raw))
	assert.Empty(t, gateOf(t, "virtualmachines").complaints(t, obj, nil))
	spec := obj["spec"].(map[string]any)
	assert.Equal(t, "Always", spec["runStrategy"], "defaults are set")
	assert.Equal(t, true, spec["podNetwork"])
	assert.Equal(t, "Retain", spec["vmDiskImageTemplate"].(map[string]any)["volumePolicy"], "of the template, too")
}

// With every list full and every string of its greatest length, as far as a request can hold it.
func TestTheLargestMachineIsWithinTheBudgetOfItsRules(t *testing.T) {
	var users, interfaces []string
	keys := strings.TrimSuffix(strings.Repeat(strings.Repeat("k", 2600)+", ", 32), ", ")
	for i := range 32 {
		users = append(users, fmt.Sprintf("{name: '%064d', hashed_passwd: $6$%0508d, sudo: '%01024d', groups: '%01024d', shell: /%0255d, ssh_authorized_keys: [%s]}", i, i, i, i, i, keys))
	}
	for i := range 16 {
		interfaces = append(interfaces, fmt.Sprintf("{network: %063d/%0253d, ipAddress: 'fd00:1111:2222:3333:4444:5555:6666:%x/64', macAddress: '02:00:00:00:01:%02x', "+
			"nameservers: ['fd00:1111:2222:3333:4444:5555:6666:1', 'fd00:1111:2222:3333:4444:5555:6666:2']}", i, i, 16+i, i))
	}
	spec := "users: [" + strings.Join(users, ", ") + "], interfaces: [" + strings.Join(interfaces, ", ") + "]"
	spec = strings.ReplaceAll(spec, "hashed_passwd: $6$0", "hashed_passwd: $6$0$") // a salt
	assert.Empty(t, gateOf(t, "virtualmachines").complaints(t, machine(t, spec), nil))
}

func TestVirtualMachineNamesAndColumns(t *testing.T) {
	spec := crd(t, "virtualmachines").Spec
	assert.Equal(t, []string{"otvm"}, spec.Names.ShortNames, "vm and vms are KubeVirt's")
	assert.Equal(t, []string{"ot"}, spec.Names.Categories)
	assert.Equal(t, apiextensionsv1.NamespaceScoped, spec.Scope)
	assert.NotNil(t, spec.Versions[0].Subresources.Status)
	var columns, wide []string
	for _, c := range spec.Versions[0].AdditionalPrinterColumns {
		if c.Priority == 0 {
			columns = append(columns, c.Name)
		} else {
			wide = append(wide, c.Name)
		}
	}
	assert.Equal(t, []string{"Phase", "Image", "Image-Phase", "Addresses", "Age"}, columns)
	assert.Equal(t, []string{"Message"}, wide)
}
