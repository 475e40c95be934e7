package plan

import (
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// tidy deletes children of other revisions. A volume that is not complete goes at once, whatever the image is about: it may
// be downloading without a slot. The others go when the image has succeeded, so that nobody needs them, and when nothing
// is being cloned from them.
func tidy(s Snapshot, d Decision) Decision {
	done := StageOf(&s.Image.Status) == Succeeded && d.Report.Stage == Succeeded
	for _, other := range s.Others {
		dv, isVolume := other.Object.(*cdiv1.DataVolume)
		switch {
		case other.Object.GetDeletionTimestamp() != nil:
		case isVolume && dv.Status.Phase != cdiv1.Succeeded:
			d.Obsolete = append(d.Obsolete, other.Object)
		case !done:
		case other.Clone != "":
			d.Report.Held = other.Clone
		default:
			d.Obsolete = append(d.Obsolete, other.Object)
		}
	}
	return d
}

// has says that a child of that name is among them.
func has(children []Child, name string) bool {
	for _, child := range children {
		if child.Object.GetName() == name {
			return true
		}
	}
	return false
}
