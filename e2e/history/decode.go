package history

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const prefix = "/registry/"

// keyOf reads a key of etcd: <resource>/[<namespace>/]<name> for built-in kinds, with the group before it for kinds
// of CustomResourceDefinitions. A group, and no built-in resource, has a dot in its name.
func keyOf(path string) Key {
	parts := strings.Split(strings.TrimPrefix(path, prefix), "/")
	var key Key
	if strings.Contains(parts[0], ".") && len(parts) > 2 {
		key.Group, parts = parts[0], parts[1:]
	}
	// The two oldest resources of Kubernetes have keys of their own.
	switch {
	case parts[0] == "services" && len(parts) > 2 && parts[1] == "endpoints":
		parts = append([]string{"endpoints"}, parts[2:]...)
	case parts[0] == "services" && len(parts) > 2 && parts[1] == "specs":
		parts = append([]string{"services"}, parts[2:]...)
	case parts[0] == "minions":
		parts[0] = "nodes"
	}
	key.Resource, key.Name = parts[0], parts[len(parts)-1]
	if len(parts) > 2 {
		key.Namespace = parts[1]
	}
	return key
}

// decoder turns what the API server stores into objects.
type decoder struct {
	known runtime.Decoder
}

func newDecoder(scheme *runtime.Scheme) decoder {
	return decoder{known: serializer.NewCodecFactory(scheme).UniversalDeserializer()}
}

// decode returns nil and no error for a built-in kind that the scheme does not know.
func (d decoder) decode(value []byte, revision int64) (client.Object, string, error) {
	decoded, kind, err := d.known.Decode(value, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		if !bytes.HasPrefix(value, []byte("{")) {
			return nil, "", nil
		}
		decoded, kind, err = unstructured.UnstructuredJSONScheme.Decode(value, nil, nil)
	}
	if err != nil {
		return nil, "", fmt.Errorf("decode: %w", err)
	}
	object, ok := decoded.(client.Object)
	if !ok {
		return nil, kind.Kind, nil
	}
	// The API server adds it when it reads: it is not stored.
	object.SetResourceVersion(strconv.FormatInt(revision, 10))
	return object, kind.Kind, nil
}
