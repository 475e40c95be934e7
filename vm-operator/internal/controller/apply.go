package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pelotech/open-terrain/apis/drift"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/desired"
	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// carryOut changes the children, one after the other. A child that is refused does not keep the others back; trouble that
// passes does, and all is tried again.
func (r *VirtualMachines) carryOut(ctx context.Context, s plan.Snapshot, actions []plan.Action) (map[plan.Child]plan.Refusal, error) {
	refusals := map[plan.Child]plan.Refusal{}
	s.Refusals = refusals // what was refused decides about what follows
	for _, action := range actions {
		if !plan.Possible(s, action) {
			continue
		}
		log.FromContext(ctx).V(1).Info("changing a child", "action", action)
		child, err := r.change(ctx, s, action)
		if refusal := refusalOf(err); refusal != nil {
			log.FromContext(ctx).Info("a child is refused", "action", action, "reason", refusal.Reason, "message", refusal.Message)
			refusals[child] = *refusal
			continue
		}
		if err != nil {
			return refusals, err
		}
		r.metrics.repaired(s.VM, action)
	}
	return refusals, nil
}

func (r *VirtualMachines) change(ctx context.Context, s plan.Snapshot, action plan.Action) (plan.Child, error) {
	switch action {
	case plan.CreateImage:
		return plan.Image, r.createImage(ctx, s)
	case plan.CreateDisk:
		return plan.Disk, r.createDisk(ctx, s)
	case plan.KeepDisk:
		return plan.Disk, r.keepDisk(ctx, s.VM, s.Disk)
	case plan.DeleteDisk:
		return plan.Disk, r.deleteDisk(ctx, s)
	case plan.ReleaseDisk:
		return plan.Disk, r.releaseDisk(ctx, s.Disk.ObjectMeta)
	case plan.ApplySecret:
		return plan.Secret, r.applySecret(ctx, s)
	case plan.ApplyMachine:
		return plan.Machine, r.applyMachine(ctx, s)
	case plan.DeleteInstance:
		return plan.Instance, r.deleteInstance(ctx, s)
	}
	return "", fmt.Errorf("unknown action %q", action)
}

// +kubebuilder:rbac:groups=pelotech.ot,resources=vmdiskimages,verbs=create

// createImage makes the image of the template. One that exists by now is used as it is.
func (r *VirtualMachines) createImage(ctx context.Context, s plan.Snapshot) error {
	err := r.client.Create(ctx, desired.Image(s.VM), client.FieldOwner(FieldOwner))
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil // its coming is an event
	case apierrors.IsNotFound(err): // the namespace
		return &refused{v1alpha1.ReasonImageRefused, err.Error()}
	}
	return wrap("create the image", err)
}

// +kubebuilder:rbac:groups=kubevirt.io,resources=virtualmachines,verbs=create;patch

// applyMachine makes KubeVirt's machine, or makes it right.
func (r *VirtualMachines) applyMachine(ctx context.Context, s plan.Snapshot) error {
	bare, err := desired.Machine(s.VM, plan.CloudInitOf(s))
	if err != nil {
		return &refused{v1alpha1.ReasonRefused, err.Error()}
	}
	want := drift.Sealed(bare)
	applied := want.DeepCopy()
	if s.Machine != nil {
		applied.SetUID(s.Machine.GetUID())
	}
	err = r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), ownership(s.Machine != nil)...)
	if isTaken(err, s.Machine != nil) {
		existing := &unstructured.Unstructured{}
		existing.SetGroupVersionKind(machineKind)
		uid, owned := r.ownerOf(ctx, s.VM, client.ObjectKeyFromObject(want), existing)
		if owned != nil {
			return owned
		}
		applied = want.DeepCopy()
		applied.SetUID(uid)
		err = r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), ownership(true)...)
	}
	if err != nil {
		return wrap("apply the machine", err)
	}
	r.noteUntaken(ctx, s.VM, drift.Of(want.Object, applied.Object))
	return nil
}

// untakenFields are those that the API server, or a webhook, did not take as they were applied.
type untakenFields struct {
	generation int64
	paths      []string
}

// noteUntaken remembers the fields that applying again would not change: the operator would do it for ever.
func (r *VirtualMachines) noteUntaken(ctx context.Context, vm *v1alpha1.VirtualMachine, paths []string) {
	if len(paths) > 0 {
		log.FromContext(ctx).Info("KubeVirt does not take all fields as they are applied; they are left as they are", "fields", paths)
	}
	r.untaken.note(vm, untakenFields{vm.Generation, paths})
}

func (r *VirtualMachines) untakenOf(vm *v1alpha1.VirtualMachine) []string {
	if known, ok := r.untaken.of(vm); ok && known.generation == vm.Generation {
		return known.paths
	}
	return nil
}

// ownership is taken by force of what is ours already. The first apply is without: what somebody else has made under that
// name has other values, and is a conflict then.
func ownership(ours bool) []client.ApplyOption {
	if ours {
		return []client.ApplyOption{client.FieldOwner(FieldOwner), client.ForceOwnership}
	}
	return []client.ApplyOption{client.FieldOwner(FieldOwner)}
}

// isTaken says that the first apply met an object of that name.
func isTaken(err error, known bool) bool { return !known && apierrors.IsConflict(err) }

// ownerOf looks at the object that exists under a child's name, and gives its UID when it is ours.
func (r *VirtualMachines) ownerOf(ctx context.Context, vm *v1alpha1.VirtualMachine, key types.NamespacedName, existing client.Object) (types.UID, error) {
	found, err := read(ctx, r.live, key, existing)
	switch {
	case err != nil:
		return "", err
	case !found:
		return "", apierrors.NewConflict(v1alpha1.Resource("virtualmachines"), vm.Name, fmt.Errorf("%s has just gone", key.Name))
	case !metav1.IsControlledBy(existing, vm):
		return "", taken(existing, key.Name)
	}
	return existing.GetUID(), nil
}

func taken(existing client.Object, name string) error {
	kind := "DataVolume"
	if _, machine := existing.(*unstructured.Unstructured); machine {
		kind = "VirtualMachine of KubeVirt"
	}
	return &refused{v1alpha1.ReasonNameTaken, fmt.Sprintf("A %s %s exists that does not belong to this virtual machine: delete or rename it", kind, name)}
}

// secretConfiguration is the same Secret as an apply configuration: they have the same JSON.
func secretConfiguration(secret *corev1.Secret) (*corev1ac.SecretApplyConfiguration, error) {
	apply := &corev1ac.SecretApplyConfiguration{}
	raw, err := json.Marshal(secret)
	if err != nil {
		return nil, wrap("encode the Secret", err)
	}
	return apply, wrap("decode the Secret", json.Unmarshal(raw, apply))
}

func without(finalizers []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == one })
}
