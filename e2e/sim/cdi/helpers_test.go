package cdi_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func dashes(s string) string { return strings.ToLower(strings.ReplaceAll(s, " ", "-")) }

func replaceNamespace(line, ns string) string {
	line = strings.ReplaceAll(line, ns, "NS")
	return strings.ReplaceAll(line, strings.TrimPrefix(web.URL(""), "http://"), "SERVER/")
}

func checksum(sum string) func(*cdiv1.DataVolume) {
	return func(dv *cdiv1.DataVolume) { dv.Spec.Source.HTTP.Checksum = sum }
}

func secret(t *testing.T, ns, name string, data map[string]string) {
	t.Helper()
	require.NoError(t, cl.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, StringData: data}))
}

func pods(t *testing.T, ns string) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	require.NoError(t, cl.List(t.Context(), &list, client.InNamespace(ns)))
	return list.Items
}

func claims(t *testing.T, ns string) []corev1.PersistentVolumeClaim {
	t.Helper()
	var list corev1.PersistentVolumeClaimList
	require.NoError(t, cl.List(t.Context(), &list, client.InNamespace(ns)))
	return list.Items
}

// owns tells whether a pod belongs to a DataVolume, through the prime claim and the claim.
func owns(t *testing.T, dv *cdiv1.DataVolume, pod *corev1.Pod) bool {
	t.Helper()
	for _, claim := range claims(t, dv.Namespace) {
		if claim.Name == dv.Name {
			return pod.Name == "importer-prime-"+string(claim.UID)
		}
	}
	return false
}
