package objects

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const qemuUser = int64(107)

// Pod is the importer pod as CDI makes it, except that a real scheduler leaves it alone.
func Pod(prime *corev1.PersistentVolumeClaim, s Source, scratch bool) *corev1.Pod {
	labels := map[string]string{
		"app": "containerized-data-importer", ImporterLabel: ImporterName, "prometheus.cdi.kubevirt.io": "true",
		"app.kubernetes.io/managed-by": "cdi-controller", "app.kubernetes.io/component": "storage",
	}
	for key, v := range prime.Labels {
		if _, taken := labels[key]; !taken {
			labels[key] = v
		}
	}
	annotations := map[string]string{AnnCreatedBy: "yes"}
	for _, key := range []string{"sidecar.istio.io/inject", "linkerd.io/inject", AnnPriorityClass, AnnServiceAccount} {
		if v, ok := prime.Annotations[key]; ok {
			annotations[key] = v
		}
	}
	no, profile := false, corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	spec := corev1.PodSpec{
		Containers: []corev1.Container{importerContainer(prime, s, scratch)}, Volumes: podVolumes(prime, s, scratch),
		RestartPolicy: corev1.RestartPolicyOnFailure, PriorityClassName: prime.Annotations[AnnPriorityClass],
		ServiceAccountName: prime.Annotations[AnnServiceAccount], EnableServiceLinks: &no, SchedulerName: SchedulerName,
		SecurityContext: &corev1.PodSecurityContext{SeccompProfile: &profile},
	}
	if len(spec.Containers[0].VolumeMounts) > 0 {
		spec.SecurityContext.FSGroup = new(qemuUser)
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: prime.Namespace, Name: ImporterName + "-" + prime.Name, Labels: labels, Annotations: maps.Clone(annotations),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(prime, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))},
		},
		Spec: spec,
	}
}

func importerContainer(prime *corev1.PersistentVolumeClaim, s Source, scratch bool) corev1.Container {
	no, yes, profile := false, true, corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	c := corev1.Container{
		Name: ImporterName, Image: "cdi-importer:simulated", ImagePullPolicy: corev1.PullIfNotPresent, Args: []string{"-v=1"},
		Ports:                    []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8443, Protocol: corev1.ProtocolTCP}},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext: &corev1.SecurityContext{
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, SeccompProfile: &profile,
			AllowPrivilegeEscalation: &no, RunAsNonRoot: &yes, RunAsUser: new(qemuUser),
		},
		Env: []corev1.EnvVar{{Name: "IMPORTER_SOURCE", Value: s.Kind}, {Name: "IMPORTER_ENDPOINT", Value: s.URL}, {Name: "IMPORTER_CHECKSUM", Value: s.Checksum}},
	}
	if s.Secret != "" {
		c.Env = append(c.Env, fromSecret("IMPORTER_ACCESS_KEY_ID", s.Secret, KeyAccess), fromSecret("IMPORTER_SECRET_KEY", s.Secret, KeySecret))
	}
	if prime.Spec.VolumeMode != nil && *prime.Spec.VolumeMode == corev1.PersistentVolumeBlock {
		c.VolumeDevices = []corev1.VolumeDevice{{Name: "cdi-data-vol", DevicePath: "/dev/cdi-block-volume"}}
	} else {
		c.VolumeMounts = []corev1.VolumeMount{{Name: "cdi-data-vol", MountPath: "/data"}}
	}
	if scratch {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "cdi-scratch-vol", MountPath: "/scratch"})
	}
	if s.CertConfigMap != "" {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: CertVolume, MountPath: "/certs"})
	}
	return c
}

// Keys of the secret that a source names, and the volume of the certificates.
const (
	KeyAccess  = "accessKeyId"
	KeySecret  = "secretKey"
	CertVolume = "cdi-cert-vol"
)

func fromSecret(name, secret, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key}}}
}

func podVolumes(prime *corev1.PersistentVolumeClaim, s Source, scratch bool) []corev1.Volume {
	claim := func(volume, name string) corev1.Volume {
		return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}
	}
	volumes := []corev1.Volume{claim("cdi-data-vol", prime.Name)}
	if scratch {
		volumes = append(volumes, claim("cdi-scratch-vol", scratchName(prime)))
	}
	if s.CertConfigMap != "" {
		volumes = append(volumes, corev1.Volume{Name: CertVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: s.CertConfigMap}}}})
	}
	return volumes
}

// PodStatus is the status that a kubelet writes.
func PodStatus(phase corev1.PodPhase, restarts int32, state, last corev1.ContainerState) corev1.PodStatus {
	running := state.Running != nil
	ready := corev1.ConditionFalse
	if running {
		ready = corev1.ConditionTrue
	}
	return corev1.PodStatus{
		Phase: phase,
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: ready},
		},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: ImporterName, Image: "cdi-importer:simulated", ImageID: "simulated", Ready: running, Started: &running,
			RestartCount: restarts, State: state, LastTerminationState: last,
		}},
	}
}
