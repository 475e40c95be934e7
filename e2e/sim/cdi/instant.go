package cdi

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pelotech/open-terrain/e2e/sim/cdi/objects"
)

// instantState is how far a DataVolume is that is played without pods.
type instantState struct {
	uid   types.UID
	since time.Time
	claim *corev1.PersistentVolumeClaim // nil before it is made
	ended bool
}

// playInstantly brings a DataVolume to its end with three writes.
func (s *Simulator) playInstantly(ctx context.Context, dv *cdiv1.DataVolume) (reconcile.Result, error) {
	state, behaviour := s.instantStateOf(dv), s.options.Behaviour(dv)
	switch {
	case state.ended:
		return reconcile.Result{}, nil
	case behaviour.StopAt != "":
		next := objects.NextStatus(dv.Status, nil, metav1.Now())
		next.Phase = behaviour.StopAt
		return reconcile.Result{}, s.endInstantly(ctx, dv, state, next)
	case behaviour.QuotaExceeded != "":
		return reconcile.Result{}, s.endInstantly(ctx, dv, state, objects.RefusedStatus(dv.Status, objects.ReasonQuota, behaviour.QuotaExceeded, metav1.Now()))
	}
	if state.claim == nil {
		if err := s.claimInstantly(ctx, dv, state); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	duration := s.options.Instant.Duration
	if behaviour.Duration != nil {
		duration = *behaviour.Duration
	}
	if rest := duration - time.Since(state.since); rest > 0 {
		return reconcile.Result{RequeueAfter: rest}, nil
	}
	view := objects.View{Name: dv.Name, Phase: corev1.ClaimPending, Importing: true, Annotations: map[string]string{}}
	if behaviour.Fail != "" {
		view.Set(objects.AnnPodPhase, string(corev1.PodFailed), objects.AnnPrimeName, objects.PrimeName(state.claim))
		view.SetFailure(objects.ReasonError, behaviour.Fail)
		return reconcile.Result{}, s.endInstantly(ctx, dv, state, objects.NextStatus(dv.Status, &view, metav1.Now()))
	}
	if err := s.volumes.Bind(ctx, state.claim, state.claim.Spec.VolumeName); err != nil {
		return reconcile.Result{}, err
	}
	view.Phase = corev1.ClaimBound
	view.Set(objects.AnnPodPhase, string(corev1.PodSucceeded), objects.AnnPopulatorProgress, objects.ProgressDone)
	view.SetRunning("false", objects.ReasonCompleted, objects.MessageComplete)
	return reconcile.Result{}, s.endInstantly(ctx, dv, state, objects.NextStatus(dv.Status, &view, metav1.Now()))
}

// claimInstantly makes the claim. Where a former one was deleted, the DataVolume shows that it imports again.
func (s *Simulator) claimInstantly(ctx context.Context, dv *cdiv1.DataVolume, state *instantState) error {
	claim := objects.Claim(dv)
	claim.Spec.VolumeName, claim.Spec.DataSourceRef = "pvc-"+string(dv.UID), nil
	made, err := s.volumes.Make(ctx, claim, dv)
	if err != nil {
		return err
	}
	if state.claim = made; dv.Status.Phase != cdiv1.Succeeded {
		return nil
	}
	view := objects.View{Name: dv.Name, Phase: corev1.ClaimPending, Importing: true, Annotations: map[string]string{}}
	return s.setStatus(ctx, dv, objects.NextStatus(dv.Status, &view, metav1.Now()))
}

func (s *Simulator) instantStateOf(dv *cdiv1.DataVolume) *instantState {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(dv)
	state := s.instant[key]
	if state == nil || state.uid != dv.UID {
		state = &instantState{uid: dv.UID, since: time.Now(), ended: finished(dv) && state == nil}
		s.instant[key] = state
	}
	return state
}

func (s *Simulator) endInstantly(ctx context.Context, dv *cdiv1.DataVolume, state *instantState, next cdiv1.DataVolumeStatus) error {
	if err := s.setStatus(ctx, dv.DeepCopy(), next); err != nil {
		return client.IgnoreNotFound(err)
	}
	state.ended = true
	return nil
}
