package desired

import (
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
)

// revisionHistoryLimit is how many old ReplicaSets are kept, for kubectl rollout undo.
const revisionHistoryLimit = 2

// levelRestricted is the level of Pod Security that asks a container for more than it has by default.
const levelRestricted = "restricted"

// Deployments are those of the workspace, one for each container, in the order of the spec. How they are rolled out, and when, is
// left to Kubernetes' defaults.
func Deployments(w *v1alpha1.Workspace, s Settings) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for i := range w.Spec.Containers {
		all = append(all, deployment(w, &w.Spec.Containers[i], s))
	}
	return all
}

func deployment(w *v1alpha1.Workspace, entry *v1alpha1.WorkspaceContainer, s Settings) *unstructured.Unstructured {
	return sealed(appsv1ac.Deployment(v1alpha1.WorkspaceChild(w, entry.Name), w.ChildNamespace()).
		WithLabels(entryLabels(w, entry.Name)).
		WithOwnerReferences(owner(w)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(entry.WantedReplicas()).
			WithRevisionHistoryLimit(revisionHistoryLimit).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selects(w, entry.Name))).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(entryLabels(w, entry.Name)).
				WithSpec(pod(w, entry, s)))))
}

// pod gives a container no rights in the cluster, and none that it could gain on its node.
func pod(w *v1alpha1.Workspace, entry *v1alpha1.WorkspaceContainer, s Settings) *corev1ac.PodSpecApplyConfiguration {
	spec := corev1ac.PodSpec().
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithContainers(container(entry).WithSecurityContext(security(w, s)))
	for _, secret := range entry.ImagePullSecrets {
		spec.WithImagePullSecrets(corev1ac.LocalObjectReference().WithName(secret.Name))
	}
	return spec
}

// security is what baseline admits whatever the image; restricted wants an image that does not run as root.
func security(w *v1alpha1.Workspace, s Settings) *corev1ac.SecurityContextApplyConfiguration {
	context := corev1ac.SecurityContext().WithAllowPrivilegeEscalation(false)
	if w.OwnsNamespace() && s.PodSecurity == levelRestricted {
		context.WithRunAsNonRoot(true).WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))
	}
	return context
}

func container(entry *v1alpha1.WorkspaceContainer) *corev1ac.ContainerApplyConfiguration {
	c := corev1ac.Container().
		WithName(entry.Name).
		WithImage(entry.Image).
		WithCommand(entry.Command...).
		WithArgs(entry.Args...)
	for i, name := range portNames(entry.Ports) {
		c.WithPorts(corev1ac.ContainerPort().
			WithName(name).
			WithContainerPort(entry.Ports[i].ContainerPort).
			WithProtocol(protocolOf(entry.Ports[i].Protocol)))
	}
	for i := range entry.Env {
		c.WithEnv(env(&entry.Env[i]))
	}
	if requests, limits := amounts(entry.Resources.Requests), amounts(entry.Resources.Limits); requests != nil || limits != nil {
		c.WithResources(&corev1ac.ResourceRequirementsApplyConfiguration{Requests: requests, Limits: limits})
	}
	return c
}

func env(v *v1alpha1.WorkspaceEnvVar) *corev1ac.EnvVarApplyConfiguration {
	variable := corev1ac.EnvVar().WithName(v.Name)
	switch {
	case v.ValueFrom == nil:
		if v.Value != "" { // which the API server leaves out
			variable.WithValue(v.Value)
		}
	case v.ValueFrom.SecretKeyRef != nil:
		variable.WithValueFrom(corev1ac.EnvVarSource().WithSecretKeyRef(
			corev1ac.SecretKeySelector().WithName(v.ValueFrom.SecretKeyRef.Name).WithKey(v.ValueFrom.SecretKeyRef.Key)))
	case v.ValueFrom.ConfigMapKeyRef != nil:
		variable.WithValueFrom(corev1ac.EnvVarSource().WithConfigMapKeyRef(
			corev1ac.ConfigMapKeySelector().WithName(v.ValueFrom.ConfigMapKeyRef.Name).WithKey(v.ValueFrom.ConfigMapKeyRef.Key)))
	}
	return variable
}

// amounts is what is said of cpu, memory and ephemeral-storage; nil for nothing.
func amounts(list v1alpha1.WorkspaceResourceList) *corev1.ResourceList {
	all := corev1.ResourceList{}
	if list.CPU != nil {
		all[corev1.ResourceCPU] = list.CPU.DeepCopy()
	}
	if list.Memory != nil {
		all[corev1.ResourceMemory] = list.Memory.DeepCopy()
	}
	if list.EphemeralStorage != nil {
		all[corev1.ResourceEphemeralStorage] = list.EphemeralStorage.DeepCopy()
	}
	if len(all) == 0 {
		return nil
	}
	return &all
}
