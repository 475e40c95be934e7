package controller

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/desired"
	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// +kubebuilder:rbac:groups=cdi.kubevirt.io,resources=datavolumes,verbs=create;delete;patch
// +kubebuilder:rbac:groups=cdi.kubevirt.io,resources=datavolumes/source,verbs=create
// +kubebuilder:rbac:groups=pelotech.ot,resources=virtualmachines/finalizers,verbs=update

// createDisk makes the DataVolume. One of that name that is ours already is as good: it lost its label, or the cache is behind.
// (The right to create datavolumes/source is CDI's way to ask whether somebody may clone from another namespace.)
func (r *VirtualMachines) createDisk(ctx context.Context, s plan.Snapshot) error {
	disk := desired.Disk(s.VM, s.Image)
	err := r.client.Create(ctx, disk, client.FieldOwner(FieldOwner))
	if !apierrors.IsAlreadyExists(err) {
		return wrap("create the disk", err)
	}
	existing := &cdiv1.DataVolume{}
	if _, err := r.ownerOf(ctx, s.VM, client.ObjectKeyFromObject(disk), existing); err != nil {
		return err
	}
	return r.keepDisk(ctx, s.VM, existing)
}

// keepDisk gives a disk of ours its labels and its finalizer again, if it lacks any.
func (r *VirtualMachines) keepDisk(ctx context.Context, vm *v1alpha1.VirtualMachine, disk *cdiv1.DataVolume) error {
	finalizers := append(without(disk.Finalizers, v1alpha1.FinalizerDisk), v1alpha1.FinalizerDisk)
	labels := map[string]string{v1alpha1.LabelVirtualMachine: vm.Name, v1alpha1.LabelVirtualMachineUID: string(vm.UID)}
	right := len(finalizers) == len(disk.Finalizers)
	for key, value := range labels {
		right = right && disk.Labels[key] == value
	}
	if right || disk.DeletionTimestamp != nil {
		return nil
	}
	return wrap("label and protect the disk", r.patchDisk(ctx, disk.ObjectMeta, map[string]any{"finalizers": finalizers, "labels": labels}))
}

// deleteDisk removes the very disk that was looked at. It goes when its finalizer is taken off.
func (r *VirtualMachines) deleteDisk(ctx context.Context, s plan.Snapshot) error {
	log.FromContext(ctx).Info("deleting the disk to clone another one", "disk", s.Disk.Name)
	err := r.client.Delete(ctx, s.Disk, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &s.Disk.UID})
	return wrap("delete the disk", client.IgnoreNotFound(err))
}

// releaseDisk takes our finalizer off.
func (r *VirtualMachines) releaseDisk(ctx context.Context, disk metav1.ObjectMeta) error {
	log.FromContext(ctx).Info("letting the disk go", "disk", disk.Name)
	err := r.patchDisk(ctx, disk, map[string]any{"finalizers": without(disk.Finalizers, v1alpha1.FinalizerDisk)})
	return wrap("let the disk go", client.IgnoreNotFound(err))
}

// patchDisk changes the metadata of the very version that was looked at. Finalizers are no apply: one that leaves ours out would
// leave it there when somebody else has it among his fields, too.
func (r *VirtualMachines) patchDisk(ctx context.Context, disk metav1.ObjectMeta, metadata map[string]any) error {
	metadata["uid"], metadata["resourceVersion"] = disk.UID, disk.ResourceVersion
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	target := &cdiv1.DataVolume{ObjectMeta: metav1.ObjectMeta{Namespace: disk.Namespace, Name: disk.Name}}
	return r.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldOwner))
}

// releaseStrangers lets the disks of VirtualMachines of this name go that do not exist any more: the garbage collector deletes
// them, or somebody will who kept them (kubectl delete --cascade=orphan).
func (r *VirtualMachines) releaseStrangers(ctx context.Context, key types.NamespacedName, vm *v1alpha1.VirtualMachine) error {
	disks := &cdiv1.DataVolumeList{}
	if err := r.cache.List(ctx, disks, client.InNamespace(key.Namespace), client.MatchingFields{diskVM: key.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return wrap("list the disks", err)
	}
	for i := range disks.Items {
		disk := &disks.Items[i]
		uid := madeFor(disk)
		if vm != nil && vm.UID == uid || len(without(disk.Finalizers, v1alpha1.FinalizerDisk)) == len(disk.Finalizers) {
			continue
		}
		current := &v1alpha1.VirtualMachine{}
		found, err := read(ctx, r.live, key, current)
		if err != nil {
			return err
		}
		if found && current.UID == uid {
			continue // the cache is behind
		}
		if err := r.releaseDisk(ctx, *disk.ObjectMeta.DeepCopy()); err != nil {
			return err
		}
	}
	return nil
}

// madeFor is the UID of the VirtualMachine that a disk was made for: its owner's, or that of its label.
func madeFor(disk metav1.Object) types.UID {
	if owner := vmOwner(disk); owner != nil {
		return owner.UID
	}
	return types.UID(disk.GetLabels()[v1alpha1.LabelVirtualMachineUID])
}
