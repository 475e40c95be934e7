package desired

import (
	"maps"
	"slices"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
)

const (
	labelCDI     = "cdi.kubevirt.io"
	uploadServer = "cdi-upload-server"
	cloneSource  = "cdi-clone-source"
	uploadPort   = 8443
)

// disksPolicy lets CDI fill the disks of virtual machines in the workspace's own namespace, where the other policy selects CDI's
// pods, too; nil where there is nothing to fill.
//
// By the sources of CDI v1.65 (pkg/controller):
//
//   - With a CSI driver (the clone populator) all work is done in the namespace of the image: the temporary claim, the source
//     pod, the upload server and the pod that enlarges it. The volume is then bound to the claim of the disk. No pod is in our
//     namespace, and nothing has to be let in.
//   - Without one (or with usePopulator: "false") the upload server is in our namespace, and the source pod, in that of the image,
//     posts to it on port 8443. Both have certificates of CDI, and the server takes no other client.
//   - Nobody else calls the upload server: progress is read from the source pod, and the upload proxy is for uploads. It calls
//     nobody.
//
// So the source pods, and only those of the namespaces that the images are in, may reach upload servers.
func disksPolicy(w *v1alpha1.Workspace, s Settings) *unstructured.Unstructured {
	sources := map[string]bool{}
	for i := range w.Spec.VirtualMachines {
		sources[w.Spec.VirtualMachines[i].Image(s.ImageNamespace).Namespace] = true
	}
	if !w.OwnsNamespace() || len(sources) == 0 {
		return nil
	}
	from := inNamespace(slices.Sorted(maps.Keys(sources))...).WithPodSelector(component(cloneSource))
	return sealed(networkPolicy(w, v1alpha1.WorkspaceDisksPolicy).WithSpec(networkingv1ac.NetworkPolicySpec().
		WithPodSelector(component(uploadServer)).
		WithPolicyTypes(networkingv1.PolicyTypeIngress).
		WithIngress(networkingv1ac.NetworkPolicyIngressRule().
			WithFrom(from).
			WithPorts(port(uploadPort, corev1.ProtocolTCP)))))
}

func component(name string) *metav1ac.LabelSelectorApplyConfiguration {
	return metav1ac.LabelSelector().WithMatchLabels(map[string]string{labelCDI: name})
}
