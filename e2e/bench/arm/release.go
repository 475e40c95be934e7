package arm

import (
	"context"
	"fmt"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/bench/audit"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Release is the deletion of all VirtualMachines of a load.
type Release struct {
	// Wall is the time from the first deletion until no image counts any of them.
	Wall        time.Duration `json:"wallNs"`
	Count       audit.Count   `json:"count"`
	ImageWrites int           `json:"imageWrites"`
}

// release deletes what the load has created. No garbage collector runs: of the children, only what the operator does itself is
// seen.
func (l *Lab) release(ctx context.Context, prefix string) (*Release, error) {
	began := time.Now()
	err := l.crowd(ctx, l.Load.Units(), func(ctx context.Context, i int) error {
		return l.client.Delete(ctx, l.task.object(l, prefix, i))
	})
	if err != nil {
		return nil, fmt.Errorf("delete the machines: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, poll, l.timeout(l.Load.Units()), true, func(ctx context.Context) (bool, error) {
		var images otv1alpha1.VMDiskImageList
		if err := l.client.List(ctx, &images, client.InNamespace(imageNamespace)); err != nil {
			return false, err
		}
		counted := int32(0)
		for i := range images.Items {
			if references := images.Items[i].Status.References; references != nil && images.Items[i].Name != goldenName(Primer, 0) {
				counted += references.Count
			}
		}
		return counted == 0, l.subject.alive()
	})
	if err != nil {
		return nil, fmt.Errorf("wait until no image counts a machine: %w", err)
	}
	r := &Release{Wall: time.Since(began)}
	if err := l.Quiet(ctx, 2*time.Second, drainTimeout); err != nil {
		return nil, err
	}
	entries, err := audit.Read(l.cluster.AuditLog)
	r.Count = l.since(began).Count(entries)
	r.ImageWrites = l.since(began).Of("vmdiskimages").Count(entries).Writes
	return r, err
}
