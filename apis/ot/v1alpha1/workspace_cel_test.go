package v1alpha1_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	oneImage      = "give either VMDiskImageName (an image of the operator's image namespace) or vmDiskImageRef, and not both"
	badImageName  = "VMDiskImageName must be the name of a VMDiskImage"
	sameName      = "a virtual machine and a container have the same name"
	badContainer  = "name of a container must be a DNS label that begins with a letter"
	badImage      = "image must be the name of a container image"
	badPortName   = "name of a port must be at most 15 lower-case letters, digits and single '-'"
	badEnv        = "name of an environment variable must be letters, digits, '_', '-' and '.'"
	oneValue      = "give either value or valueFrom, and not both"
	oneSource     = "valueFrom takes either secretKeyRef or configMapKeyRef"
	badRequest    = "must not be more than limits."
	badStorage    = "ephemeral-storage must be more than 0 and at most 16Ti"
	onePeer       = "give either cidr or namespace"
	badCIDR       = "cidr must be a network and the length of its prefix"
	badExcept     = "except must be networks and the lengths of their prefixes"
	exceptOutside = "except must be inside of cidr, and smaller"
	exceptAlone   = "except needs cidr"
	metadataCIDR  = "cidr is the address that clouds serve credentials at"
	badRange      = "endPort must not be less than port"
	notIsolated   = "allowFrom, ingress and egress have no meaning with isolate: false"
	badFriend     = "workspace must be the name of a Workspace"
	badTarget     = "targetNamespace must be a DNS label"
	fixedTarget   = "targetNamespace is immutable: create another Workspace instead"
	badWSName     = "metadata.name must be a DNS label of at most 63 characters"
)

func container(fields string) string { return "containers: [{name: a, image: b, " + fields + "}]" }

func egress(peer string) string { return "network: {egress: [{to: [{" + peer + "}]}]}" }

