// Package clone plays CDI's clones: DataVolumes whose source is a VolumeSnapshot or a claim, of any namespace.
//
// A clone goes through a claim in the source's namespace, tmp-pvc-UID, that is Pending while the snapshot is restored into
// it, and whose volume the DataVolume's own claim gets in the end. Phases and conditions are those seen on CDI v1.65, with
// a storage class that can expand volumes. What is not played: the snapshot that CDI takes of a claim that is cloned (the
// phase SnapshotForSmartCloneInProgress shows, and the claim must be bound), copies through pods, tokens, and the right of
// the user to clone from another namespace.
package clone

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pelotech/open-terrain/e2e/sim/cdi/objects"
	"github.com/pelotech/open-terrain/e2e/sim/cdi/volumes"
)

const (
	// look is how often a source is looked at that does not fit, or is not ready.
	look    = 50 * time.Millisecond
	tidying = 5 * time.Second
)

// Play is the clone of one DataVolume, from its source to Succeeded.
type Play struct {
	Client client.Client
	// DV with the status as last written.
	DV *cdiv1.DataVolume
	// Step is the pause at each place where the real CDI takes about a second.
	Step time.Duration
	// Instant leaves the phases between the first and the last one out: three writes make a clone. It can be held at
	// CloneScheduled all the same.
	Instant bool
	// Hold returns when the DataVolume may leave a phase.
	Hold func(context.Context, cdiv1.DataVolumePhase) error
	// Write replaces the status of DV.
	Write func(context.Context, cdiv1.DataVolumeStatus) error

	source source
	found  found
	claim  *corev1.PersistentVolumeClaim
	view   objects.View
}

// Run plays until Succeeded. Errors are the API server's, or the context's.
func (p *Play) Run(ctx context.Context) error {
	p.source = sourceOf(p.DV)
	if err := p.awaitSource(ctx); err != nil {
		return err
	}
	if err := p.makeClaim(ctx); err != nil {
		return err
	}
	if p.claim.Status.Phase == corev1.ClaimBound { // of a play that was broken off
		return p.finish(ctx)
	}
	if err := p.awaitConsumer(ctx); err != nil {
		return err
	}
	volume := volumes.Name(p.claim)
	if !p.Instant {
		restored, err := p.restore(ctx)
		defer p.tidy(restored)
		if err != nil {
			return err
		}
		volume = restored.Spec.VolumeName
	}
	if err := (volumes.Provisioner{Client: p.Client}).Bind(ctx, p.claim, volume); err != nil {
		return err
	}
	return p.finish(ctx)
}

func (p *Play) elsewhere() bool { return p.source.key.Namespace != p.DV.Namespace }

// awaitSource waits for a source that fits, and tells what is wrong with it until then.
func (p *Play) awaitSource(ctx context.Context) (err error) {
	if p.elsewhere() && !p.Instant && p.DV.Status.Phase == cdiv1.PhaseUnset {
		if err := p.Write(ctx, objects.NextStatus(p.DV.Status, nil, metav1.Now())); err != nil {
			return err
		}
	}
	for {
		p.found, err = p.source.find(ctx, p.Client, p.DV)
		why, isUnfit := errors.AsType[unfit](err)
		if !isUnfit {
			return err
		}
		if err := p.Write(ctx, objects.RefusedStatus(p.DV.Status, why.reason, why.message, metav1.Now())); err != nil {
			return err
		}
		if err := pause(ctx, look); err != nil {
			return err
		}
	}
}

func (p *Play) makeClaim(ctx context.Context) (err error) {
	if p.elsewhere() && !p.Instant {
		message := fmt.Sprintf("Cloning from %s into %s/%s scheduled", p.source.key, p.DV.Namespace, p.DV.Name)
		if err := p.Write(ctx, objects.ScheduledStatus(p.DV.Status, message, metav1.Now())); err != nil {
			return err
		}
	}
	claim := objects.CloneClaim(p.DV, p.found.size, p.source.key.Namespace)
	p.claim, err = (volumes.Provisioner{Client: p.Client}).Make(ctx, claim, p.DV)
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota") {
		return errors.Join(err, p.Write(ctx, objects.RefusedStatus(p.DV.Status, objects.ReasonQuota, err.Error(), metav1.Now())))
	}
	if err != nil {
		return err
	}
	p.view = objects.View{Name: p.claim.Name, Phase: corev1.ClaimPending, Annotations: map[string]string{}}
	p.view.SetRunning("false", "Pending", "Clone Pending")
	if p.Instant {
		return p.Hold(ctx, cdiv1.CloneScheduled)
	}
	return p.stay(ctx, cdiv1.CloneScheduled)
}

