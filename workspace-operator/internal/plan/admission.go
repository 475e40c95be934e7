package plan

import "github.com/pelotech/open-terrain/apis/ot/v1alpha1"

// NeedsSlot says that the workspace waits for a slot, or may not give the one up that it holds: it has not been Ready or Failed
// since it was admitted. One that is being deleted needs none: nothing is made for it any more.
func NeedsSlot(ws *v1alpha1.Workspace) bool {
	return ws.DeletionTimestamp == nil && ws.Status.ProvisionedAt == nil
}

// admitted goes by what status says, whatever has become of the slot since: children may be there.
func admitted(ws *v1alpha1.Workspace) bool { return ws.Status.AdmittedAt != nil }
