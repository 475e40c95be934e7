package vmscenario

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/chart"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// passwordFromSecret waits for the right to read the Secret, which status says how to give, and for the Secret. Then neither password stands anywhere but in Secrets, and the plain one in the spec
// that has it.
func passwordFromSecret(t *testing.T, w *world) {
	const canary, plain = "c4nary-of-the-secret", "c4nary-of-the-spec"
	namespace := w.namespace(t)
	vm := w.create(t, machine(namespace, "web", w.synced(t, namespace, "golden"), func(vm *v1alpha1.VirtualMachine) {
		vm.Spec.Users = []v1alpha1.VirtualMachineUser{
			{Name: "admin", PasswordSecretRef: &v1alpha1.SecretKeySelector{Name: "passwords", Key: "admin"}},
			{Name: "demo", PlainTextPasswd: plain},
		}
	}))
	w.waits(t, vm, v1alpha1.ReasonNotAuthorized, "kubectl create rolebinding vm-operator-passwords -n "+namespace+
		" --clusterrole=vm-operator-password-reader --serviceaccount=vm-operator:vm-operator")
	w.letsReadPasswords(t, namespace)
	w.waits(t, vm, v1alpha1.ReasonSecretMissing, "passwords")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "passwords"}, StringData: map[string]string{"other": "x"}}
	require.NoError(t, w.client.Create(t.Context(), secret))
	w.waits(t, vm, v1alpha1.ReasonSecretMissing, "passwords")
	secret.StringData = map[string]string{"admin": canary}
	require.NoError(t, w.client.Update(t.Context(), secret))
	w.runs(t, vm)

	made := &corev1.Secret{}
	require.NoError(t, w.client.Get(t.Context(), childOf(vm), made))
	assert.Contains(t, string(made.Data["userdata"]), "$6$", "the guest gets a hash")
	for _, password := range []string{canary, plain} {
		assert.NotContains(t, string(made.Data["userdata"]), password)
	}
	w.nowhere(t, namespace, canary, made)
	w.nowhere(t, namespace, plain, made)
}

// letsReadPasswords does what status asks for.
func (w *world) letsReadPasswords(t *testing.T, namespace string) {
	t.Helper()
	require.NoError(t, w.client.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "vm-operator-passwords"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "vm-operator-password-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: chart.VM.Namespace, Name: chart.VM.Name}},
	}))
}

// secretDeleted: the Secret of a guest that runs is missed by nobody. It is there again when the guest cannot start without it,
// and before it is made to start.
func secretDeleted(t *testing.T, w *world) {
	namespace := w.namespace(t)
	vm := w.create(t, machine(namespace, "web", w.synced(t, namespace, "golden")))
	w.runs(t, vm)
	made, guest := &corev1.Secret{}, w.guestOf(t, vm)
	require.NoError(t, w.client.Get(t.Context(), childOf(vm), made))
	assert.Regexp(t, "^[0-9a-f]{64}$", guest.Annotations[v1alpha1.AnnotationCloudInit])
	require.NoError(t, w.client.Delete(t.Context(), made))
	first := w.instanceOf(t, vm)
	require.NoError(t, w.client.Delete(t.Context(), first))
	require.Eventually(t, func() bool {
		again := &corev1.Secret{}
		return w.client.Get(t.Context(), childOf(vm), again) == nil && again.UID != made.UID
	}, w.patience, w.poll)
	w.runs(t, vm)
	assert.NotEqual(t, first.UID, w.instanceOf(t, vm).UID)

	w.change(t, vm, strategy(v1alpha1.RunHalted))
	w.becomes(t, vm, v1alpha1.VirtualMachineReady, v1alpha1.ReasonNotStarted)
	require.NoError(t, w.client.Delete(t.Context(), made))
	w.change(t, vm, strategy(v1alpha1.RunAlways))
	w.runs(t, vm)
}

// secretOfSomebodyElse is a Secret under the name of ours with other values: it is left as it is.
func secretOfSomebodyElse(t *testing.T, w *world) {
	namespace := w.namespace(t)
	vm := w.create(t, machine(namespace, "web", image(namespace, "golden")))
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: childOf(vm).Name}, StringData: map[string]string{"userdata": "mine"}}
	require.NoError(t, w.client.Create(t.Context(), foreign))
	w.synced(t, namespace, "golden")
	w.becomes(t, vm, v1alpha1.VirtualMachineFailed, v1alpha1.ReasonNameTaken)
	require.NoError(t, w.client.Get(t.Context(), childOf(vm), foreign))
	assert.Equal(t, "mine", string(foreign.Data["userdata"]))
	assert.Empty(t, foreign.OwnerReferences)
	require.NoError(t, w.client.Delete(t.Context(), foreign))
	w.runs(t, vm)
}

// nowhere looks for a password, and for the hashes that the guest gets, in every object of the namespace and in the logs.
func (w *world) nowhere(t *testing.T, namespace, password string, made *corev1.Secret) {
	t.Helper()
	words := []string{password, base64.StdEncoding.EncodeToString([]byte(password))}
	for line := range strings.Lines(string(made.Data["userdata"])) {
		if _, hash, has := strings.Cut(line, "$6$"); has {
			words = append(words, strings.Trim(hash, "\"' \n"))
		}
	}
	for _, name := range []string{chart.DiskSync.Name, chart.VM.Name} {
		log, err := os.ReadFile(filepath.Join(w.logs, name+".log"))
		require.NoError(t, err)
		for _, word := range words {
			assert.NotContains(t, string(log), word, "the log of %s", name)
		}
	}
	looked := 0
	for _, o := range w.everything(t, namespace) {
		if o.GetKind() == "Secret" {
			continue
		}
		if o.GetKind() == "VirtualMachine" && o.GroupVersionKind().Group == v1alpha1.SchemeGroupVersion.Group {
			unstructured.RemoveNestedField(o.Object, "spec") // where its author wrote it
		}
		text, err := json.Marshal(o)
		require.NoError(t, err)
		for _, word := range words {
			assert.NotContains(t, string(text), word, "%s %s", o.GetKind(), o.GetName())
		}
		looked++
	}
	assert.Greater(t, looked, 6)
}

// everything in a namespace, of every kind that can be listed.
func (w *world) everything(t *testing.T, namespace string) []unstructured.Unstructured {
	t.Helper()
	discover, err := discovery.NewDiscoveryClientForConfig(w.cluster.Config)
	require.NoError(t, err)
	groups, err := discover.ServerPreferredNamespacedResources()
	require.NoError(t, err)
	var all []unstructured.Unstructured
	for _, group := range groups {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		require.NoError(t, err)
		for _, kind := range group.APIResources {
			if !strings.Contains(fmt.Sprint(kind.Verbs), "list") {
				continue
			}
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(version.WithKind(kind.Kind + "List"))
			if w.client.List(t.Context(), list, client.InNamespace(namespace)) == nil {
				all = append(all, list.Items...)
			}
		}
	}
	return all
}
