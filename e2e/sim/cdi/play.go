package cdi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pelotech/open-terrain/e2e/sim/cdi/clone"
	"github.com/pelotech/open-terrain/e2e/sim/cdi/objects"
	"github.com/pelotech/open-terrain/e2e/sim/cdi/volumes"
)

const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// play is the import of one DataVolume: a script from the claim to Succeeded, or to where it stays.
type play struct {
	*Simulator

	dv     *cdiv1.DataVolume // with the status as last written
	source objects.Source
	claim  *corev1.PersistentVolumeClaim // with the annotations as last written
	prime  *corev1.PersistentVolumeClaim
	view   objects.View
	pod    *corev1.Pod // the last one made, as last written
	shared *running
}

// perform plays a DataVolume until the end or until ctx is done, and starts again after errors of the API server.
func (s *Simulator) perform(ctx context.Context, dv *cdiv1.DataVolume, shared *running) {
	log := ctrl.Log.WithName("sim-cdi").WithValues("dataVolume", client.ObjectKeyFromObject(dv))
	for retry := firstRetry; ; retry = min(2*retry, lastRetry) {
		p := &play{Simulator: s, dv: dv, shared: shared}
		err := p.run(ctx)
		if ctx.Err() != nil {
			p.abandon()
			return
		}
		if err == nil {
			return
		}
		log.V(1).Info("try again", "error", err.Error())
		p.abandon()
		if s.pause(ctx, retry) != nil {
			return
		}
		if dv = s.reread(ctx, dv); dv == nil {
			return
		}
	}
}

// reread returns a DataVolume as it is now, or nil when it is gone or going.
func (s *Simulator) reread(ctx context.Context, dv *cdiv1.DataVolume) *cdiv1.DataVolume {
	now := &cdiv1.DataVolume{}
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(dv), now); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return dv
	}
	if now.UID != dv.UID || now.DeletionTimestamp != nil {
		return nil
	}
	return now
}

// finished is true when there is nothing to do for a DataVolume that a former simulator has brought to its end.
func finished(dv *cdiv1.DataVolume) bool {
	for _, c := range dv.Status.Conditions {
		if c.Type == cdiv1.DataVolumeBound && c.Status == corev1.ConditionTrue {
			return dv.Status.Phase == cdiv1.Succeeded
		}
	}
	return dv.Status.Phase == cdiv1.Failed
}

// abandon deletes the pod of a play that is over, as CDI does when the claim is being deleted.
func (p *play) abandon() {
	if p.pod == nil || p.behaviour().LatePodDeletion {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastRetry)
	defer cancel()
	p.kubelet.Delete(ctx, p.pod)
}

