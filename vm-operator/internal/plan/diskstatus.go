package plan

import (
	"slices"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/desired"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// diskStatus follows the disk. The UID is there once the disk is ready: its going is a loss from then on.
func diskStatus(s Snapshot, disk step, now time.Time) *v1alpha1.VirtualMachineDiskStatus {
	former := s.VM.Status.Disk
	creating := slices.Contains(disk.actions, CreateDisk)
	st := &v1alpha1.VirtualMachineDiskStatus{DataVolume: v1alpha1.VirtualMachineChild(s.VM), LostAt: lostAt(former, disk, now)}
	switch {
	case s.Disk == nil && !creating && !disk.lost:
		return former
	case s.Disk == nil && !creating:
		return st
	case creating:
		st.Revision = s.Image.Status.Artifact.Revision
	default:
		st.Revision = s.Disk.Annotations[v1alpha1.AnnotationImageRevision]
		if disk.Good || !disk.lost && former != nil && former.UID == s.Disk.UID {
			st.UID, st.ClaimUID = s.Disk.UID, claimUID(s, former)
		}
	}
	st.Size = diskSize(s, st)
	return st
}

// claimUID is that of the claim; of one that is not seen for a moment, what is known.
func claimUID(s Snapshot, former *v1alpha1.VirtualMachineDiskStatus) types.UID {
	switch {
	case s.Claim != nil:
		return s.Claim.UID
	case former != nil && former.UID == s.Disk.UID:
		return former.ClaimUID
	}
	return ""
}

func lostAt(former *v1alpha1.VirtualMachineDiskStatus, disk step, now time.Time) *metav1.Time {
	switch {
	case disk.lost:
		return &metav1.Time{Time: now}
	case former == nil:
		return nil
	}
	return former.LostAt
}

// diskSize stays what it was once it is known: the image may be another one later.
func diskSize(s Snapshot, st *v1alpha1.VirtualMachineDiskStatus) *resource.Quantity {
	former := s.VM.Status.Disk
	if former != nil && former.Size != nil && former.Revision == st.Revision && former.LostAt.Equal(st.LostAt) {
		return former.Size
	}
	if s.Disk != nil {
		if size, ok := requested(s.Disk); ok {
			return &size
		}
	}
	if s.Image == nil || s.Image.Status.Artifact == nil || s.Image.Status.Artifact.Revision != st.Revision {
		return nil
	}
	if size := desired.DiskSize(s.VM, s.Image.Status.Artifact); size != nil {
		return size
	}
	return s.Image.Status.Artifact.RestoreSize
}
