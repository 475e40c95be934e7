package desired

import (
	"bytes"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CloudInit is the Secret that cloud-init in the guest reads at its first start. The passwords are those of
// PasswordSecrets; an error says whose is wrong, and never quotes one.
//
// Each plain password costs some milliseconds, as hashes of passwords do.
func CloudInit(vm *v1alpha1.VirtualMachine, passwords map[v1alpha1.SecretKeySelector]string) (*corev1.Secret, error) {
	user, err := userDataOf(vm, passwords)
	if err != nil {
		return nil, err
	}
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: owned(vm, v1alpha1.VirtualMachineChild(vm)),
		Type:       corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			"userdata":    append([]byte("#cloud-config\n"), encoded(user)...),
			"networkdata": encoded(networkDataOf(vm)),
		},
	}, nil
}

// encoded writes a document as YAML. Every text is in double quotes: cloud-init's parser takes a bare yes for true, 12:34 for
// a number and = for nothing it knows, which Go's does not.
func encoded(document any) []byte {
	var node yaml.Node
	if err := node.Encode(document); err != nil {
		panic(err) // structs of texts, numbers and lists: cannot fail
	}
	quote(&node)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&node); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// quote leaves keys alone: they are ours.
func quote(node *yaml.Node) {
	for i, child := range node.Content {
		if node.Kind != yaml.MappingNode || i%2 == 1 {
			quote(child)
		}
	}
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!str" {
		node.Style = yaml.DoubleQuotedStyle
	}
}
