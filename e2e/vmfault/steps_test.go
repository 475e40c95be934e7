package vmfault

import (
	"context"
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/fault/lab"
	"github.com/pelotech/open-terrain/e2e/history"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const nowhere = "http://images.test/disk"

type (
	machineMod = func(*otv1alpha1.VirtualMachine)
	imageMod   = func(*otv1alpha1.VMDiskImage)
)

// act makes a step that changes something: what comes next is looked for from before it on.
func act(name string, do func(context.Context, *scene) error) Step {
	return Step{Name: name, Do: func(ctx context.Context, s *scene) (err error) {
		if s.since, err = s.Recorder.Sync(ctx); err != nil {
			return err
		}
		return do(ctx, s)
	}}
}

// synced makes the image, and waits until it is there.
func synced(mods ...imageMod) Step {
	return Step{Name: "sync the image", Do: func(ctx context.Context, s *scene) error {
		return s.tell(ctx, []Step{createImage(mods...), awaitSynced()})
	}}
}

func awaitSynced() Step {
	return awaitImage("Succeeded", func(i *otv1alpha1.VMDiskImage) bool { return i.Status.Phase == otv1alpha1.PhaseSucceeded })
}

// awaitWrite waits for an event of the story.
func awaitWrite(what string, match func(history.Event) bool) Step {
	return Step{Name: "await the write of " + what, Do: func(ctx context.Context, s *scene) error { return s.await(ctx, match) }}
}

func createImage(mods ...imageMod) Step {
	return act("create the image", func(ctx context.Context, s *scene) error {
		i := lab.Image(s.images, image, nowhere)
		for _, mod := range mods {
			mod(i)
		}
		return s.Client.Create(ctx, i)
	})
}

func changeImage(mod imageMod) Step {
	return act("change the image", func(ctx context.Context, s *scene) error {
		i, err := s.golden(ctx)
		if err != nil {
			return err
		}
		before := i.DeepCopy()
		mod(i)
		return s.Client.Patch(ctx, i, client.MergeFrom(before))
	})
}

func awaitImage(what string, is func(*otv1alpha1.VMDiskImage) bool) Step {
	return Step{Name: "await the image " + what, Do: func(ctx context.Context, s *scene) error {
		return s.await(ctx, func(e history.Event) bool {
			i, ok := history.As[*otv1alpha1.VMDiskImage](e)
			return ok && is(i)
		})
	}}
}

// loseImage deletes all that the image has, as a careless user does.
func loseImage() Step {
	return act("lose the image's artifact", func(ctx context.Context, s *scene) error {
		i, err := s.golden(ctx)
		if err != nil {
			return err
		}
		for _, part := range []client.Object{
			&snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: i.Status.Artifact.Snapshot}},
			&cdiv1.DataVolume{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: i.Status.Artifact.DataVolume}},
		} {
			if err := s.Client.Delete(ctx, part); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		return nil
	})
}

// policy of the disk-sync-operator: that of all stories, and this concurrency.
func policy(concurrency string) Step {
	return act("concurrency "+concurrency, func(ctx context.Context, s *scene) error {
		data := lab.BasePolicy()
		data["concurrency"] = concurrency
		return s.SetPolicy(ctx, data)
	})
}

// create a virtual machine with a password that a Secret holds.
func create(name string, mods ...machineMod) Step {
	return act("create "+name, func(ctx context.Context, s *scene) error {
		vm := &otv1alpha1.VirtualMachine{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
			Spec: otv1alpha1.VirtualMachineSpec{
				VMDiskImageRef: otv1alpha1.VMDiskImageReference{Name: image},
				MachineSpec: otv1alpha1.MachineSpec{
					Resources: otv1alpha1.VirtualMachineResources{CPU: new(resource.MustParse("100m")), Memory: new(resource.MustParse("64Mi"))},
					Users: []otv1alpha1.VirtualMachineUser{
						{Name: "admin", PasswordSecretRef: &otv1alpha1.SecretKeySelector{Name: passwords, Key: "admin"}},
					},
				},
			},
		}
		if s.images != s.namespace {
			vm.Spec.VMDiskImageRef.Namespace = s.images
		}
		for _, mod := range mods {
			mod(vm)
		}
		if err := s.Client.Create(ctx, vm); err != nil {
			return err
		}
		return s.placeBystanders(ctx, vm)
	})
}

func strategy(strategy otv1alpha1.RunStrategy) machineMod {
	return func(vm *otv1alpha1.VirtualMachine) { vm.Spec.RunStrategy = strategy }
}