// restore goes through the phases of a clone and returns the claim that holds the restored volume, also with an error.
func (p *Play) restore(ctx context.Context) (*corev1.PersistentVolumeClaim, error) {
	p.view.SetRunning("true", objects.ReasonPopulatorRunning, "")
	snapshot := p.source.key.Name
	if p.source.kind == ofClaim {
		snapshot = "" // CDI's own
		if err := p.stay(ctx, cdiv1.SnapshotForSmartCloneInProgress); err != nil {
			return nil, err
		}
	}
	restored := objects.RestoreClaim(p.claim, p.source.key.Namespace, snapshot, p.found.size)
	err := p.Client.Create(ctx, restored)
	if apierrors.IsAlreadyExists(err) {
		err = p.Client.Get(ctx, client.ObjectKeyFromObject(restored), restored)
	}
	if err != nil {
		return nil, err
	}
	if err := p.stay(ctx, cdiv1.CloneFromSnapshotSourceInProgress); err != nil {
		return restored, err
	}
	if err := p.awaitReady(ctx); err != nil {
		return restored, err
	}
	if err := (volumes.Provisioner{Client: p.Client}).Bind(ctx, restored, volumes.Name(restored)); err != nil {
		return restored, err
	}
	if p.claim.Spec.Resources.Requests.Storage().Cmp(p.found.size) > 0 {
		if err := p.stay(ctx, cdiv1.PrepClaimInProgress); err != nil {
			return restored, err
		}
	}
	if p.elsewhere() {
		return restored, nil
	}
	return restored, p.stay(ctx, cdiv1.RebindInProgress)
}

// awaitReady waits until the source can be read. One that is gone, or another one of that name, is an error for good.
func (p *Play) awaitReady(ctx context.Context) error {
	for {
		now, err := p.source.read(ctx, p.Client)
		gone := apierrors.IsNotFound(err) || (err == nil && now.uid != p.found.uid)
		switch {
		case gone && p.view.Annotations[objects.AnnRunningReason] != objects.ReasonError:
			p.view.SetRunning("false", objects.ReasonError, fmt.Sprintf("source %s does not exist", p.source.kind))
			err = p.write(ctx, cdiv1.CloneFromSnapshotSourceInProgress)
		case gone:
			err = nil
		case err == nil && now.ready:
			return nil
		}
		if err := errors.Join(err, pause(ctx, look)); err != nil {
			return err
		}
	}
}

// stay shows a phase and returns when it is over.
func (p *Play) stay(ctx context.Context, phase cdiv1.DataVolumePhase) error {
	if err := p.write(ctx, phase); err != nil {
		return err
	}
	return errors.Join(p.Hold(ctx, phase), pause(ctx, p.Step/2))
}

func (p *Play) write(ctx context.Context, phase cdiv1.DataVolumePhase) error {
	return p.Write(ctx, objects.CloneStatus(p.DV.Status, phase, &p.view, metav1.Now()))
}

func (p *Play) finish(ctx context.Context) error {
	p.view.Phase = corev1.ClaimBound
	p.view.SetRunning("false", objects.ReasonCompleted, objects.MessageCloneComplete)
	return p.write(ctx, cdiv1.Succeeded)
}

// tidy removes the claim of the restore, also when the DataVolume is gone and the context with it.
func (p *Play) tidy(restored *corev1.PersistentVolumeClaim) {
	if restored == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), tidying)
	defer cancel()
	_ = p.Client.Delete(ctx, restored) // at worst it stays
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
