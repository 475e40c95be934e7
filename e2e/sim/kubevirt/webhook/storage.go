package webhook

import (
	"fmt"

	virtv1 "kubevirt.io/api/core/v1"
)

const maxUserData = 2048

func checkVolumes(c *causes, spec *virtv1.VirtualMachineInstanceSpec) {
	first := map[string]int{}
	for i, volume := range spec.Volumes {
		field := fmt.Sprintf("%s.volumes[%d]", templateSpec, i)
		if before, has := first[volume.Name]; has {
			c.add(field+".name", "%s and %s.volumes[%d] must not have the same Name.", field, templateSpec, before)
		} else {
			first[volume.Name] = i
		}
		if sources(volume) != 1 {
			c.add(field, "%s must have exactly one source type set", field)
		}
		if volume.DataVolume != nil && volume.DataVolume.Name == "" {
			c.add(field+".name", "DataVolume 'name' must be set")
		}
		if volume.CloudInitNoCloud != nil {
			checkCloudInit(c, field+".cloudInitNoCloud", volume.CloudInitNoCloud)
		}
	}
}

// sources counts those of a volume that the operators could set.
func sources(v virtv1.Volume) (n int) {
	for _, is := range []bool{
		v.DataVolume != nil, v.PersistentVolumeClaim != nil, v.CloudInitNoCloud != nil, v.CloudInitConfigDrive != nil, v.ContainerDisk != nil,
		v.EmptyDisk != nil, v.Ephemeral != nil, v.Secret != nil, v.ConfigMap != nil, v.ServiceAccount != nil, v.Sysprep != nil, v.DownwardAPI != nil,
	} {
		if is {
			n++
		}
	}
	return n
}

func checkCloudInit(c *causes, field string, source *virtv1.CloudInitNoCloudSource) {
	given := 0
	for _, is := range []bool{source.UserData != "", source.UserDataBase64 != "", source.UserDataSecretRef != nil} {
		if is {
			given++
		}
	}
	if given > 1 {
		c.add(field, "%s must have only one userdatasource set.", field)
	}
	if len(source.UserData) > maxUserData {
		c.add(field+".userData", "%s userdata exceeds %d byte limit. Should use UserDataSecretRef for larger data.", field, maxUserData)
	}
}

func checkDisks(c *causes, spec *virtv1.VirtualMachineInstanceSpec) {
	volumes, orders := map[string]bool{}, map[uint]bool{}
	for _, volume := range spec.Volumes {
		volumes[volume.Name] = true
	}
	for i, disk := range spec.Domain.Devices.Disks {
		field := fmt.Sprintf("%s.domain.devices.disks[%d]", templateSpec, i)
		if !volumes[disk.Name] {
			c.add(field+".name", "%s.Name '%s' not found.", field, disk.Name)
		}
		if disk.Disk != nil {
			checkBus(c, field+".disk.bus", string(disk.Disk.Bus))
		}
		if disk.BootOrder == nil {
			continue
		}
		if orders[*disk.BootOrder] {
			c.add(field+".bootOrder", "Boot order for %s.bootOrder already set for a different device.", field)
		}
		orders[*disk.BootOrder] = true
	}
}

func checkBus(c *causes, field, bus string) {
	switch bus {
	case "", "virtio", "scsi", "sata", "usb":
	default:
		c.add(field, "%s is set with an unrecognized bus %s, must be one of: [virtio scsi sata usb]", field, bus)
	}
}