func change(name string, mods ...machineMod) Step {
	return act("change "+name, func(ctx context.Context, s *scene) error {
		vm, err := s.machine(ctx, name)
		if err != nil {
			return err
		}
		before := vm.DeepCopy()
		for _, mod := range mods {
			mod(vm)
		}
		return s.Client.Patch(ctx, vm, client.MergeFrom(before))
	})
}

// remove a virtual machine, as somebody does who waits for nothing.
func remove(name string) Step {
	return act("delete "+name, func(ctx context.Context, s *scene) error {
		return s.Client.Delete(ctx, &otv1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}})
	})
}

// await a virtual machine, with the spec that it has, that is or comes to be as described.
func await(name, what string, is func(*otv1alpha1.VirtualMachine, *scene) bool) Step {
	return Step{Name: "await " + name + " " + what, Do: func(ctx context.Context, s *scene) error {
		return s.await(ctx, func(e history.Event) bool {
			vm, ok := history.As[*otv1alpha1.VirtualMachine](e)
			return ok && vm.Name == name && vm.Status.ObservedGeneration == vm.Generation && is(vm, s)
		})
	}}
}

func awaitEnd(name string, end End) Step {
	return await(name, fmt.Sprint(end), func(vm *otv1alpha1.VirtualMachine, _ *scene) bool { return endOf(vm) == end })
}

func awaitReason(name, condition string, reason otv1alpha1.VirtualMachineReason) Step {
	return await(name, string(reason), func(vm *otv1alpha1.VirtualMachine, _ *scene) bool { return reasonOf(vm, condition) == reason })
}

// awaitGone waits until a virtual machine is no more.
func awaitGone(name string) Step {
	return Step{Name: "await the end of " + name, Do: func(ctx context.Context, s *scene) error {
		return s.await(ctx, func(e history.Event) bool {
			_, ours := history.PrevAs[*otv1alpha1.VirtualMachine](e)
			return ours && e.Deleted && e.Name == name
		})
	}}
}

// deleteDisk of a virtual machine, and note which it was.
func deleteDisk(name string) Step {
	return act("delete the disk of "+name, func(ctx context.Context, s *scene) error {
		vm, err := s.machine(ctx, name)
		if err != nil {
			return err
		}
		dv := &cdiv1.DataVolume{}
		if err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: otv1alpha1.VirtualMachineChild(vm)}, dv); err != nil {
			return err
		}
		s.seen["disk of "+name] = string(dv.UID)
		return s.Client.Delete(ctx, dv)
	})
}

// awaitAnotherDisk than that which was deleted.
func awaitAnotherDisk(name string, end End) Step {
	return await(name, "with another disk", func(vm *otv1alpha1.VirtualMachine, s *scene) bool {
		disk := vm.Status.Disk
		return endOf(vm) == end && disk != nil && disk.UID != "" && string(disk.UID) != s.seen["disk of "+name]
	})
}

// deleteGuest deletes KubeVirt's machine.
func deleteGuest(name string) Step {
	return act("delete KubeVirt's "+name, func(ctx context.Context, s *scene) error {
		return s.Client.Delete(ctx, &virtv1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}})
	})
}

// awaitGuest waits until there is a new one of KubeVirt's machines.
func awaitGuest(name string) Step {
	return Step{Name: "await KubeVirt's " + name, Do: func(ctx context.Context, s *scene) error {
		return s.await(ctx, func(e history.Event) bool {
			guest, ok := history.As[*virtv1.VirtualMachine](e)
			return ok && e.Created() && guest.Name == name
		})
	}}
}

// awaitUsers waits until the image counts so many.
func awaitUsers(count int32) Step {
	return awaitImage(fmt.Sprint("with users: ", count), func(i *otv1alpha1.VMDiskImage) bool {
		return i.Status.References != nil && i.Status.References.Count == count
	})
}

// refused is a step that the API server must not let pass.
func refused(step Step) Step {
	return Step{Name: step.Name + ", which is refused", Do: func(ctx context.Context, s *scene) error {
		if err := step.Do(ctx, s); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			return fmt.Errorf("it was not refused: %w", err)
		}
		return nil
	}}
}

// untilLet tries a step until the API server lets it pass.
func untilLet(step Step) Step {
	return Step{Name: step.Name + " as soon as it may be", Do: func(ctx context.Context, s *scene) error {
		for {
			err := step.Do(ctx, s)
			if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || ctx.Err() != nil {
				return err
			}
			time.Sleep(25 * time.Millisecond)
		}
	}}
}

func deleteImage() Step {
	return act("delete the image", func(ctx context.Context, s *scene) error { return s.Client.Delete(ctx, lab.Image(s.images, image, "")) })
}
