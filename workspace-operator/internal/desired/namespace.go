package desired

import (
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// labelPodSecurity and a mode make the label by which a namespace chooses its level of Pod Security.
const labelPodSecurity = "pod-security.kubernetes.io/"

// Namespace is the workspace's own.
//
// What its level of Pod Security must admit, by the sources of KubeVirt v1.8 and v1.9 (pkg/virt-controller/services) and CDI v1.65:
//
//   - virt-launcher runs as user 107, drops all capabilities but NET_BIND_SERVICE, and cannot gain more. It has no seccomp
//     profile unless KubeVirt's configuration says so (seccompConfiguration.virtualMachineInstanceProfile). So it passes
//     baseline, and restricted only where there is that profile.
//   - With KubeVirt's feature gate Root it runs as root with SYS_NICE, and needs privileged. So it does
//     with an SELinux type of KubeVirt's configuration (selinuxLauncherType) that baseline does not know.
//   - CDI's pods pass restricted.
func Namespace(w *v1alpha1.Workspace, s Settings) *unstructured.Unstructured {
	all := labels(w)
	for _, mode := range []string{"enforce", "audit", "warn"} {
		all[labelPodSecurity+mode] = s.PodSecurity
	}
	return sealed(corev1ac.Namespace(w.ChildNamespace()).
		WithLabels(all).
		WithOwnerReferences(owner(w)))
}
