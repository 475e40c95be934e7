package main

import (
	"strings"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var workspace = set{
	operator: "workspace-operator", options: workspaceOptions,
	kinds: []client.Object{
		&otv1alpha1.Workspace{}, &otv1alpha1.VirtualMachine{}, &corev1.Namespace{}, &corev1.Service{}, &corev1.Pod{}, &corev1.ConfigMap{},
		&networkingv1.NetworkPolicy{}, &appsv1.Deployment{}, &appsv1.ReplicaSet{}, &coordinationv1.Lease{},
	},
	indexes: []index{
		{&appsv1.Deployment{}, "workspace.owner.uid", byWorkspace},
		{&corev1.Service{}, "workspace.owner.uid", byWorkspace},
		{&networkingv1.NetworkPolicy{}, "workspace.owner.uid", byWorkspace},
		{&otv1alpha1.VirtualMachine{}, "workspace.owner.uid", byWorkspace},
		{&appsv1.ReplicaSet{}, "workspace.uid", byWorkspaceLabel},
		{&corev1.Pod{}, "workspace.uid", byWorkspaceLabel},
		{&otv1alpha1.Workspace{}, "workspace.uid", func(o client.Object) []string { return []string{string(o.GetUID())} }},
		{&otv1alpha1.Workspace{}, "workspace.namespace", func(o client.Object) []string {
			return []string{o.(*otv1alpha1.Workspace).ChildNamespace()}
		}},
		{&otv1alpha1.Workspace{}, "spec.network.allowFrom", func(o client.Object) (names []string) {
			if network := o.(*otv1alpha1.Workspace).Spec.Network; network != nil {
				for _, friend := range network.AllowFrom {
					names = append(names, friend.Workspace)
				}
			}
			return names
		}},
	},
}

// workspaceOptions are the workspace-operator's CacheOptions.
func workspaceOptions() (cache.Options, error) {
	scheme := apiruntime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{clientgoscheme.AddToScheme, otv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return cache.Options{}, err
		}
	}
	exists, err := labels.NewRequirement(otv1alpha1.LabelWorkspaceUID, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, err
	}
	ours := cache.ByObject{Label: labels.NewSelector().Add(*exists)}
	trimmed := func(trim func(any) (any, error)) cache.ByObject {
		return cache.ByObject{Label: ours.Label, Transform: trim}
	}
	return cache.Options{
		Scheme:           scheme,
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&otv1alpha1.VirtualMachine{}:  ours,
			&corev1.Service{}:             ours,
			&networkingv1.NetworkPolicy{}: ours,
			&appsv1.Deployment{}:          trimmed(trimDeployment),
			&appsv1.ReplicaSet{}:          trimmed(trimReplicaSet),
			&corev1.Pod{}:                 trimmed(trimPod),
			&corev1.Namespace{}:           {Transform: trimNamespace},
			&coordinationv1.Lease{}: {Namespaces: map[string]cache.Config{
				"workspace-operator": {LabelSelector: labels.SelectorFromSet(labels.Set{otv1alpha1.LabelSlot: otv1alpha1.WorkspaceQueueName})},
			}},
			&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{
				"sync-operator": {FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, otv1alpha1.PolicyConfigMapName)},
			}},
		},
	}, nil
}

func byWorkspace(o client.Object) []string {
	owner := metav1.GetControllerOf(o)
	if owner == nil || owner.Kind != "Workspace" || !strings.HasPrefix(owner.APIVersion, otv1alpha1.GroupName+"/") {
		return nil
	}
	return []string{string(owner.UID)}
}

func byWorkspaceLabel(o client.Object) []string {
	return []string{o.GetLabels()[otv1alpha1.LabelWorkspaceUID]}
}

func trimDeployment(obj any) (any, error) {
	if deployment, ok := obj.(*appsv1.Deployment); ok {
		deployment.ManagedFields = nil
		for i := range deployment.Status.Conditions {
			deployment.Status.Conditions[i].LastUpdateTime, deployment.Status.Conditions[i].LastTransitionTime = metav1.Time{}, metav1.Time{}
		}
	}
	return obj, nil
}

func trimReplicaSet(obj any) (any, error) {
	replicas, ok := obj.(*appsv1.ReplicaSet)
	if !ok {
		return obj, nil
	}
	replicas.ManagedFields, replicas.Spec = nil, appsv1.ReplicaSetSpec{Replicas: replicas.Spec.Replicas}
	for i := range replicas.Status.Conditions {
		replicas.Status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	return replicas, nil
}

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

func trimNamespace(obj any) (any, error) {
	if namespace, ok := obj.(*corev1.Namespace); ok {
		namespace.ManagedFields, namespace.Spec = nil, corev1.NamespaceSpec{}
	}
	return obj, nil
}