func (p *play) run(ctx context.Context) (err error) {
	if clone.Is(p.dv) {
		return p.clone(ctx)
	}
	if p.source, err = objects.SourceOf(p.dv); err != nil {
		return err
	}
	if err := p.makeClaim(ctx); err != nil {
		return err
	}
	if err := p.makePrime(ctx); err != nil {
		return err
	}
	scratch := p.source.NeedsScratch()
	for {
		outcome, err := p.runPod(ctx, scratch)
		if err != nil {
			return err
		}
		switch outcome {
		case objects.Complete:
			return p.finish(ctx)
		case objects.WrongChecksum:
			return p.deletePod(ctx)
		case objects.NeedsScratch:
			scratch = true
			err = p.deletePod(ctx)
		default: // a pod that has failed stays until somebody deletes it, then CDI makes another one
			scratch = p.source.NeedsScratch()
			err = p.waitForPodToGo(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// clone plays a DataVolume whose source is in the cluster.
func (p *play) clone(ctx context.Context) error {
	c := clone.Play{
		Client: p.client, DV: p.dv, Step: p.options.Step, Instant: p.options.Instant != nil, Hold: p.holdAt, Write: p.writeStatus,
	}
	return c.Run(ctx)
}

func (p *play) behaviour() Behaviour { return p.options.Behaviour(p.dv) }

// holdAt waits as long as the DataVolume is to stay in a phase.
func (p *play) holdAt(ctx context.Context, phase cdiv1.DataVolumePhase) error {
	return p.until(ctx, func() bool { return p.behaviour().StopAt != phase })
}

// makeClaim creates the claim of the DataVolume, or finds it.
func (p *play) makeClaim(ctx context.Context) error {
	if err := p.annotateDataVolume(ctx); err != nil {
		return err
	}
	if err := p.holdBeforeClaim(ctx); err != nil {
		return err
	}
	claim, err := p.volumes.Make(ctx, objects.Claim(p.dv), p.dv)
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota") {
		return errors.Join(err, p.writeStatus(ctx, objects.RefusedStatus(p.dv.Status, objects.ReasonQuota, err.Error(), metav1.Now())))
	}
	if err != nil {
		return err
	}
	p.claim = claim
	p.view = objects.View{Name: claim.Name, Phase: corev1.ClaimPending, Annotations: maps.Clone(claim.Annotations)}
	delete(p.view.Annotations, objects.AnnPodPhase) // of a play that was broken off
	if p.behaviour().StopAt == cdiv1.PendingPopulation {
		next := objects.NextStatus(p.dv.Status, &p.view, metav1.Now())
		next.Phase = cdiv1.PendingPopulation
		if err := errors.Join(p.writeStatus(ctx, next), p.holdAt(ctx, cdiv1.PendingPopulation)); err != nil {
			return err
		}
	}
	return p.report(ctx)
}

// holdBeforeClaim is where a DataVolume stays that is to be Pending for ever, or beyond its quota.
func (p *play) holdBeforeClaim(ctx context.Context) error {
	if p.behaviour().StopAt == cdiv1.Pending {
		if err := p.writeStatus(ctx, objects.NextStatus(p.dv.Status, nil, metav1.Now())); err != nil {
			return err
		}
	}
	if err := p.holdAt(ctx, cdiv1.Pending); err != nil {
		return err
	}
	message := p.behaviour().QuotaExceeded
	if message == "" {
		return nil
	}
	if err := p.writeStatus(ctx, objects.RefusedStatus(p.dv.Status, objects.ReasonQuota, message, metav1.Now())); err != nil {
		return err
	}
	return p.until(ctx, func() bool { return p.behaviour().QuotaExceeded == "" })
}

func (p *play) annotateDataVolume(ctx context.Context) error {
	if p.dv.Annotations[objects.AnnUsePopulator] != "" {
		return nil
	}
	before := p.dv.DeepCopy()
	metav1.SetMetaDataAnnotation(&p.dv.ObjectMeta, objects.AnnUsePopulator, "true")
	return p.client.Patch(ctx, p.dv, client.MergeFrom(before))
}

// makePrime creates the prime claim, or finds it, and provisions its volume.
func (p *play) makePrime(ctx context.Context) error {
	prime, err := p.volumes.Make(ctx, objects.Prime(p.claim, p.source), p.claim)
	if err != nil {
		return err
	}
	p.prime = prime
	p.view.Set(objects.AnnPrimeName, prime.Name)
	p.view.SetBoundMessage(fmt.Sprintf("External provisioner is provisioning volume for claim %q", prime.Namespace+"/"+prime.Name))
	if err := errors.Join(p.report(ctx), p.pause(ctx, p.options.Step/10)); err != nil {
		return err
	}
	if err := p.volumes.Bind(ctx, p.prime, volumes.Name(p.prime)); err != nil {
		return err
	}
	before := p.prime.DeepCopy()
	metav1.SetMetaDataAnnotation(&p.prime.ObjectMeta, objects.AnnImportPod, objects.ImporterName+"-"+prime.Name)
	if err := p.client.Patch(ctx, p.prime, client.MergeFrom(before)); err != nil {
		return err
	}
	p.view.Importing = true
	p.view.SetBoundMessage("Successfully provisioned volume " + volumes.Name(p.prime))
	return p.report(ctx)
}

// finish hands the volume over to the claim. Succeeded comes before the claim is bound.
func (p *play) finish(ctx context.Context) error {
	if err := errors.Join(p.deletePod(ctx), p.pause(ctx, p.options.Step/5)); err != nil {
		return err
	}
	if err := p.volumes.Bind(ctx, p.claim, volumes.Name(p.prime)); err != nil {
		return err
	}
	p.view.Phase = corev1.ClaimBound
	for _, key := range []string{objects.AnnBound, objects.AnnBoundMessage, objects.AnnBoundReason} {
		delete(p.view.Annotations, key)
	}
	if err := p.report(ctx); err != nil {
		return err
	}
	if err := client.IgnoreNotFound(p.client.Delete(ctx, p.prime)); err != nil {
		return err
	}
	if err := p.until(ctx, func() bool { return p.behaviour().LoseClaim }); err != nil {
		return nil //nolint:nilerr // the DataVolume is gone, which is how all good imports end
	}
	p.view.Phase = corev1.ClaimLost
	return errors.Join(p.volumes.SetStatus(ctx, p.claim, corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimLost}), p.report(ctx))
}

// report writes the claim's annotations and the DataVolume's status where they have changed.
func (p *play) report(ctx context.Context) error {
	if !maps.Equal(p.claim.Annotations, p.view.Annotations) {
		before := p.claim.DeepCopy()
		p.claim.Annotations = maps.Clone(p.view.Annotations)
		if err := p.client.Patch(ctx, p.claim, client.MergeFrom(before)); err != nil {
			return err
		}
		p.view.Annotations = maps.Clone(p.claim.Annotations)
	}
	if p.claim.DeletionTimestamp != nil {
		return nil // CDI looks again when the claim is gone
	}
	return p.writeStatus(ctx, objects.NextStatus(p.dv.Status, &p.view, metav1.Now()))
}

func (s *Simulator) setStatus(ctx context.Context, dv *cdiv1.DataVolume, next cdiv1.DataVolumeStatus) error {
	if last := s.options.Behaviour(dv).Status; last != nil {
		last(&next)
	}
	if equality.Semantic.DeepEqual(dv.Status, next) {
		return nil
	}
	before := dv.DeepCopy()
	dv.Status = next
	return s.client.Status().Patch(ctx, dv, client.MergeFrom(before))
}

func (p *play) writeStatus(ctx context.Context, next cdiv1.DataVolumeStatus) error {
	return p.setStatus(ctx, p.dv, next)
}
