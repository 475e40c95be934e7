package desired_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/desired"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files anew")

const uid = "0F6C2B1E-1111-4222-8333-ABCDEF012345"

type mod = func(*v1alpha1.VirtualMachineSpec)

// guest is a virtual machine with a UID such as the API server gives.
func guest(mods ...mod) *v1alpha1.VirtualMachine {
	vm := apitest.VirtualMachine("web", apitest.MachineUID(uid))
	for _, mod := range mods {
		mod(&vm.Spec)
	}
	return vm
}

// proposal is the example of the VirtualMachine proposal.
func proposal(t *testing.T) *v1alpha1.VirtualMachine {
	t.Helper()
	raw, err := os.ReadFile("testdata/proposal.yaml")
	require.NoError(t, err)
	vm := &v1alpha1.VirtualMachine{}
	require.NoError(t, yaml.UnmarshalStrict(raw, vm))
	vm.Namespace, vm.UID = "lab", uid
	return vm
}

func users(all ...v1alpha1.VirtualMachineUser) mod {
	return func(s *v1alpha1.VirtualMachineSpec) { s.Users = all }
}

func on(all ...v1alpha1.VirtualMachineInterface) mod {
	return func(s *v1alpha1.VirtualMachineSpec) { s.Interfaces = all }
}

func withoutPodNetwork(s *v1alpha1.VirtualMachineSpec) { s.PodNetwork = new(false) }

func everything(s *v1alpha1.VirtualMachineSpec) {
	s.BaseVM, s.BaseVMVersion, s.Version, s.Name = "ubuntu_2004", "2.1.2", "2.1.0", "demo-vm"
	s.RunStrategy = v1alpha1.RunRerunOnFailure
	cpu, memory, disk := resource.MustParse("1500m"), resource.MustParse("1.5Gi"), resource.MustParse("48Gi")
	s.Resources = v1alpha1.VirtualMachineResources{CPU: &cpu, Memory: &memory, DiskSize: &disk}
	s.Users = []v1alpha1.VirtualMachineUser{
		{Name: "root", HashedPasswd: "$6$abc$def", LockPasswd: new(true)},
		{Name: "demo user", PasswordSecretRef: &v1alpha1.SecretKeySelector{Name: "passwords"}, Groups: "sudo, docker ,", Shell: "/bin/zsh"},
		{Name: "ci", SSHAuthorizedKeys: []string{"ssh-ed25519 AAAA ci@lab", "ssh-rsa BBBB \"=\""}, Sudo: "ALL=(ALL) NOPASSWD:ALL"},
	}
	s.Interfaces = []v1alpha1.VirtualMachineInterface{
		{Network: "infra/edge.net", IPAddress: "10.10.0.161/24", Gateway: "10.10.0.1", Nameservers: []string{"10.10.0.2", "10.10.0.3"}},
		{Network: "pod", MACAddress: "52:54:00:AA:BB:CC"},
		{Network: "six", IPAddress: "fd00::5/64", Nameservers: []string{"fd00::2"}},
	}
	s.VMDiskImageTemplate = apitest.Image("template").Spec.DeepCopy()
}

var secrets = map[v1alpha1.SecretKeySelector]string{{Name: "passwords", Key: "password"}: "Hello world!\n"}

// imageOf is the image that the virtual machine uses, with an artifact.
func imageOf(vm *v1alpha1.VirtualMachine) *v1alpha1.VMDiskImage {
	key := vm.ImageKey()
	image := apitest.Image(key.Name, apitest.In(key.Namespace))
	restore := resource.MustParse("25Gi")
	image.Status.Artifact = &v1alpha1.Artifact{Revision: "12345678", Snapshot: key.Name + "-12345678", RestoreSize: &restore}
	return image
}

func TestDocuments(t *testing.T) {
	six := v1alpha1.VirtualMachineInterface{Network: "six", IPAddress: "fd00::5/64", Gateway: "fd00::1"}
	for name, vm := range map[string]*v1alpha1.VirtualMachine{
		"proposal":     proposal(t),
		"bare":         guest(),
		"everything":   guest(everything),
		"no-network":   guest(withoutPodNetwork),
		"gateway":      guest(on(v1alpha1.VirtualMachineInterface{Network: "edge", IPAddress: "10.10.0.161/24", Gateway: "10.10.0.1"})),
		"ipv6-gateway": guest(on(six)),
	} {
		t.Run(name, func(t *testing.T) {
			before := vm.DeepCopy()
			for kind, document := range documents(t, vm) {
				golden(t, name+"-"+kind, document)
			}
			assert.Equal(t, documents(t, vm), documents(t, vm), "the same again: a second apply changes nothing")
			assert.Equal(t, before, vm, "the virtual machine is only read")
		})
	}
}

// documents are all that is made for the virtual machine, as YAML.
func documents(t *testing.T, vm *v1alpha1.VirtualMachine) map[string]string {
	t.Helper()
	secret, err := desired.CloudInit(vm, secrets)
	require.NoError(t, err)
	machine, err := desired.Machine(vm, "")
	require.NoError(t, err)
	all := map[string]string{"userdata": string(secret.Data["userdata"]), "networkdata": string(secret.Data["networkdata"])}
	bare := secret.DeepCopy()
	bare.Data = nil
	objects := map[string]any{
		"secret": bare, "machine": machine.Object, "disk": desired.Disk(vm, imageOf(vm)),
		"status": v1alpha1.VirtualMachineStatus{Users: desired.Logins(vm), Interfaces: desired.Interfaces(vm)},
	}
	if image := desired.Image(vm); image != nil {
		objects["image"] = image
	}
	for kind, object := range objects {
		raw, err := yaml.Marshal(object)
		require.NoError(t, err)
		all[kind] = string(raw)
	}
	return all
}

// golden compares documents as values.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden.yaml")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run go test with -update")
	assert.Equal(t, value(t, string(want)), value(t, got), name)
}

func value(t *testing.T, document string) any {
	t.Helper()
	var v any
	require.NoError(t, yaml.UnmarshalStrict([]byte(document), &v))
	return v
}

func TestChildrenBelongToTheVirtualMachineByUID(t *testing.T) {
	vm := guest()
	secret, err := desired.CloudInit(vm, nil)
	require.NoError(t, err)
	machine, err := desired.Machine(vm, "")
	require.NoError(t, err)
	for name, child := range map[string]metav1.Object{
		v1alpha1.VirtualMachineChild(vm): secret, "web": machine, v1alpha1.VirtualMachineChild(vm) + "": desired.Disk(vm, imageOf(vm)),
	} {
		assert.True(t, metav1.IsControlledBy(child, vm))
		assert.Equal(t, name, child.GetName())
		assert.Equal(t, "lab", child.GetNamespace())
		assert.Equal(t, uid, child.GetLabels()[v1alpha1.LabelVirtualMachineUID], "the operator's cache finds it")
	}
}
