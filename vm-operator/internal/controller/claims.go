package controller

import (
	"context"
	"sync"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
	"github.com/pelotech/open-terrain/vm-operator/internal/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Claims keep the references of images: for each the count of the VirtualMachines that use it, derived from those that
// exist. The first of them waits for nothing. As long as others come or go, one write follows the other in pauses that double, from
// the interval to eight times that, or when many have come together: a class of 500 costs a few writes, however long it takes.
type Claims struct {
	client   client.Client
	cache    client.Reader
	interval time.Duration
	now      func() time.Time
	metrics  *metrics
	// wake has a VirtualMachine looked at that an image has begun to count.
	wake func(types.NamespacedName)

	mu     sync.Mutex
	images map[types.NamespacedName]claimed
}

// claimed is what this process knows of one image: whom its references include.
type claimed struct {
	image   types.UID
	holders map[types.UID]struct{}
	written time.Time
	// pause is how long the next write waits after that, if few have come or gone.
	pause time.Duration
}

const (
	// longest is the longest pause, in intervals.
	longest = 8
	// many is how many that come or go are worth a write before the pause is over.
	many = 32
)

// counts says that this very image was seen, or made, to count the VirtualMachine. It goes on doing so for as long as both
// exist: each later write counts anew.
func (c *Claims) counts(image *v1alpha1.VMDiskImage, vm *v1alpha1.VirtualMachine) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.images[client.ObjectKeyFromObject(image)]
	_, counted := known.holders[vm.UID]
	return counted && known.image == image.UID
}

// Reconcile brings the references of one image to the truth.
func (c *Claims) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	key := req.NamespacedName
	known := c.known(key)
	if rest := known.written.Add(c.interval).Sub(c.now()); rest > 0 {
		return reconcile.Result{RequeueAfter: rest}, nil
	}
	image := &v1alpha1.VMDiskImage{}
	if found, err := read(ctx, c.client, key, image); err != nil || !found {
		if !found && err == nil {
			c.forget(key)
		}
		return reconcile.Result{}, err
	}
	return c.count(ctx, image, known)
}

// count the VirtualMachines of an image, and write the count if it is another one.
func (c *Claims) count(ctx context.Context, image *v1alpha1.VMDiskImage, known claimed) (reconcile.Result, error) {
	holders, err := c.holders(ctx, image)
	if err != nil {
		return reconcile.Result{}, err
	}
	next, write := plan.References(image, holders, metav1.NewTime(c.now()))
	if rest := known.written.Add(known.pause).Sub(c.now()); write && rest > 0 && known.changes(image, holders) < many {
		return reconcile.Result{RequeueAfter: min(rest, c.interval)}, nil
	}
	if write {
		if err := c.write(ctx, image, next); err != nil {
			return later(err)
		}
	}
	c.note(image, holders, write)
	return reconcile.Result{}, nil
}

// holders are the VirtualMachines that count for the image.
func (c *Claims) holders(ctx context.Context, image *v1alpha1.VMDiskImage) ([]plan.Holder, error) {
	vms := &v1alpha1.VirtualMachineList{}
	key := client.ObjectKeyFromObject(image)
	if err := c.cache.List(ctx, vms, client.MatchingFields{vmImage: key.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, wrap("list the virtual machines of "+key.String(), err)
	}
	facts, err := c.facts(ctx, image, vms.Items)
	return plan.Holders(image, vms.Items, facts), err
}

// facts about the VirtualMachines: the labels of their namespaces and, where that matters, whether they have a disk. That is
// read with the client that shows what this process has written.
func (c *Claims) facts(ctx context.Context, image *v1alpha1.VMDiskImage, vms []v1alpha1.VirtualMachine) (plan.Facts, error) {
	labels, disks := map[string]map[string]string{}, map[types.UID]bool{}
	for i := range vms {
		vm := &vms[i]
		if _, known := labels[vm.Namespace]; !known && vm.Namespace != image.Namespace {
			of, _, err := namespaceLabels(ctx, c.cache, vm.Namespace)
			if err != nil {
				return plan.Facts{}, err
			}
			labels[vm.Namespace] = of
		}
		if image.DeletionTimestamp != nil && vm.Status.Disk == nil {
			found, err := read(ctx, c.client, childKey(vm), &cdiv1.DataVolume{})
			if err != nil {
				return plan.Facts{}, err
			}
			disks[vm.UID] = found
		}
	}
	return plan.Facts{
		Labels:  func(namespace string) map[string]string { return labels[namespace] },
		HasDisk: func(vm *v1alpha1.VirtualMachine) bool { return disks[vm.UID] },
	}, nil
}

// +kubebuilder:rbac:groups=pelotech.ot,resources=vmdiskimages/status,verbs=patch

// write is bound to the image that was looked at: a change in between, or another image of that name, is a conflict.
func (c *Claims) write(ctx context.Context, image *v1alpha1.VMDiskImage, next v1alpha1.References) error {
	apply, err := status.References(image, next)
	if err != nil {
		return err
	}
	if err := c.client.Status().Apply(ctx, apply, client.FieldOwner(ReferencesFieldOwner), client.ForceOwnership); err != nil {
		return wrap("write the references", err)
	}
	log.FromContext(ctx).Info("references written", "count", next.Count)
	c.metrics.claimWrites.Inc()
	return nil
}

// note remembers whom the image counts, and wakes those that it did not count before.
func (c *Claims) note(image *v1alpha1.VMDiskImage, holders []plan.Holder, written bool) {
	key := client.ObjectKeyFromObject(image)
	c.mu.Lock()
	former := c.images[key]
	if former.image != image.UID {
		former = claimed{}
	}
	next := claimed{image: image.UID, holders: make(map[types.UID]struct{}, len(holders)), written: former.written, pause: former.pause}
	var counted []types.NamespacedName
	for _, holder := range holders {
		next.holders[holder.UID] = struct{}{}
		if _, was := former.holders[holder.UID]; !was {
			counted = append(counted, holder.Key)
		}
	}
	if written {
		next.written, next.pause = c.now(), c.pauseAfter(former)
	}
	c.images[key] = next
	c.mu.Unlock()
	for _, vm := range counted {
		c.wake(vm)
	}
}

// pauseAfter is the next pause: a longer one, as long as one write follows the other.
func (c *Claims) pauseAfter(former claimed) time.Duration {
	if c.now().Sub(former.written) > former.pause+c.interval {
		return c.interval
	}
	return min(2*former.pause, longest*c.interval)
}

// changes is how many have come or gone since the image was looked at last.
func (k claimed) changes(image *v1alpha1.VMDiskImage, holders []plan.Holder) int {
	if k.image != image.UID {
		return many
	}
	stayed := 0
	for _, holder := range holders {
		if _, was := k.holders[holder.UID]; was {
			stayed++
		}
	}
	return len(holders) + len(k.holders) - 2*stayed
}

func (c *Claims) known(key types.NamespacedName) claimed {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.images[key]
}

func (c *Claims) forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.images, key)
}

// later looks again after a conflict, when the cache has had time to show what was in the way.
func later(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}
