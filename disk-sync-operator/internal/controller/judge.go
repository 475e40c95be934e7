package controller

import (
	"context"
	"fmt"
	"slices"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// judgement is what admission knows of the policy's allowedSources. A URL is looked at once for each event of its image,
// and once when allowedSources change.
type judgement struct {
	sources []policy.Source
	known   bool // the first round has read them
	whole   bool // every image has been looked at since they changed
}

// judge has every image looked at again when allowedSources are others than at the last round, before any slot is given.
func (a *Admission) judge(ctx context.Context, p policy.Policy) error {
	if !a.adopt(p.AllowedSources) {
		return nil
	}
	images := &v1alpha1.VMDiskImageList{}
	if err := a.client.List(ctx, images, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the images for the new allowedSources: %w", err)
	}
	a.judgeAll(images.Items)
	return nil
}

// judgeAll looks at every image.
func (a *Admission) judgeAll(images []v1alpha1.VMDiskImage) {
	for i := range images {
		if a.knows(&images[i]) {
			a.imageSeen(&images[i])
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.judged.whole = true
}

// adopt takes in the sources, so that every event from now on is judged by them, and says whether there is an image that
// may have been judged by others.
func (a *Admission) adopt(sources []policy.Source) (news bool) {
	same := func(x, y policy.Source) bool { return x.String() == y.String() }
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.judged.known || !slices.EqualFunc(a.judged.sources, sources, same) {
		a.judged = judgement{sources: sources, known: true}
	}
	return !a.judged.whole
}

// knows says that the image has been seen, and not that it is gone.
func (a *Admission) knows(image *v1alpha1.VMDiskImage) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, known := a.images[holderIdentity(image)]
	return known
}

// misjudged says that the image has to be looked at for its source. Before the first round nobody knows: it will look at
// all images.
func (a *Admission) misjudged(image *v1alpha1.VMDiskImage) bool {
	a.mu.Lock()
	j := a.judged
	a.mu.Unlock()
	return j.known && plan.Misjudged(image, policy.Policy{AllowedSources: j.sources})
}
