package plan

import "github.com/pelotech/open-terrain/apis/ot/v1alpha1"

// namespaceStep keeps the workspace's own namespace, or waits for the one that targetNamespace names. Nothing can be made in a
// namespace that is being deleted.
func namespaceStep(v view) step {
	name := v.Workspace.ChildNamespace()
	there := good(v1alpha1.WorkspaceNamespaceReady, "The namespace %s is there", name)
	terminates := v.Namespace != nil && v.Namespace.DeletionTimestamp != nil
	switch {
	case v.Workspace.OwnsNamespace():
		return ownNamespace(v, terminates, there)
	case v.Namespace == nil:
		return step{Verdict: bad(Waits, v1alpha1.WorkspaceNamespaceMissing, "There is no namespace %s: a targetNamespace is used, and never made", name)}
	case terminates:
		return step{Verdict: bad(Waits, v1alpha1.WorkspaceNamespaceTerminating, "The namespace %s is being deleted: nothing can be made in it", name)}
	}
	return step{Verdict: there, usable: true}
}

func ownNamespace(v view, terminates bool, there Verdict) step {
	child := Child{Namespace, v.Workspace.ChildNamespace()}
	if terminates {
		return step{Verdict: bad(Waits, v1alpha1.WorkspaceNamespaceTerminating, "The namespace %s is being deleted, and is made when it is gone", child.Name)}
	}
	st := v.keep(child, func() Verdict { return there })
	switch {
	case st.Reason == v1alpha1.WorkspaceNameTaken:
		return step{Verdict: bad(Final, v1alpha1.WorkspaceNamespaceTaken,
			"The namespace %s does not belong to this workspace: delete it, name it as targetNamespace, or give the workspace another name", child.Name)}
	case len(st.actions) > 0 && v.Namespace != nil: // its labels; it can be used meanwhile
		st.Verdict = there
	}
	return st
}

func namespaceStatus(s Snapshot) *v1alpha1.WorkspaceNamespaceStatus {
	st := &v1alpha1.WorkspaceNamespaceStatus{Name: s.Workspace.ChildNamespace(), Owned: s.Workspace.OwnsNamespace()}
	if s.Namespace != nil && (!st.Owned || owned(s, s.Namespace)) {
		st.UID = s.Namespace.UID
	}
	return st
}
