package controller

import (
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAMarkIsOfTheHoldAndGoesWithIt(t *testing.T) {
	a := hall(t)
	lease := slotLease(0, "ns/a/u-a", 1)
	a.leaseSeen(lease)
	hold := a.standing("ns/a/u-a").hold
	assert.NotNil(t, a.under(hold))
	assert.False(t, a.standing("ns/a/u-a").ending)

	marked := lease.DeepCopy()
	marked.ResourceVersion, marked.Annotations = "2", map[string]string{v1alpha1.AnnotationEnding: "true"}
	a.leaseSeen(marked)
	assert.True(t, a.standing("ns/a/u-a").ending)
	assert.Equal(t, hold, a.standing("ns/a/u-a").hold, "it is held as before")

	a.imageSeen(queuedImage("b", 5, 5))
	a.release(hold)
	assert.Nil(t, a.under(hold), "what is about to be passed on needs no mark")
	s, ok := a.next(1)
	require.True(t, ok)
	assert.NotContains(t, a.leaseFor(s).Annotations, v1alpha1.AnnotationEnding)
}
