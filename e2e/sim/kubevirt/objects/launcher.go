package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"
)

const (
	// overhead of QEMU and the launcher, and what each core adds to it.
	overhead, perCore = 260 << 20, 8 << 20
	qemuUser          = int64(107)
	cpuPerCore        = 100 // thousandths
	suffix            = 5
)

// LauncherName is the launcher pod's. The real one ends at random.
func LauncherName(vmi *virtv1.VirtualMachineInstance) string {
	sum := sha256.Sum256([]byte(vmi.UID))
	return Launcher + "-" + vmi.Name + "-" + hex.EncodeToString(sum[:])[:suffix]
}

// LauncherPod is that of an instance, as far as anybody but KubeVirt looks at it.
func LauncherPod(vmi *virtv1.VirtualMachineInstance) *corev1.Pod {
	no, profile := false, corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	labels := maps.Clone(vmi.Labels)
	maps.Copy(labels, map[string]string{LabelKubeVirt: Launcher, LabelCreatedBy: string(vmi.UID), LabelName: hostname(vmi), LabelID: vmi.Name})
	annotations := map[string]string{"kubevirt.io/domain": vmi.Name}
	if networks := networksOf(vmi); networks != "" {
		annotations[AnnNetworks] = networks
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: vmi.Namespace, Name: LauncherName(vmi), Labels: labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(vmi, virtv1.VirtualMachineInstanceGroupVersionKind)},
		},
		Spec: corev1.PodSpec{
			Hostname: hostname(vmi), RestartPolicy: corev1.RestartPolicyNever, SchedulerName: SchedulerName,
			AutomountServiceAccountToken: &no, EnableServiceLinks: &no, TerminationGracePeriodSeconds: vmi.Spec.TerminationGracePeriodSeconds,
			Containers: []corev1.Container{compute(vmi), console()}, Volumes: volumesOf(vmi),
			SecurityContext: &corev1.PodSecurityContext{RunAsUser: new(qemuUser), FSGroup: new(qemuUser), SeccompProfile: &profile},
		},
	}
}

// hostname of the guest: what is before the first dot.
func hostname(vmi *virtv1.VirtualMachineInstance) string {
	name := vmi.Spec.Hostname
	if name == "" {
		name = vmi.Name
	}
	name, _, _ = strings.Cut(name, ".")
	return name
}

func cores(vmi *virtv1.VirtualMachineInstance) int64 {
	if cpu := vmi.Spec.Domain.CPU; cpu != nil && cpu.Cores > 0 {
		return int64(cpu.Cores)
	}
	return 1
}

// Memory is what the compute container asks for.
func Memory(vmi *virtv1.VirtualMachineInstance) *resource.Quantity {
	guest := vmi.Spec.Domain.Resources.Requests.Memory().Value()
	if memory := vmi.Spec.Domain.Memory; memory != nil && memory.Guest != nil {
		guest = max(guest, memory.Guest.Value())
	}
	return resource.NewQuantity(guest+overhead+perCore*cores(vmi), resource.BinarySI)
}

func compute(vmi *virtv1.VirtualMachineInstance) corev1.Container {
	cpu := *resource.NewMilliQuantity(cpuPerCore*cores(vmi), resource.DecimalSI)
	if asked, is := vmi.Spec.Domain.Resources.Requests[corev1.ResourceCPU]; is {
		cpu = asked
	}
	one := resource.MustParse("1")
	devices := corev1.ResourceList{"devices.kubevirt.io/kvm": one, "devices.kubevirt.io/tun": one, "devices.kubevirt.io/vhost-net": one}
	requests := corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: *Memory(vmi), corev1.ResourceEphemeralStorage: resource.MustParse("50M")}
	maps.Copy(requests, devices)
	return corev1.Container{
		Name: "compute", Image: Launcher + ":simulated", Resources: corev1.ResourceRequirements{Requests: requests, Limits: devices},
		SecurityContext: unprivileged(),
	}
}

func console() corev1.Container {
	return corev1.Container{
		Name: "guest-console-log", Image: Launcher + ":simulated", SecurityContext: unprivileged(),
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("35M")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("15m"), corev1.ResourceMemory: resource.MustParse("60M")},
		},
	}
}

func unprivileged() *corev1.SecurityContext {
	yes, no := true, false
	return &corev1.SecurityContext{
		RunAsNonRoot: &yes, RunAsUser: new(qemuUser), AllowPrivilegeEscalation: &no,
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_BIND_SERVICE"}},
	}
}

func volumesOf(vmi *virtv1.VirtualMachineInstance) []corev1.Volume {
	var volumes []corev1.Volume
	for _, v := range vmi.Spec.Volumes {
		switch {
		case v.DataVolume != nil:
			volumes = append(volumes, claimVolume(v.Name, v.DataVolume.Name))
		case v.PersistentVolumeClaim != nil:
			volumes = append(volumes, claimVolume(v.Name, v.PersistentVolumeClaim.ClaimName))
		case v.CloudInitNoCloud != nil:
			volumes = append(volumes, secretVolume(v.Name+"-udata", v.CloudInitNoCloud.UserDataSecretRef)...)
			volumes = append(volumes, secretVolume(v.Name+"-ndata", v.CloudInitNoCloud.NetworkDataSecretRef)...)
		}
	}
	return volumes
}

func claimVolume(name, claim string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}
}

func secretVolume(name string, ref *corev1.LocalObjectReference) []corev1.Volume {
	if ref == nil {
		return nil
	}
	return []corev1.Volume{{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: ref.Name}}}}
}

// networksOf is the annotation that Multus reads.
func networksOf(vmi *virtv1.VirtualMachineInstance) string {
	var all []map[string]string
	for _, network := range vmi.Spec.Networks {
		if network.Multus == nil {
			continue
		}
		namespace, name := Attachment(vmi.Namespace, network.Multus.NetworkName)
		sum := sha256.Sum256([]byte(network.Name))
		entry := map[string]string{"name": name, "namespace": namespace, "interface": "pod" + hex.EncodeToString(sum[:])[:11]}
		for _, i := range vmi.Spec.Domain.Devices.Interfaces {
			if i.Name == network.Name && i.MacAddress != "" {
				entry["mac"] = i.MacAddress
			}
		}
		all = append(all, entry)
	}
	if all == nil {
		return ""
	}
	text, err := json.Marshal(all)
	if err != nil { // of strings: it cannot be
		return ""
	}
	return string(text)
}

// Attachment is where the NetworkAttachmentDefinition of a network name is: name or namespace/name.
func Attachment(namespace, networkName string) (string, string) {
	if in, name, has := strings.Cut(networkName, "/"); has {
		return in, name
	}
	return namespace, networkName
}
