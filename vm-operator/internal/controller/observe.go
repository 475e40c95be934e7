package controller

import (
	"context"
	"fmt"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	machineKind  = schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachine"}
	instanceKind = schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachineInstance"}
)

// +kubebuilder:rbac:groups=pelotech.ot,resources=virtualmachines;vmdiskimages,verbs=get;list;watch
// +kubebuilder:rbac:groups=cdi.kubevirt.io,resources=datavolumes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces;persistentvolumeclaims,verbs=get;list;watch
// +kubebuilder:rbac:groups=kubevirt.io,resources=virtualmachines;virtualmachineinstances,verbs=get;list;watch

// observe does every read of a reconcile: from the caches, or from the API server itself. The cached client waits until a cache
// shows what this process has written to the object that is read. Without a VirtualMachine the snapshot is empty.
func (r *VirtualMachines) observe(ctx context.Context, from client.Reader, key types.NamespacedName) (plan.Snapshot, error) {
	vm := &v1alpha1.VirtualMachine{}
	if found, err := read(ctx, from, key, vm); err != nil || !found {
		return plan.Snapshot{}, err
	}
	s := plan.Snapshot{VM: vm, Untaken: r.untakenOf(vm)}
	for _, look := range []func(context.Context, client.Reader, *plan.Snapshot) error{
		r.observeImage, observeDisk, observeMachine,
	} {
		if err := look(ctx, from, &s); err != nil {
			return s, err
		}
	}
	return s, r.observeGuest(ctx, &s)
}

func (r *VirtualMachines) observeImage(ctx context.Context, from client.Reader, s *plan.Snapshot) error {
	key, image := s.VM.ImageKey(), &v1alpha1.VMDiskImage{}
	found, err := read(ctx, from, key, image)
	if err != nil || !found {
		return err
	}
	s.Image, s.Counted = image, r.claims.counts(image, s.VM)
	if key.Namespace == s.VM.Namespace {
		return nil
	}
	labels, found, err := namespaceLabels(ctx, from, s.VM.Namespace)
	if err == nil && !found { // one that is new may come to the cache after what is in it
		labels, _, err = namespaceLabels(ctx, r.live, s.VM.Namespace)
	}
	s.NamespaceLabels = labels
	return err
}

// namespaceLabels are those of a namespace; none when it is not there.
func namespaceLabels(ctx context.Context, from client.Reader, name string) (labels map[string]string, found bool, err error) {
	namespace := namespaceMetadata()
	found, err = read(ctx, from, types.NamespacedName{Name: name}, namespace)
	return namespace.Labels, found, err
}

func observeDisk(ctx context.Context, from client.Reader, s *plan.Snapshot) error {
	key, disk, claim := childKey(s.VM), &cdiv1.DataVolume{}, &corev1.PersistentVolumeClaim{}
	if found, err := read(ctx, from, key, disk); err != nil {
		return err
	} else if found {
		s.Disk = disk
	}
	found, err := read(ctx, from, key, claim)
	if found {
		s.Claim = claim
	}
	return err
}

func observeMachine(ctx context.Context, from client.Reader, s *plan.Snapshot) error {
	for kind, to := range map[schema.GroupVersionKind]**unstructured.Unstructured{machineKind: &s.Machine, instanceKind: &s.Instance} {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		found, err := read(ctx, from, client.ObjectKeyFromObject(s.VM), object)
		if err != nil {
			return err
		}
		if found {
			*to = object
		}
	}
	return nil
}

// childKey is that of the disk, its claim, and the cloud-init Secret.
func childKey(vm *v1alpha1.VirtualMachine) types.NamespacedName {
	return types.NamespacedName{Namespace: vm.Namespace, Name: v1alpha1.VirtualMachineChild(vm)}
}

func read(ctx context.Context, from client.Reader, key types.NamespacedName, obj client.Object) (found bool, err error) {
	err = from.Get(ctx, key, obj)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, wrap(fmt.Sprintf("read %s %s", obj.GetObjectKind().GroupVersionKind().Kind, key), err)
}

// wrap says what was being done.
func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
