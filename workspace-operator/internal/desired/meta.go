package desired

import (
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
)

const (
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "workspace-operator"
	// labelNamespace is the label that the API server gives to each namespace: its name.
	labelNamespace = "kubernetes.io/metadata.name"
)

// owner makes the Workspace the controller of a child.
func owner(w *v1alpha1.Workspace) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(v1alpha1.SchemeGroupVersion.String()).
		WithKind("Workspace").
		WithName(w.Name).
		WithUID(w.UID).
		WithController(true).
		WithBlockOwnerDeletion(true)
}

// labels are those of every child.
func labels(w *v1alpha1.Workspace) map[string]string {
	return map[string]string{labelManagedBy: managedBy, v1alpha1.LabelWorkspaceUID: string(w.UID)}
}

// entryLabels are those of an entry's children and pods.
func entryLabels(w *v1alpha1.Workspace, entry string) map[string]string {
	all := labels(w)
	all[v1alpha1.LabelWorkspaceEntry] = v1alpha1.WorkspaceEntry(w, entry)
	return all
}

// selects are the labels by which the pods of an entry are known. Neither changes as long as the Workspace lives.
func selects(w *v1alpha1.Workspace, entry string) map[string]string {
	return map[string]string{
		v1alpha1.LabelWorkspaceUID:   string(w.UID),
		v1alpha1.LabelWorkspaceEntry: v1alpha1.WorkspaceEntry(w, entry),
	}
}
