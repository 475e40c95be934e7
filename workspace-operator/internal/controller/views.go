package controller

import (
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// wanted are the changes of a Workspace that are not ours: of what is wanted, of its finalizers, and its deletion.
var wanted = predicate.TypedFuncs[*v1alpha1.Workspace]{
	UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.Workspace]) bool {
		return e.ObjectOld.UID != e.ObjectNew.UID || e.ObjectOld.Generation != e.ObjectNew.Generation ||
			e.ObjectOld.DeletionTimestamp.IsZero() != e.ObjectNew.DeletionTimestamp.IsZero() ||
			len(e.ObjectOld.Finalizers) > len(e.ObjectNew.Finalizers)
	},
}

// comesOrGoes are the changes of a Workspace that those see which it may reach: of its name, and of its namespace.
var comesOrGoes = predicate.TypedFuncs[*v1alpha1.Workspace]{
	UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.Workspace]) bool {
		return e.ObjectOld.UID != e.ObjectNew.UID || isPlaced(e.ObjectOld) != isPlaced(e.ObjectNew)
	},
}

// isPlaced says that the Workspace has its namespace, and has said so: until then the namespace of that name may be anybody's.
func isPlaced(ws *v1alpha1.Workspace) bool {
	return ws.Status.Namespace != nil && ws.Status.Namespace.UID != ""
}

// changed leaves out the updates of which nothing is left in the cache: what nobody here reads.
func changed[T any, P interface {
	object[T]
	DeepCopy() *T
}]() predicate.TypedFuncs[P] {
	return predicate.TypedFuncs[P]{UpdateFunc: func(e event.TypedUpdateEvent[P]) bool {
		before, after := P(e.ObjectOld.DeepCopy()), P(e.ObjectNew.DeepCopy())
		for _, one := range []P{before, after} {
			one.SetResourceVersion("")
		}
		return !equality.Semantic.DeepEqual(before, after)
	}}
}

// notOurMaking leaves out the creation of what the operator has just made: nothing follows from it until somebody else has seen
// it, too. What was there when the operator started counts.
func notOurMaking[T client.Object](seen func(T) bool) predicate.TypedFuncs[T] {
	return predicate.TypedFuncs[T]{CreateFunc: func(e event.TypedCreateEvent[T]) bool {
		return e.IsInInitialList || e.Object.GetDeletionTimestamp() != nil || seen(e.Object)
	}}
}

func hasPhase(vm *v1alpha1.VirtualMachine) bool { return vm.Status.Phase != "" }

func isObserved(deployment *appsv1.Deployment) bool { return deployment.Status.ObservedGeneration > 0 }

func never[T client.Object](T) bool { return false }

// changedPod leaves out the updates of a pod that explain nothing.
var changedPod = predicate.TypedFuncs[*corev1.Pod]{
	CreateFunc: func(e event.TypedCreateEvent[*corev1.Pod]) bool {
		return e.IsInInitialList || e.Object.Spec.NodeName != ""
	},
	UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Pod]) bool {
		return viewOfPod(e.ObjectOld) != viewOfPod(e.ObjectNew)
	},
}

// podView is what explains why a container is not ready.
type podView struct {
	uid                        types.UID
	going                      bool
	phase                      corev1.PodPhase
	reason, unschedulable      string
	finalizers, waiting, ended string // one after the other
}

func viewOfPod(pod *corev1.Pod) podView {
	v := podView{
		uid: pod.UID, going: pod.DeletionTimestamp != nil, finalizers: strings.Join(pod.Finalizers, " "), phase: pod.Status.Phase, reason: pod.Status.Reason,
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			v.unschedulable = c.Reason
		}
	}
	for _, all := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range all {
			if c.State.Waiting != nil {
				v.waiting += c.Name + " " + c.State.Waiting.Reason + " "
			}
			if c.State.Terminated != nil {
				v.ended += c.Name + " " + c.State.Terminated.Reason + " "
			}
		}
	}
	return v
}

// failing are the changes of a ReplicaSet that explain something: why it cannot make its pods.
var failing = predicate.TypedFuncs[*appsv1.ReplicaSet]{
	CreateFunc: func(e event.TypedCreateEvent[*appsv1.ReplicaSet]) bool { return len(e.Object.Status.Conditions) > 0 },
	UpdateFunc: func(e event.TypedUpdateEvent[*appsv1.ReplicaSet]) bool {
		return !equality.Semantic.DeepEqual(e.ObjectOld.Status.Conditions, e.ObjectNew.Status.Conditions)
	},
}