// Each entry is a spec in one line of YAML, and what the API server says against it; nothing where it is accepted.
var workspaces = map[string]struct{ spec, want string }{
	"nothing": {"", ""},
	"all fields": {"targetNamespace: labs, provisioningTimeout: 1h30m, " +
		"virtualMachines: [{name: vm, spec: {vmDiskImageRef: {name: a.b, namespace: farm}, vmDiskImageTemplate: {" + http + "}, resources: {cpu: '2'}}}], " +
		"containers: [{name: web, image: 'quay.io:443/a/b@sha256:00', ports: [{name: http, containerPort: 80}, {containerPort: 80, protocol: UDP}], " +
		"env: [{name: A, value: b}, {name: B, valueFrom: {secretKeyRef: {name: a, key: b}}}, {name: c.d-e, valueFrom: {configMapKeyRef: {name: a, key: b}}}], " +
		"command: [sh], args: [-c, 'echo $(A)'], replicas: 0, imagePullSecrets: [{name: a}], " +
		"resources: {requests: {cpu: 100m, memory: 64Mi, ephemeral-storage: 1Gi}, limits: {cpu: '1', memory: 64Mi, ephemeral-storage: 1.5Gi}}}], " +
		"network: {isolate: true, allowDNS: false, allowFrom: [{workspace: b}], ingress: [{from: [{cidr: 192.0.2.0/24, except: [192.0.2.128/25]}], " +
		"ports: [{port: 80}, {port: 1000, endPort: 1000, protocol: UDP}]}], egress: [{to: [{namespace: labs}, {cidr: 'fd00::/8'}]}]}", ""},

	"a virtual machine without a name":  {"virtualMachines: [{spec: {VMDiskImageName: a}}]", "spec.virtualMachines[0].name: Required"},
	"a virtual machine without a spec":  {"virtualMachines: [{name: a}]", "spec.virtualMachines[0].spec: Required"},
	"a virtual machine in capitals":     {"virtualMachines: [{name: A, spec: {VMDiskImageName: a}}]", badName},
	"a virtual machine twice":           {"virtualMachines: [{name: a, spec: {VMDiskImageName: a}}, {name: a, spec: {VMDiskImageName: b}}]", "spec.virtualMachines[1]: Duplicate value"},
	"17 virtual machines":               {"virtualMachines: [" + many(17, "{name: v%d, spec: {VMDiskImageName: a}}") + "]", "spec.virtualMachines: Too many"},
	"no image":                          {"virtualMachines: [{name: a, spec: {}}]", oneImage},
	"an image twice":                    {"virtualMachines: [{name: a, spec: {VMDiskImageName: a, vmDiskImageRef: {name: a}}}]", oneImage},
	"an image in the image namespace":   {"virtualMachines: [{name: a, spec: {vmDiskImageRef: {name: a}}}]", ""},
	"an image's name with a slash":      {"virtualMachines: [{name: a, spec: {VMDiskImageName: farm/a}}]", badImageName},
	"an image's name that is empty":     {"virtualMachines: [{name: a, spec: {VMDiskImageName: ''}}]", "spec.virtualMachines[0].spec.VMDiskImageName"},
	"another spelling of the image":     {"virtualMachines: [{name: a, spec: {vmDiskImageName: a}}]", oneImage},
	"a reference without a name":        {"virtualMachines: [{name: a, spec: {vmDiskImageRef: {namespace: farm}}}]", "spec.virtualMachines[0].spec.vmDiskImageRef.name: Required"},
	"a member of both kinds":            {"virtualMachines: [{name: a, spec: {VMDiskImageName: a}}], containers: [{name: a, image: b}]", sameName},
	"members of both kinds":             {"virtualMachines: [{name: a, spec: {VMDiskImageName: a}}], containers: [{name: b, image: b}]", ""},
	"cores of a machine as a number":    {"virtualMachines: [{name: a, spec: {VMDiskImageName: a, resources: {cpu: 2}}}]", "spec.virtualMachines[0].spec.resources.cpu"},
	"a public key with a line break":    {`virtualMachines: [{name: a, spec: {VMDiskImageName: a, users: [{name: a, ssh_authorized_keys: ["a\nb"]}]}}]`, "ssh_authorized_keys[0]"},
	"a provisioningTimeout of nothing":  {"provisioningTimeout: ''", badTimeout},
	"a provisioningTimeout of for ever": {"provisioningTimeout: 0s", ""},

	"a container without a name":       {"containers: [{image: b}]", "spec.containers[0].name: Required"},
	"a container without an image":     {"containers: [{name: a}]", "spec.containers[0].image: Required"},
	"a container twice":                {"containers: [{name: a, image: b}, {name: a, image: b}]", "spec.containers[1]: Duplicate value"},
	"33 containers":                    {"containers: [" + many(33, "{name: c%d, image: b}") + "]", "spec.containers: Too many"},
	"a container that begins with 1":   {"containers: [{name: 1a, image: b}]", badContainer},
	"a container with a dot":           {"containers: [{name: a.b, image: b}]", badContainer},
	"a container's name of 63":         {"containers: [{name: " + strings.Repeat("a", 63) + ", image: b}]", ""},
	"a container's name of 64":         {"containers: [{name: " + strings.Repeat("a", 64) + ", image: b}]", "spec.containers[0].name: Too long"},
	"an image with a space":            {"containers: [{name: a, image: 'b c'}]", badImage},
	"an image with a line break":       {`containers: [{name: a, image: "b\n"}]`, badImage},
	"an empty image":                   {"containers: [{name: a, image: ''}]", "spec.containers[0].image"},
	"port 0":                           {container("ports: [{containerPort: 0}]"), "spec.containers[0].ports[0].containerPort"},
	"port 65536":                       {container("ports: [{containerPort: 65536}]"), "spec.containers[0].ports[0].containerPort"},
	"a port without a number":          {container("ports: [{name: a}]"), "spec.containers[0].ports[0].containerPort: Required"},
	"a port of another protocol":       {container("ports: [{containerPort: 1, protocol: tcp}]"), `Unsupported value: "tcp"`},
	"a port twice":                     {container("ports: [{containerPort: 1}, {containerPort: 1, protocol: TCP}]"), "spec.containers[0].ports[1]: Duplicate value"},
	"a port's name twice":              {container("ports: [{name: a, containerPort: 1}, {name: a, containerPort: 2}]"), "two ports have the same name"},
	"a port's name of digits":          {container("ports: [{name: '80', containerPort: 1}]"), badPortName},
	"a port's name with two dashes":    {container("ports: [{name: a--b, containerPort: 1}]"), badPortName},
	"a port's name of 16":              {container("ports: [{name: " + strings.Repeat("a", 16) + ", containerPort: 1}]"), "spec.containers[0].ports[0].name: Too long"},
	"a variable with a space":          {container("env: [{name: 'a b', value: c}]"), badEnv},
	"a variable that begins with 1":    {container("env: [{name: 1A, value: c}]"), badEnv},
	"a variable with an equals sign":   {container("env: [{name: A=b, value: c}]"), badEnv},
	"a variable twice":                 {container("env: [{name: A, value: c}, {name: A}]"), "spec.containers[0].env[1]: Duplicate value"},
	"a variable without a value":       {container("env: [{name: A}]"), ""},
	"a variable that is a number":      {container("env: [{name: A, value: 1}]"), "spec.containers[0].env[0].value"},
	"two values":                       {container("env: [{name: A, value: b, valueFrom: {secretKeyRef: {name: a, key: b}}}]"), oneValue},
	"two sources":                      {container("env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: b}, configMapKeyRef: {name: a, key: b}}}]"), oneSource},
	"no source":                        {container("env: [{name: A, valueFrom: {}}]"), oneSource},
	"a secret of another namespace":    {container("env: [{name: A, valueFrom: {secretKeyRef: {name: b/a, key: b}}}]"), "name must be that of a Secret or ConfigMap"},
	"no key of a secret":               {container("env: [{name: A, valueFrom: {secretKeyRef: {name: a}}}]"), "secretKeyRef.key: Required"},
	"a key with a space":               {container("env: [{name: A, valueFrom: {configMapKeyRef: {name: a, key: 'b c'}}}]"), "key must be one of a Secret or ConfigMap"},
	"51 replicas":                      {container("replicas: 51"), "spec.containers[0].replicas"},
	"less than no replica":             {container("replicas: -1"), "spec.containers[0].replicas"},
	"more requested than the limit":    {container("resources: {requests: {cpu: '2'}, limits: {cpu: 1999m}}"), "requests.cpu " + badRequest + "cpu"},
	"more memory than the limit":       {container("resources: {requests: {memory: 1Gi}, limits: {memory: 1G}}"), "requests.memory " + badRequest + "memory"},
	"more storage than the limit":      {container("resources: {requests: {ephemeral-storage: 2Gi}, limits: {ephemeral-storage: 1Gi}}"), "requests.ephemeral-storage " + badRequest},
	"a limit of memory alone":          {container("resources: {limits: {memory: 1Gi}}"), ""},
	"cores with an exponent, of it":    {container("resources: {requests: {cpu: 1e3}}"), "spec.containers[0].resources.requests.cpu"},
	"no memory, of it":                 {container("resources: {requests: {memory: '0'}}"), "memory must be at least 1Mi"},
	"no storage":                       {container("resources: {limits: {ephemeral-storage: 0Gi}}"), badStorage},
	"a pull secret elsewhere":          {container("imagePullSecrets: [{name: a/b}]"), "name must be that of a Secret"},
	"a pull secret twice":              {container("imagePullSecrets: [{name: a}, {name: a}]"), "spec.containers[0].imagePullSecrets[1]: Duplicate value"},
	"an argument of 4097":              {container("args: [" + strings.Repeat("a", 4097) + "]"), "spec.containers[0].args[0]: Too long"},
	"a namespace for the children":     {"targetNamespace: labs-1", ""},
	"a namespace in capitals":          {"targetNamespace: Labs", badTarget},
	"an empty namespace for them":      {"targetNamespace: ''", "spec.targetNamespace"},
	"not isolated":                     {"network: {isolate: false}", ""},
	"not isolated, and DNS":            {"network: {isolate: false, allowDNS: true}", ""},
	"not isolated, and a rule":         {"network: {isolate: false, egress: [{to: [{namespace: a}]}]}", notIsolated},
	"not isolated, and a friend":       {"network: {isolate: false, allowFrom: [{workspace: a}]}", notIsolated},
	"a friend twice":                   {"network: {allowFrom: [{workspace: a}, {workspace: a}]}", "spec.network.allowFrom[1]: Duplicate value"},
	"a friend by a label":              {"network: {allowFrom: [{workspace: 'a=b'}]}", badFriend},
	"a rule for nobody":                {"network: {egress: [{to: []}]}", "spec.network.egress[0].to"},
	"a rule without peers":             {"network: {ingress: [{ports: [{port: 80}]}]}", "spec.network.ingress[0].from: Required"},
	"a peer that is nobody":            {egress(""), onePeer},
	"a peer that is two":               {egress("cidr: 10.0.0.0/8, namespace: a"), onePeer},
	"a peer by its labels":             {egress("podSelector: {}"), onePeer},
	"everybody":                        {egress("cidr: 0.0.0.0/0"), ""},
	"everybody else":                   {egress("cidr: '::/0', except: ['fc00::/7']"), ""},
	"one address":                      {egress("cidr: 192.0.2.7/32"), ""},
	"an address without a prefix":      {egress("cidr: 192.0.2.7"), badCIDR},
	"an address for a network":         {egress("cidr: 192.0.2.7/24"), badCIDR},
	"a host name as peer":              {egress("cidr: example.com"), badCIDR},
	"the metadata address":             {egress("cidr: 169.254.169.254/32"), metadataCIDR},
	"the metadata address of IPv6":     {egress("cidr: 'fd00:ec2::254/128'"), metadataCIDR},
	"the metadata address in capitals": {egress("cidr: 'FD00:EC2:0::254/128'"), metadataCIDR},
	"a network around it":              {egress("cidr: 169.254.0.0/16"), ""},
	"an exception to a namespace":      {egress("namespace: a, except: [10.0.0.0/8]"), exceptAlone},
	"an exception outside":             {egress("cidr: 10.0.0.0/8, except: [192.0.2.0/24]"), exceptOutside},
	"an exception as large":            {egress("cidr: 10.0.0.0/8, except: [10.0.0.0/8]"), exceptOutside},
	"an exception of another family":   {egress("cidr: 0.0.0.0/0, except: ['fd00::/8']"), exceptOutside},
	"an exception that is no network":  {egress("cidr: 10.0.0.0/8, except: [10.0.0.1]"), badExcept},
	"an exception twice":               {egress("cidr: 10.0.0.0/8, except: [10.1.0.0/16, 10.1.0.0/16]"), "except[1]: Duplicate value"},
	"a range of ports backwards":       {"network: {egress: [{to: [{namespace: a}], ports: [{port: 2, endPort: 1}]}]}", badRange},
	"a range without a beginning":      {"network: {egress: [{to: [{namespace: a}], ports: [{endPort: 1}]}]}", "ports[0].port: Required"},
	"a namespace with a slash":         {egress("namespace: a/b"), "namespace must be a DNS label"},
}

