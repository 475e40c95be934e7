package controller

import (
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestWhatIsToldOfAPrunedImage(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{}
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("24Gi")}
	snapshot := &snapshotv1.VolumeSnapshot{Status: &snapshotv1.VolumeSnapshotStatus{RestoreSize: new(resource.MustParse("25Gi"))}}
	content := func(policy snapshotv1.DeletionPolicy) *snapshotv1.VolumeSnapshotContent {
		c := &snapshotv1.VolumeSnapshotContent{Spec: snapshotv1.VolumeSnapshotContentSpec{DeletionPolicy: policy}}
		c.Name = "content-1"
		return c
	}
	const kept = "; the VolumeSnapshotContent content-1 and the storage's snapshot are kept (deletionPolicy Retain)"
	cases := map[string]struct {
		s    plan.Snapshot
		want string
	}{
		"volume and snapshot": {plan.Snapshot{Claim: claim, VolumeSnapshot: snapshot, Content: content("Delete")}, "snapshot of 49Gi"},
		"the snapshot alone":  {plan.Snapshot{VolumeSnapshot: snapshot, Content: content("Delete")}, "snapshot of 25Gi"},
		"the storage keeps it": {
			plan.Snapshot{Claim: claim, VolumeSnapshot: snapshot, Content: content("Retain")}, "snapshot of 49Gi" + kept,
		},
		"a size that is not known": {plan.Snapshot{VolumeSnapshot: &snapshotv1.VolumeSnapshot{}}, "snapshot of 0"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, "Nothing has used it for its time to live: deleted, with volume and "+c.want, prunedNote(c.s, sizeOf(c.s)))
		})
	}
}
