package controller

import (
	"context"
	"fmt"
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/plan"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A slot is given up without a DataVolume that has Succeeded only when nothing of the attempt is left that could
// download: the API server itself says that there is no DataVolume (the news of its creation by a former leader may be
// on the way), and claim and importer pod, which go after it, are gone from the caches.

// remains names what is left of the image's attempt, or is empty.
func (r *Images) remains(ctx context.Context, image *v1alpha1.VMDiskImage) (string, error) {
	child := types.NamespacedName{Namespace: image.Namespace, Name: v1alpha1.ChildName(image.Name, plan.Revision(image))}
	dv := &cdiv1.DataVolume{}
	switch err := r.live.Get(ctx, child, dv); {
	case err == nil && ownedBy(dv, image.UID):
		return "DataVolume " + dv.Name, nil
	case client.IgnoreNotFound(err) != nil:
		return "", fmt.Errorf("look for the DataVolume %s: %w", child, err)
	}
	claim := &corev1.PersistentVolumeClaim{}
	switch err := r.client.Get(ctx, child, claim); {
	case err == nil && claim.Labels[v1alpha1.LabelImage] == string(image.UID):
		return "claim " + claim.Name, nil
	case err != nil && !apierrors.IsNotFound(err):
		return "", fmt.Errorf("look for the claim %s: %w", child, err)
	}
	return r.straggler(ctx, image.Namespace)
}

// remainsOf says the same of an image that is gone, whose revision nobody knows any more. Its volume, if it was
// complete, goes too: nobody will wait for a slot longer because of that. The label finds candidates, and ownership decides:
// who puts our label on something of his own must not keep a slot from everybody.
func (r *Images) remainsOf(ctx context.Context, namespace string, uid types.UID) (string, error) {
	labelled := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelImage: string(uid)}}
	volumes := &cdiv1.DataVolumeList{}
	if err := r.live.List(ctx, volumes, labelled...); err != nil {
		return "", fmt.Errorf("list the DataVolumes of %s: %w", namespace, err)
	}
	others := map[types.UID]bool{}
	for i := range volumes.Items {
		if ownedBy(&volumes.Items[i], uid) {
			return "DataVolume " + volumes.Items[i].Name, nil
		}
		others[volumes.Items[i].UID] = true
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.client.List(ctx, claims, labelled...); err != nil {
		return "", fmt.Errorf("list the claims of %s: %w", namespace, err)
	}
	for i := range claims.Items {
		owner := metav1.GetControllerOf(&claims.Items[i])
		if owner != nil && owner.Kind == "DataVolume" && !others[owner.UID] {
			return "claim " + claims.Items[i].Name, nil
		}
	}
	return r.straggler(ctx, namespace)
}

// straggler names an importer pod of ours whose claim is gone already, or is empty. Whose image it belonged to cannot be
// told any more; it goes within seconds.
func (r *Images) straggler(ctx context.Context, namespace string) (string, error) {
	pods := &corev1.PodList{}
	if err := r.client.List(ctx, pods, client.InNamespace(namespace)); err != nil {
		return "", fmt.Errorf("list the importer pods of %s: %w", namespace, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.PriorityClassName != v1alpha1.ImportPriorityClass {
			continue
		}
		claims, err := claimsOf(ctx, r.client, pod)
		if err != nil {
			return "", err
		}
		if len(claims) == 0 {
			return "importer pod " + pod.Name, nil
		}
	}
	return "", nil
}

// importerOwners are the claims that CDI may run the importer for: the populator's (prime-UID), or the claim itself.
func importerOwners(claim *corev1.PersistentVolumeClaim) []string {
	return []string{populatorClaim + string(claim.UID), claim.Name}
}

// populatorClaim and the UID of a claim make the name of the claim that CDI fills in its place.
const populatorClaim = "prime-"

// claimsOf is the claim that the importer pod fills: its owner, or the one whose UID its owner is named after.
func claimsOf(ctx context.Context, reader client.Reader, pod *corev1.Pod) ([]corev1.PersistentVolumeClaim, error) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "PersistentVolumeClaim" {
		return nil, nil
	}
	uid, isPopulator := strings.CutPrefix(owner.Name, populatorClaim)
	if !isPopulator {
		uid = string(owner.UID)
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := reader.List(ctx, claims, client.InNamespace(pod.Namespace), client.MatchingFields{claimUID: uid}); err != nil {
		return nil, fmt.Errorf("look for the claim of the pod %s: %w", pod.Name, err)
	}
	return claims.Items, nil
}