// many is n times the text, with a number in each, separated by commas.
func many(n int, text string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(text, i)
	}
	return strings.Join(all, ", ")
}

func workspace(t *testing.T, name, spec string) map[string]any {
	t.Helper()
	return object(t, "{apiVersion: pelotech.ot/v1alpha1, kind: Workspace, metadata: {name: "+name+"}, spec: {"+spec+"}}")
}

func TestWorkspacesThatAreAcceptedAndRejected(t *testing.T) {
	g := gateOf(t, "workspaces")
	for name, c := range workspaces {
		t.Run(name, func(t *testing.T) {
			obj := workspace(t, "a", c.spec)
			complaints := g.complaints(t, obj, nil)
			if c.want != "" {
				assert.Contains(t, strings.Join(complaints, "\n"), c.want)
				assert.LessOrEqual(t, len(complaints), 3, "nobody should have to guess which is meant: %v", complaints)
				return
			}
			assert.Empty(t, complaints)
			decoded := &v1alpha1.Workspace{}
			assert.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj, decoded),
				"what is stored must be readable: one that is not would blind every informer")
		})
	}
}

// A quantity that is a plain number is one that an entry refuses though a VirtualMachine accepts it: it wants quotes.
var plainNumber = regexp.MustCompile(`(cpu|memory|diskSize): -?[0-9][-0-9e.]*}`)

