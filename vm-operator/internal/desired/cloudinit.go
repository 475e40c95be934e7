package desired

import (
	"bytes"
	"strings"

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
	return cloudInit(vm, func(user *v1alpha1.VirtualMachineUser) (string, error) { return hashOf(vm, user, passwords) })
}

// cloudInit is the Secret with what stands for each user's password, or is it.
func cloudInit(vm *v1alpha1.VirtualMachine, password func(*v1alpha1.VirtualMachineUser) (string, error)) (*corev1.Secret, error) {
	user, err := userDataOf(vm, password)
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

// text is a string of a document, always written in double quotes: cloud-init's parser takes a bare yes for true, 12:34 for
// a number and = for nothing it knows, which Go's does not.
type text string

// MarshalYAML says how the encoder is to write it.
func (t text) MarshalYAML() (any, error) {
	value := strings.ToValidUTF8(string(t), "\uFFFD") // what the API server holds is valid
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: value}, nil
}

func texts(all []string) []text {
	out := make([]text, 0, len(all))
	for _, s := range all {
		out = append(out, text(s))
	}
	return out
}

// encoded writes a document as YAML.
func encoded(document any) []byte {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(document); err != nil {
		panic(err) // structs of texts, numbers and lists: cannot fail
	}
	return out.Bytes()
}
