package controller

import (
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CacheOptions keep in memory what the operator works with, and no more: children, and the pods and ReplicaSets below them, by our
// label; of namespaces what tells whose they are and whether they go; the slots; and of ConfigMaps the policy. A label only
// decides what is seen: what is ours is decided by the owner's UID.
func CacheOptions(o Options) (cache.Options, error) {
	exists, err := labels.NewRequirement(v1alpha1.LabelWorkspaceUID, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, err
	}
	ours := cache.ByObject{Label: labels.NewSelector().Add(*exists)}
	trimmed := func(trim func(any) (any, error)) cache.ByObject {
		return cache.ByObject{Label: ours.Label, Transform: trim}
	}
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.VirtualMachine{}:    ours,
			&corev1.Service{}:             ours,
			&networkingv1.NetworkPolicy{}: ours,
			&appsv1.Deployment{}:          trimmed(trimDeployment),
			&appsv1.ReplicaSet{}:          trimmed(trimReplicaSet),
			&corev1.Pod{}:                 trimmed(trimPod),
			&corev1.Namespace{}:           {Transform: trimNamespace},
			&coordinationv1.Lease{}: {Namespaces: map[string]cache.Config{
				o.Namespace: {LabelSelector: labels.SelectorFromSet(labels.Set{v1alpha1.LabelSlot: v1alpha1.WorkspaceQueueName})},
			}},
			&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{
				o.PolicyNamespace: {FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, v1alpha1.PolicyConfigMapName)},
			}},
		},
	}, nil
}

// trimDeployment leaves out when its conditions changed last: a rollout that goes on is no news.
func trimDeployment(obj any) (any, error) {
	if deployment, ok := obj.(*appsv1.Deployment); ok {
		deployment.ManagedFields = nil
		for i := range deployment.Status.Conditions {
			deployment.Status.Conditions[i].LastUpdateTime, deployment.Status.Conditions[i].LastTransitionTime = metav1.Time{}, metav1.Time{}
		}
	}
	return obj, nil
}

// trimReplicaSet keeps of a ReplicaSet whose it is, its revision, and why it cannot make its pods.
func trimReplicaSet(obj any) (any, error) {
	set, ok := obj.(*appsv1.ReplicaSet)
	if !ok {
		return obj, nil
	}
	set.ManagedFields, set.Spec = nil, appsv1.ReplicaSetSpec{Replicas: set.Spec.Replicas}
	for i := range set.Status.Conditions {
		set.Status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	return set, nil
}

// trimPod keeps of a pod whose it is, its node, and how it fares.
func trimPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	pod.ManagedFields, pod.Annotations = nil, nil
	pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName}
	st := pod.Status
	pod.Status = corev1.PodStatus{
		Phase: st.Phase, Reason: st.Reason, Message: st.Message, Conditions: st.Conditions,
		InitContainerStatuses: st.InitContainerStatuses, ContainerStatuses: st.ContainerStatuses,
	}
	return pod, nil
}

// trimNamespace keeps of a namespace whose it is, its labels, and what holds up its end.
func trimNamespace(obj any) (any, error) {
	if namespace, ok := obj.(*corev1.Namespace); ok {
		namespace.ManagedFields, namespace.Spec = nil, corev1.NamespaceSpec{}
	}
	return obj, nil
}