// A virtual machine of a workspace is judged as a VirtualMachine is, and the field is named.
func TestAMemberIsAcceptedAndRejectedAsAMachineIs(t *testing.T) {
	g := gateOf(t, "workspaces")
	for name, c := range machines {
		t.Run(name, func(t *testing.T) {
			spec := "VMDiskImageName: a"
			if c.spec != "" {
				spec += ", " + c.spec
			}
			spec = strings.Replace(spec, "cpu: 2,", "cpu: '2',", 1)
			complaints := strings.Join(g.complaints(t, workspace(t, "a", "virtualMachines: [{name: a, spec: {"+spec+"}}]"), nil), "\n")
			switch {
			case plainNumber.MatchString(spec):
				assert.Contains(t, complaints, "must be of type string")
			case c.want == "":
				assert.Empty(t, complaints)
			case c.want == badKeys:
				assert.Contains(t, complaints, "ssh_authorized_keys[0]")
			default:
				assert.Contains(t, complaints, strings.Replace(c.want, "spec.", "spec.virtualMachines[0].spec.", 1))
			}
		})
	}
}

func TestNamesOfWorkspaces(t *testing.T) {
	g := gateOf(t, "workspaces")
	for name, want := range map[string]string{
		"a": "", "data-analysis-environment-1": "", "2026-lab": "", strings.Repeat("a", 63): "",
		strings.Repeat("a", 64): badWSName, "a.b": badWSName,
	} {
		t.Run(name, func(t *testing.T) {
			complaints := strings.Join(g.complaints(t, workspace(t, name, ""), nil), "\n")
			if want == "" {
				assert.Empty(t, complaints)
			} else {
				assert.Contains(t, complaints, want)
			}
		})
	}
}

