package drift

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Sealed is a copy of the object with the hash of the names of its fields in an annotation.
func Sealed(obj *unstructured.Unstructured) *unstructured.Unstructured {
	var names []string
	leaves("", obj.Object, &names)
	slices.Sort(names)
	sum := sha256.Sum256([]byte(strings.Join(names, "\n")))
	sealed := obj.DeepCopy()
	annotations := sealed.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationAppliedFields] = hex.EncodeToString(sum[:])[:8]
	sealed.SetAnnotations(annotations)
	return sealed
}

// leaves are the paths of all values that are neither map nor list, and of empty ones that are.
func leaves(path string, value any, names *[]string) {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			leaves(path+"."+name, inner, names)
		}
		if len(v) == 0 {
			*names = append(*names, path)
		}
	case []any:
		for i, inner := range v {
			leaves(path+"["+strconv.Itoa(i)+"]", inner, names)
		}
		if len(v) == 0 {
			*names = append(*names, path)
		}
	default:
		*names = append(*names, path)
	}
}
