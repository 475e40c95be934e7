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
)

const (
	firstRetry  = 50 * time.Millisecond
	lastRetry   = 5 * time.Second
	gracePeriod = 30 // of importer pods, in seconds
)

// play is the import of one DataVolume: a script from the claim to Succeeded, or to where it stays.
type play struct {
	*Simulator

	dv     *cdiv1.DataVolume // with the status as last written
	source source
	claim  *corev1.PersistentVolumeClaim // with the annotations as last written
	prime  *corev1.PersistentVolumeClaim
	view   claimView
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
	p.removePod(ctx, p.pod, gracePeriod)
}

func (p *play) run(ctx context.Context) (err error) {
	if p.source, err = sourceOf(p.dv); err != nil {
		return err
	}
	if err := p.makeClaim(ctx); err != nil {
		return err
	}
	if err := p.makePrime(ctx); err != nil {
		return err
	}
	scratch := p.source.needsScratch()
	for {
		end, err := p.runPod(ctx, scratch)
		if err != nil {
			return err
		}
		switch end {
		case endComplete:
			return p.finish(ctx)
		case endChecksum:
			return p.deletePod(ctx)
		case endScratch:
			scratch = true
			err = p.deletePod(ctx)
		case endFailed, endKilled: // a pod that has failed stays until somebody deletes it, then CDI makes another one
			scratch = p.source.needsScratch()
			err = p.waitForPodToGo(ctx)
		}
		if err != nil {
			return err
		}
	}
}

func (p *play) behaviour() Behaviour { return p.options.Behaviour(p.dv) }

// step pauses for a part of Options.Step.
func (p *play) step(ctx context.Context, part float64) error {
	return p.pause(ctx, time.Duration(part*float64(p.options.Step)))
}

// holdAt waits as long as the DataVolume is to stay in a phase.
func (p *play) holdAt(ctx context.Context, phase cdiv1.DataVolumePhase) error {
	return p.until(ctx, func() bool { return p.behaviour().StopAt != phase })
}

// makeClaim creates the claim of the DataVolume, or finds it.
func (p *play) makeClaim(ctx context.Context) error {
	if err := p.annotateDataVolume(ctx); err != nil {
		return err
	}
	if p.behaviour().StopAt == cdiv1.Pending {
		if err := p.writeStatus(ctx, nextStatus(p.dv.Status, nil, metav1.Now())); err != nil {
			return err
		}
	}
	if err := p.holdAt(ctx, cdiv1.Pending); err != nil {
		return err
	}
	if message := p.behaviour().QuotaExceeded; message != "" {
		if err := p.writeStatus(ctx, refusedStatus(p.dv.Status, reasonQuota, message, metav1.Now())); err != nil {
			return err
		}
		if err := p.until(ctx, func() bool { return p.behaviour().QuotaExceeded == "" }); err != nil {
			return err
		}
	}
	claim, err := p.createOwned(ctx, claimFor(p.dv), p.dv)
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota") {
		return errors.Join(err, p.writeStatus(ctx, refusedStatus(p.dv.Status, reasonQuota, err.Error(), metav1.Now())))
	}
	if err != nil {
		return err
	}
	p.claim = claim
	p.view = claimView{name: claim.Name, phase: corev1.ClaimPending, annotations: maps.Clone(claim.Annotations)}
	delete(p.view.annotations, annPodPhase) // of a play that was broken off
	if p.behaviour().StopAt == cdiv1.PendingPopulation {
		next := nextStatus(p.dv.Status, &p.view, metav1.Now())
		next.Phase = cdiv1.PendingPopulation
		if err := errors.Join(p.writeStatus(ctx, next), p.holdAt(ctx, cdiv1.PendingPopulation)); err != nil {
			return err
		}
	}
	return p.report(ctx)
}

func (p *play) annotateDataVolume(ctx context.Context) error {
	if p.dv.Annotations[annUsePopulator] != "" {
		return nil
	}
	before := p.dv.DeepCopy()
	metav1.SetMetaDataAnnotation(&p.dv.ObjectMeta, annUsePopulator, "true")
	return p.client.Patch(ctx, p.dv, client.MergeFrom(before))
}

// makePrime creates the prime claim, or finds it, and provisions its volume.
func (p *play) makePrime(ctx context.Context) error {
	prime, err := p.createOwned(ctx, primeFor(p.claim, p.source), p.claim)
	if err != nil {
		return err
	}
	p.prime = prime
	p.set(annPrimeName, prime.Name)
	p.setBoundMessage(fmt.Sprintf("External provisioner is provisioning volume for claim %q", prime.Namespace+"/"+prime.Name))
	if err := errors.Join(p.report(ctx), p.step(ctx, 0.1)); err != nil {
		return err
	}
	if err := p.bind(ctx, p.prime, volumeName(p.prime)); err != nil {
		return err
	}
	before := p.prime.DeepCopy()
	metav1.SetMetaDataAnnotation(&p.prime.ObjectMeta, annImportPod, importerName+"-"+prime.Name)
	if err := p.client.Patch(ctx, p.prime, client.MergeFrom(before)); err != nil {
		return err
	}
	p.view.importing = true
	p.setBoundMessage("Successfully provisioned volume " + volumeName(p.prime))
	return p.report(ctx)
}

// finish hands the volume over to the claim. Succeeded comes before the claim is bound.
func (p *play) finish(ctx context.Context) error {
	p.set(annPodPhase, string(corev1.PodSucceeded), annPopulatorProgress, progressDone)
	p.setBoundMessage("Import Successful")
	if err := errors.Join(p.report(ctx), p.deletePod(ctx), p.step(ctx, 0.2)); err != nil {
		return err
	}
	if err := p.bind(ctx, p.claim, volumeName(p.prime)); err != nil {
		return err
	}
	p.view.phase = corev1.ClaimBound
	for _, key := range []string{annBound, annBoundMessage, annBoundReason} {
		delete(p.view.annotations, key)
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
	p.view.phase = corev1.ClaimLost
	return errors.Join(p.setClaimStatus(ctx, p.claim, corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimLost}), p.report(ctx))
}

// set changes annotations: key, value, key, value ...
func (p *play) set(pairs ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		p.view.annotations[pairs[i]] = pairs[i+1]
	}
}

// setBoundMessage is what CDI takes from the events of the prime claim.
func (p *play) setBoundMessage(message string) {
	p.set(annBound, "false", annBoundReason, "Pending", annBoundMessage, message)
}

func (p *play) setRunning(running, reason, message string) {
	p.set(annRunning, running, annRunningReason, reason, annRunningMessage, message)
}

// report writes the claim's annotations and the DataVolume's status where they have changed.
func (p *play) report(ctx context.Context) error {
	if !maps.Equal(p.claim.Annotations, p.view.annotations) {
		before := p.claim.DeepCopy()
		p.claim.Annotations = maps.Clone(p.view.annotations)
		if err := p.client.Patch(ctx, p.claim, client.MergeFrom(before)); err != nil {
			return err
		}
		p.view.annotations = maps.Clone(p.claim.Annotations)
	}
	return p.writeStatus(ctx, nextStatus(p.dv.Status, &p.view, metav1.Now()))
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
