package drift

import (
	"bytes"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OfSecret are the fields of the Secret that are not as they shall be, by name and without a value. It needs no seal: the
// fields of the cloud-init Secret are always the same.
func OfSecret(want, live *corev1.Secret) []string {
	var paths []string
	for key, value := range want.Data {
		if !bytes.Equal(live.Data[key], value) {
			paths = append(paths, "data."+key)
		}
	}
	paths = append(paths, ofLabels("metadata.labels.", want.Labels, live.Labels)...)
	paths = append(paths, ofLabels("metadata.annotations.", want.Annotations, live.Annotations)...)
	for _, owner := range want.OwnerReferences {
		if !slices.ContainsFunc(live.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == owner.UID }) {
			paths = append(paths, "metadata.ownerReferences")
		}
	}
	slices.Sort(paths)
	return paths
}

func ofLabels(path string, want, live map[string]string) []string {
	var paths []string
	for key, value := range want {
		if there, ok := live[key]; !ok || there != value {
			paths = append(paths, path+key)
		}
	}
	return paths
}
