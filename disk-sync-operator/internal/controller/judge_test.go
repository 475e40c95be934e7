package controller

import (
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// court is a hall that tells who has to be looked at.
func court(t *testing.T) (a *Admission, woken *[]string) {
	t.Helper()
	a, woken = hall(t), &[]string{}
	a.wake = func(key types.NamespacedName) { *woken = append(*woken, key.Name) }
	return a, woken
}

// from is a queued image of that URL.
func from(name, url string, ticket int64) *v1alpha1.VMDiskImage {
	image := queuedImage(name, 0, ticket)
	image.Spec.SourceType, image.Spec.URL = v1alpha1.SourceHTTP, url
	if ticket != 0 {
		image.Status.Ticket, image.Status.Revision = ticket, v1alpha1.RevisionOf(image)
		image.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSynced, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonQueued}}
	}
	return image
}

// refusedFrom is one that has failed for its source.
func refusedFrom(name, url string) *v1alpha1.VMDiskImage {
	image := from(name, url, 1)
	image.Status.LastFailure = &v1alpha1.Failure{Reason: v1alpha1.FailureSourceNotAllowed}
	image.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionSynced, Status: metav1.ConditionFalse, Reason: string(v1alpha1.FailureSourceNotAllowed)},
		{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: string(v1alpha1.FailureSourceNotAllowed)},
	}
	return image
}

const (
	publicURL  = "https://images.example.com/a"
	privateURL = "http://10.0.0.1/a"
)

func sources(t *testing.T, prefixes ...string) []policy.Source {
	t.Helper()
	var all []policy.Source
	for _, prefix := range prefixes {
		source, wrong := policy.ParseSource(prefix)
		require.Empty(t, wrong)
		all = append(all, source)
	}
	return all
}

func TestAnImageWhoseSourceIsRefusedGetsNoSlot(t *testing.T) {
	a, woken := court(t)
	require.True(t, a.adopt(nil))
	a.imageSeen(from("refused", privateURL, 1))
	a.imageSeen(from("new", privateURL, 0))
	a.imageSeen(from("admitted", publicURL, 2))
	assert.Equal(t, []string{"refused", "new"}, *woken, "somebody has to say so in status")
	assert.Equal(t, 1, a.state().depth)
	assert.Equal(t, []string{"0:  -> admitted"}, steps(a, 4))
	a.imageSeen(refusedFrom("refused", privateURL))
	assert.Len(t, *woken, 2, "it is said")
}

func TestAChangeOfAllowedSourcesIsForThoseWhoWaitAlready(t *testing.T) {
	images := []v1alpha1.VMDiskImage{
		*from("first", publicURL, 1), *from("second", privateURL, 2), *refusedFrom("failed", privateURL), *from("deleted", publicURL, 3),
	}
	a, woken := court(t)
	for i := range images {
		a.imageSeen(&images[i])
	}
	a.imageGone(&images[3])
	assert.Equal(t, 2, a.state().depth, "before the first round nobody is judged")

	require.True(t, a.adopt(nil))
	require.True(t, a.adopt(nil), "as long as not all images have been looked at")
	a.judgeAll(images)
	assert.Equal(t, []string{"second"}, *woken)
	assert.Equal(t, 1, a.state().depth, "what is gone does not come back")
	assert.False(t, a.adopt(nil), "no news")

	*woken = nil
	require.True(t, a.adopt(sources(t, "http://10.0.0.1")))
	a.judgeAll(images)
	assert.Equal(t, []string{"first", "failed"}, *woken)
	assert.Equal(t, []string{"0:  -> second"}, steps(a, 4), "it had not been told yet, and waits again")
	assert.False(t, a.adopt(sources(t, "http://10.0.0.1")))
}
