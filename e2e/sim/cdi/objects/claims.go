package objects

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

const (
	blockSize       = 1 << 20 // CDI rounds sizes up to it
	overheadPercent = 6
)

// Claim is the claim of a DataVolume.
func Claim(dv *cdiv1.DataVolume) *corev1.PersistentVolumeClaim {
	labels := map[string]string{"app": "containerized-data-importer", "app.kubernetes.io/managed-by": "cdi-controller", "app.kubernetes.io/component": "storage"}
	spec := claimSpec(dv)
	if *spec.VolumeMode == corev1.PersistentVolumeFilesystem {
		labels["alerts.k8s.io/KubePersistentVolumeFillingUp"] = "disabled"
	}
	maps.Copy(labels, dv.Labels)
	annotations := maps.Clone(dv.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[AnnPodRestarts] = "0"
	annotations[AnnContentType] = "kubevirt"
	annotations[AnnPreallocation] = strconv.FormatBool(dv.Spec.Preallocation != nil && *dv.Spec.Preallocation)
	annotations[AnnCreatedFor] = string(dv.UID)
	annotations[AnnUsePopulator] = "true"
	if dv.Spec.PriorityClassName != "" {
		annotations[AnnPriorityClass] = dv.Spec.PriorityClassName
	}
	if dv.Spec.ServiceAccountName != "" {
		annotations[AnnServiceAccount] = dv.Spec.ServiceAccountName
	}
	group := cdiv1.SchemeGroupVersion.Group
	spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: &group, Kind: VolumeImportSource, Name: "volume-import-source-" + string(dv.UID)}
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: dv.Namespace, Name: dv.Name, Labels: labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(dv, cdiv1.SchemeGroupVersion.WithKind("DataVolume"))},
		},
		Spec: spec,
	}
}

func claimSpec(dv *cdiv1.DataVolume) corev1.PersistentVolumeClaimSpec {
	var spec corev1.PersistentVolumeClaimSpec
	overhead := int64(overheadPercent)
	if dv.Spec.PVC != nil {
		spec, overhead = *dv.Spec.PVC.DeepCopy(), 0
	} else if s := dv.Spec.Storage; s != nil {
		spec = corev1.PersistentVolumeClaimSpec{AccessModes: s.AccessModes, Resources: *s.Resources.DeepCopy(), StorageClassName: s.StorageClassName, VolumeMode: s.VolumeMode}
	}
	if len(spec.AccessModes) == 0 {
		spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	if spec.StorageClassName == nil {
		class := StorageClass
		spec.StorageClassName = &class
	}
	if spec.VolumeMode == nil {
		mode := corev1.PersistentVolumeFilesystem
		spec.VolumeMode = &mode
	}
	if *spec.VolumeMode == corev1.PersistentVolumeBlock {
		overhead = 0
	}
	size := spec.Resources.Requests[corev1.ResourceStorage]
	if overhead > 0 {
		spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(withOverhead(size.Value(), overhead), resource.BinarySI)}
	}
	return spec
}

// withOverhead is the size of a filesystem that holds a disk of size bytes: 134217728 becomes 142270792.
func withOverhead(size, percent int64) int64 {
	aligned := (size + blockSize - 1) / blockSize * blockSize
	return (aligned*(100+percent) + 99) / 100
}

// PrimeName is the name of a claim's prime claim.
func PrimeName(claim *corev1.PersistentVolumeClaim) string { return "prime-" + string(claim.UID) }

// Prime is the claim that the importer pod fills.
func Prime(claim *corev1.PersistentVolumeClaim, s Source) *corev1.PersistentVolumeClaim {
	labels := maps.Clone(claim.Labels)
	labels["velero.io/exclude-from-backup"] = "true"
	annotations := s.annotations()
	annotations[AnnImmediateBinding] = ""
	annotations[AnnPopulatorKind] = VolumeImportSource
	annotations["sidecar.istio.io/inject"] = "false"
	annotations["linkerd.io/inject"] = "disabled"
	for _, key := range []string{AnnContentType, AnnPreallocation, AnnPriorityClass, AnnServiceAccount} {
		if v, ok := claim.Annotations[key]; ok {
			annotations[key] = v
		}
	}
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: claim.Namespace, Name: PrimeName(claim), Labels: labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(claim, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))},
		},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: claim.Spec.AccessModes, Resources: claim.Spec.Resources, StorageClassName: claim.Spec.StorageClassName, VolumeMode: claim.Spec.VolumeMode},
	}
}

// Scratch is the scratch claim of a pod.
func Scratch(pod *corev1.Pod, prime *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: prime.Namespace, Name: scratchName(prime),
			Labels:          map[string]string{"app": "containerized-data-importer", "velero.io/exclude-from-backup": "true"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))},
		},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: prime.Spec.Resources, StorageClassName: prime.Spec.StorageClassName},
	}
}

func scratchName(prime *corev1.PersistentVolumeClaim) string { return prime.Name + "-scratch" }
