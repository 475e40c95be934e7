package ledger

import (
	"slices"

	"github.com/pelotech/open-terrain/e2e/history"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WrittenByVMOperator says that the event is a write of the vm-operator, other than that of its leader's Lease: a change of what
// it manages, as the API server keeps it.
func WrittenByVMOperator(e history.Event) bool {
	if _, lease := e.Object.(*coordinationv1.Lease); lease || e.Deleted || e.Object == nil {
		return false
	}
	return !equality.Semantic.DeepEqual(managed(e.Object), managed(e.Prev))
}

func managed(o client.Object) []metav1.ManagedFieldsEntry {
	if o == nil {
		return nil
	}
	var ours []metav1.ManagedFieldsEntry
	for _, entry := range o.GetManagedFields() {
		if slices.Contains([]string{"vm-operator", "vm-operator-references"}, entry.Manager) {
			ours = append(ours, entry)
		}
	}
	return ours
}
