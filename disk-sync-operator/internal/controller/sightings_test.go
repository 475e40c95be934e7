package controller

import (
	"testing"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/disk-sync-operator/internal/desired"
	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
)

// CDI fills a deleted claim again, so that a finished image's DataVolume is seen importing. It is not that of the first
// attempt of the sync that follows.
func TestASightingIsOfOneRevision(t *testing.T) {
	image := apitest.Image("a")
	image.Status.Revision, image.Status.Attempts = v1alpha1.RevisionOf(image), 1
	dv := desired.DataVolume(image, "slot")
	dv.UID = "first"
	seen := &sightings{}
	seen.note(image, dv)
	assert.Equal(t, types.UID("first"), seen.of(image))

	image.Status.Losses++
	image.Status.Revision = v1alpha1.RevisionOf(image)
	assert.Empty(t, seen.of(image))
	seen.note(image, dv)
	assert.Empty(t, seen.of(image), "it has the name of a former revision")
}
