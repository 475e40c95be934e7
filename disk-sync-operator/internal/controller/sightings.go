package controller

import (
	"strconv"
	"sync"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// sightings remembers, for images with a slot, the DataVolume of the running attempt: when it is missing later, somebody
// has deleted it, and the attempt has had its download.
type sightings struct {
	mu   sync.Mutex
	seen map[types.UID]sighting
}

type sighting struct {
	name    string // of the revision
	attempt int32
	uid     types.UID
}

// note remembers a DataVolume of the attempt that status is about.
func (s *sightings) note(image *v1alpha1.VMDiskImage, dv *cdiv1.DataVolume) {
	if !ownedBy(dv, image.UID) || dv.Name != attemptName(image) || dv.Annotations[v1alpha1.AnnotationAttempt] != strconv.Itoa(int(image.Status.Attempts)) ||
		dv.Status.Phase == cdiv1.Succeeded {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[types.UID]sighting{}
	}
	s.seen[image.UID] = sighting{name: dv.Name, attempt: image.Status.Attempts, uid: dv.UID}
}

// of is the DataVolume that was seen for the attempt that status is about, or empty.
func (s *sightings) of(image *v1alpha1.VMDiskImage) types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seen := s.seen[image.UID]; seen.name == attemptName(image) && seen.attempt == image.Status.Attempts {
		return seen.uid
	}
	return ""
}

// attemptName is the name of the DataVolume of the attempt that status is about. Attempts count anew with each revision.
func attemptName(image *v1alpha1.VMDiskImage) string {
	return v1alpha1.ChildName(image.Name, image.Status.Revision)
}

func (s *sightings) forget(image types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, image)
}