func TestChangesOfAWorkspace(t *testing.T) {
	const vm = "virtualMachines: [{name: a, spec: {VMDiskImageName: a}}]"
	cases := map[string]struct{ old, spec, want string }{
		"nothing changes":               {"targetNamespace: a", "targetNamespace: a", ""},
		"the namespace changes":         {"targetNamespace: a", "targetNamespace: b", fixedTarget},
		"a namespace comes":             {"", "targetNamespace: a", fixedTarget},
		"the namespace goes":            {"targetNamespace: a", "", fixedTarget},
		"a virtual machine comes":       {"", vm, ""},
		"a virtual machine goes":        {vm, "", ""},
		"a virtual machine is renamed":  {vm, strings.Replace(vm, "name: a", "name: b", 1), ""},
		"its image changes":             {vm, strings.Replace(vm, "Name: a", "Name: b", 1), ""},
		"its image is written in full":  {vm, "virtualMachines: [{name: a, spec: {vmDiskImageRef: {name: a}}}]", ""},
		"a container becomes a machine": {"containers: [{name: a, image: b}]", vm, ""},
		"a container's image changes":   {"containers: [{name: a, image: b}]", "containers: [{name: a, image: c}]", ""},
		"the isolation ends":            {"", "network: {isolate: false}", ""},
	}
	g := gateOf(t, "workspaces")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			complaints := strings.Join(g.complaints(t, workspace(t, "a", c.spec), workspace(t, "a", c.old)), "\n")
			if c.want == "" {
				assert.Empty(t, complaints)
			} else {
				assert.Contains(t, complaints, c.want)
			}
		})
	}
}

func TestTheExampleOfAWorkspace(t *testing.T) {
	raw, err := os.ReadFile("testdata/workspace.yaml")
	require.NoError(t, err)
	obj := object(t, string(raw))
	assert.Empty(t, gateOf(t, "workspaces").complaints(t, obj, nil))
	spec := obj["spec"].(map[string]any)
	assert.Equal(t, map[string]any{"isolate": true, "allowDNS": true}, spec["network"], "defaults are set")
	assert.Equal(t, int64(1), spec["containers"].([]any)[0].(map[string]any)["replicas"])
	assert.Equal(t, "Always", spec["virtualMachines"].([]any)[0].(map[string]any)["spec"].(map[string]any)["runStrategy"], "of the members, too")
}

// What people copy from the documents is accepted.
func TestTheExamplesOfTheDocuments(t *testing.T) {
	text, err := os.ReadFile("../../../docs/workspace.md")
	require.NoError(t, err)
	var found int
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(block[1], "kind: Workspace\n") {
			found++
			assert.Empty(t, gateOf(t, "workspaces").complaints(t, object(t, block[1]), nil))
		}
	}
	assert.Equal(t, 2, found)
}

