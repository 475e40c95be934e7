package objects

import (
	corev1 "k8s.io/api/core/v1"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// Seen is what there is of a VirtualMachine.
type Seen struct {
	VM *virtv1.VirtualMachine
	// VMI is nil when there is none.
	VMI *virtv1.VirtualMachineInstance
	// Disks are those that the template takes from DataVolumes and claims.
	Disks []Disk
	// Failure is why there is no VMI where one is to be; empty means none.
	Failure string
}

// Disk is a volume of the template.
type Disk struct {
	// Name of the claim, and of the DataVolume if the template says that it is one.
	Name         string
	IsDataVolume bool
	// DataVolume and Claim are nil when there is none.
	DataVolume *cdiv1.DataVolume
	Claim      *corev1.PersistentVolumeClaim
}

// DisksOf lists the volumes of a template, before anybody has looked for them.
func DisksOf(spec *virtv1.VirtualMachineInstanceSpec) []Disk {
	var disks []Disk
	for _, volume := range spec.Volumes {
		switch {
		case volume.DataVolume != nil:
			disks = append(disks, Disk{Name: volume.DataVolume.Name, IsDataVolume: true})
		case volume.PersistentVolumeClaim != nil:
			disks = append(disks, Disk{Name: volume.PersistentVolumeClaim.ClaimName})
		}
	}
	return disks
}

// Secrets are the names of those that cloud-init's disk is made of.
func Secrets(spec *virtv1.VirtualMachineInstanceSpec) []string {
	var names []string
	for _, volume := range spec.Volumes {
		if source := volume.CloudInitNoCloud; source != nil {
			for _, ref := range []*corev1.LocalObjectReference{source.UserDataSecretRef, source.NetworkDataSecretRef} {
				if ref != nil {
					names = append(names, ref.Name)
				}
			}
		}
	}
	return names
}

// awaitsConsumer is true of a DataVolume that is cloned when the launcher pod is there.
func (d Disk) awaitsConsumer() bool {
	return d.DataVolume != nil && (d.DataVolume.Status.Phase == cdiv1.WaitForFirstConsumer || d.DataVolume.Status.Phase == cdiv1.PendingPopulation)
}

// Missing is true when there is nothing that a pod could refer to.
func (d Disk) Missing() bool { return d.Claim == nil }

// Ready is true when the launcher pod may use the disk.
func (d Disk) Ready() bool {
	if d.Claim == nil {
		return false
	}
	return d.DataVolume == nil || d.DataVolume.Status.Phase == cdiv1.Succeeded
}

// Startable is true when the launcher pod is made, also as the first consumer.
func (d Disk) Startable() bool { return d.Ready() || d.Claim != nil && d.awaitsConsumer() }

func (d Disk) condition(kind cdiv1.DataVolumeConditionType) cdiv1.DataVolumeCondition {
	if d.DataVolume != nil {
		for _, c := range d.DataVolume.Status.Conditions {
			if c.Type == kind {
				return c
			}
		}
	}
	return cdiv1.DataVolumeCondition{}
}

// failing is true of a DataVolume whose importer or populator has an error right now.
func (d Disk) failing() bool {
	running := d.condition(cdiv1.DataVolumeRunning)
	failed := running.Status == corev1.ConditionFalse && (running.Reason == "Error" || running.Reason == "ImagePullFailed")
	return failed || d.DataVolume != nil && d.DataVolume.Status.Phase == cdiv1.Failed
}

// provisioning is true of a DataVolume that is being filled.
func (d Disk) provisioning() bool {
	if d.DataVolume == nil || d.awaitsConsumer() {
		return false
	}
	return d.condition(cdiv1.DataVolumeReady).Status != corev1.ConditionTrue
}

// unbound is true of a claim without a volume; the one of a DataVolume that has just succeeded has it in a moment.
func (d Disk) unbound() bool {
	return d.Claim != nil && d.Claim.Status.Phase != corev1.ClaimBound && (d.DataVolume == nil || d.DataVolume.Status.Phase != cdiv1.Succeeded)
}
