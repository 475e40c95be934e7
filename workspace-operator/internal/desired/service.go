package desired

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// serviceName is a name that a Service can have: a DNS label that begins with a letter.
var serviceName = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// Services are the names by which members find each other:
//
//   - a container that has ports is behind an address, with these ports;
//   - a virtual machine is found itself (a headless Service without ports), whatever it listens on. One whose name begins with
//     a digit is not: no Service can be called so.
func Services(w *v1alpha1.Workspace) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, entry := range w.Spec.VirtualMachines {
		if serviceName.MatchString(v1alpha1.WorkspaceChild(w, entry.Name)) {
			all = append(all, service(w, entry.Name, corev1ac.ServiceSpec().WithClusterIP(corev1.ClusterIPNone)))
		}
	}
	for _, entry := range w.Spec.Containers {
		if len(entry.Ports) > 0 {
			all = append(all, service(w, entry.Name, corev1ac.ServiceSpec().WithPorts(servicePorts(entry.Ports)...)))
		}
	}
	return all
}

func service(w *v1alpha1.Workspace, entry string, spec *corev1ac.ServiceSpecApplyConfiguration) *unstructured.Unstructured {
	return sealed(corev1ac.Service(v1alpha1.WorkspaceChild(w, entry), w.ChildNamespace()).
		WithLabels(entryLabels(w, entry)).
		WithOwnerReferences(owner(w)).
		WithSpec(spec.
			WithType(corev1.ServiceTypeClusterIP).
			WithIPFamilyPolicy(corev1.IPFamilyPolicyPreferDualStack).
			WithSelector(selects(w, entry))))
}

func servicePorts(ports []v1alpha1.WorkspacePort) []*corev1ac.ServicePortApplyConfiguration {
	var all []*corev1ac.ServicePortApplyConfiguration
	for i, name := range portNames(ports) {
		all = append(all, corev1ac.ServicePort().
			WithName(name).
			WithProtocol(protocolOf(ports[i].Protocol)).
			WithPort(ports[i].ContainerPort).
			WithTargetPort(intstr.FromInt32(ports[i].ContainerPort)))
	}
	return all
}

// portNames are the names of the ports: what is not named is called after its protocol and number, for a Service with two ports
// must name both. If another is called so already, a number more tells them apart.
func portNames(ports []v1alpha1.WorkspacePort) []string {
	var names []string
	for _, port := range ports {
		names = append(names, port.Name)
	}
	for i, port := range ports {
		if port.Name != "" {
			continue
		}
		base := strings.ToLower(string(protocolOf(port.Protocol))) + "-" + strconv.Itoa(int(port.ContainerPort))
		name := base
		for n := 2; slices.Contains(names, name); n++ {
			name = base + "-" + strconv.Itoa(n)
		}
		names[i] = name
	}
	return names
}

// protocolOf is the protocol, or the default of the API server.
func protocolOf(protocol corev1.Protocol) corev1.Protocol {
	if protocol == "" {
		return corev1.ProtocolTCP
	}
	return protocol
}