// With every list full, as far as a request can hold it.
func TestTheLargestWorkspaceIsWithinTheBudgetOfItsRules(t *testing.T) {
	numbered := func(i int, text string) string { return strings.ReplaceAll(text, "#", fmt.Sprintf("%02d", i)) }
	var vms, containers, rules []string
	users := many(32, "{name: u%d, hashed_passwd: $6$salt$0123456789, sudo: 'ALL=(ALL) NOPASSWD:ALL', groups: sudo, shell: /bin/bash, "+
		"ssh_authorized_keys: ["+strings.TrimSuffix(strings.Repeat(strings.Repeat("k", 100)+", ", 32), ", ")+"]}")
	var nics []string
	for i := range 16 {
		nics = append(nics, numbered(i, "{network: labs/lan-#, ipAddress: 10.1.2.1#/24, macAddress: '02:00:00:00:01:#', nameservers: [10.1.2.3, 10.1.2.4]}"))
	}
	for i := range 16 {
		vms = append(vms, numbered(i, "{name: "+strings.Repeat("v", 61)+"#, spec: {vmDiskImageRef: {name: "+strings.Repeat("a", 253)+", namespace: "+strings.Repeat("b", 63)+"}, ")+
			"resources: {cpu: 500m, memory: 2Gi, diskSize: 20Gi}, vmDiskImageTemplate: {sourceType: http, diskSize: 1Gi, url: 'https://a.example/"+strings.Repeat("x", 1000)+"'}, "+
			"users: ["+users+"], interfaces: ["+strings.Join(nics, ", ")+"]}}")
	}
	env := many(64, "{name: "+strings.Repeat("E", 60)+"%d, valueFrom: {secretKeyRef: {name: "+strings.Repeat("a", 60)+", key: "+strings.Repeat("k", 60)+"}}}")
	ports := many(32, "{name: p%[1]d, containerPort: 1%02[1]d}")
	for i := range 32 {
		containers = append(containers, numbered(i, "{name: "+strings.Repeat("c", 61)+"#, image: ")+strings.Repeat("i", 512)+", ports: ["+ports+"], env: ["+env+"], "+
			"resources: {requests: {cpu: 100m, memory: 64Mi, ephemeral-storage: 1Gi}, limits: {cpu: 100m, memory: 64Mi, ephemeral-storage: 1Gi}}, imagePullSecrets: ["+many(8, "{name: s%d}")+"]}")
	}
	peers := strings.TrimSuffix(strings.Repeat("{cidr: 10.0.0.0/8, except: ["+many(16, "10.%d.0.0/16")+"]}, ", 16), ", ")
	for range 16 {
		rules = append(rules, ": ["+peers+"], ports: ["+many(16, "{port: 1%02d, endPort: 200}")+"]}")
	}
	network := "network: {allowFrom: [" + many(16, "{workspace: w%d}") + "], ingress: [{from" + strings.Join(rules, ", {from") + "], egress: [{to" + strings.Join(rules, ", {to") + "]}"
	spec := "virtualMachines: [" + strings.Join(vms, ", ") + "], containers: [" + strings.Join(containers, ", ") + "], " + network
	assert.Empty(t, gateOf(t, "workspaces").complaints(t, workspace(t, "a", spec), nil))
}

func TestWorkspaceNamesAndColumns(t *testing.T) {
	spec := crd(t, "workspaces").Spec
	assert.Equal(t, []string{"otws"}, spec.Names.ShortNames, "ws is that of others")
	assert.Equal(t, []string{"ot"}, spec.Names.Categories)
	assert.Equal(t, apiextensionsv1.ClusterScoped, spec.Scope)
	assert.NotNil(t, spec.Versions[0].Subresources.Status)
	var columns, wide []string
	for _, c := range spec.Versions[0].AdditionalPrinterColumns {
		if c.Priority == 0 {
			columns = append(columns, c.Name)
		} else {
			wide = append(wide, c.Name)
		}
	}
	assert.Equal(t, []string{"Phase", "VMs", "Containers", "Isolated", "Age"}, columns)
	assert.Equal(t, []string{"Message"}, wide)
}
