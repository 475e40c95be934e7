package cdi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pelotech/open-terrain/e2e/sim/cdi/kubelet"
	"github.com/pelotech/open-terrain/e2e/sim/cdi/objects"
	"github.com/pelotech/open-terrain/e2e/sim/cdi/volumes"
)

// runPod makes an importer pod and follows it to its end; Failed also when somebody has deleted it.
func (p *play) runPod(ctx context.Context, scratch bool) (objects.Outcome, error) {
	if err := p.createPod(ctx, scratch); err != nil {
		return 0, err
	}
	size := p.prime.Spec.Resources.Requests[corev1.ResourceStorage]
	r := &kubelet.Run{
		Pod: p.pod, Source: p.source, Size: size.Value(), Hold: p.holdPod,
		Unschedulable: func() bool { return p.behaviour().Unschedulable },
		Fail:          func() string { return p.behaviour().Fail },
		Progress:      p.reportProgress,
		Observe: func(ctx context.Context) error {
			p.view.Observe(p.pod)
			return p.report(ctx)
		},
	}
	if scratch {
		r.Scratch = p.makeScratch
	}
	err := p.kubelet.Live(ctx, r)
	if errors.Is(err, kubelet.ErrKilled) {
		return objects.Failed, nil
	}
	return objects.OutcomeOf(p.pod), err
}

func (p *play) createPod(ctx context.Context, scratch bool) error {
	pod := objects.Pod(p.prime, p.source, scratch)
	err := p.client.Create(ctx, pod)
	if err == nil {
		p.pod = pod
		p.shared.pod.Store(pod.DeepCopy())
		return nil
	}
	if apierrors.IsAlreadyExists(err) { // of a play that was broken off
		old := &corev1.Pod{}
		if err := p.client.Get(ctx, client.ObjectKeyFromObject(pod), old); err != nil {
			return err
		}
		p.pod = old
		return errors.Join(fmt.Errorf("a former pod %s is in the way", pod.Name), p.deletePod(ctx))
	}
	reason := "ErrStartingPod"
	if strings.Contains(err.Error(), "exceeded quota") {
		reason = objects.ReasonQuota
	}
	p.view.Set(objects.AnnPodPhase, string(corev1.PodFailed))
	p.view.SetRunning("false", reason, fmt.Sprintf("Error starting pod '%s': For more information, request access to cdi-deploy logs from your sysadmin", pod.Name))
	return errors.Join(err, p.report(ctx))
}

func (p *play) makeScratch(ctx context.Context) error {
	claim, err := p.volumes.Make(ctx, objects.Scratch(p.pod, p.prime), p.pod)
	if err != nil {
		return err
	}
	return p.volumes.Bind(ctx, claim, volumes.Name(claim))
}

// holdPod keeps a pod at a gate as long as the DataVolume's behaviour wants.
func (p *play) holdPod(ctx context.Context, gate kubelet.Gate) error {
	switch gate {
	case kubelet.BeforeScheduling:
		return p.until(ctx, func() bool { return !p.behaviour().Unschedulable })
	case kubelet.BeforeStart:
		return p.holdAt(ctx, cdiv1.ImportScheduled)
	default:
		return p.holdAt(ctx, cdiv1.ImportInProgress)
	}
}

// reportProgress shows a percentage, but not 100, which does not mean yet that the import is done.
func (p *play) reportProgress(ctx context.Context, percent float64) {
	if percent <= 0 || percent >= 100 {
		return
	}
	p.view.Set(objects.AnnPopulatorProgress, fmt.Sprintf("%.2f%%", percent))
	_ = p.report(ctx) // the next report tries again
}

// deletePod deletes the pod and returns when it is gone.
func (p *play) deletePod(ctx context.Context) error {
	p.kubelet.Delete(ctx, p.pod)
	return p.waitForPodToGo(ctx)
}

func (p *play) waitForPodToGo(ctx context.Context) error {
	if err := p.kubelet.WaitGone(ctx, p.pod); err != nil {
		return err
	}
	p.pod = nil
	return nil
}
