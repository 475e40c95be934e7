package plan

import (
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// relabel gives children the label back that somebody took from them: the caches choose by it what they show.
func relabel(s Snapshot, d Decision) Decision {
	if s.DataVolume != nil && mislabelled(s, s.DataVolume) {
		d.Actions = append(d.Actions, LabelDataVolume)
	}
	if s.VolumeSnapshot != nil && mislabelled(s, s.VolumeSnapshot) {
		d.Actions = append(d.Actions, LabelSnapshot)
	}
	return d
}

func mislabelled(s Snapshot, child metav1.Object) bool {
	return owned(s, child) && child.GetDeletionTimestamp() == nil && child.GetLabels()[v1alpha1.LabelImage] != string(s.Image.UID)
}
