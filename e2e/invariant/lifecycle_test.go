package invariant

import (
	"testing"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// used says that so many virtual machines use an image.
func (s *story) used(name string, count int32) {
	s.image(name, func(i *otv1alpha1.VMDiskImage) { i.Status.References = &otv1alpha1.References{Count: count} })
}

// going marks the child of a resource as being deleted.
func (s *story) going(resource, image string) {
	key := history.Key{Resource: resource, Namespace: "lab", Name: childOf(s.existing(image))}
	object := s.last[key].DeepCopyObject().(interface {
		metav1.Object
	})
	object.SetDeletionTimestamp(new(metav1.NewTime(s.now)))
	object.SetFinalizers([]string{"somebody/waits"})
	switch o := object.(type) {
	case *cdiv1.DataVolume:
		s.put(resource, o)
	case *corev1.PersistentVolumeClaim:
		s.put(resource, o)
	}
}

func TestInUse(t *testing.T) {
	runStories(t, InUse, map[string]storyTest{
		"parts of an image that nobody uses go": {tell: func(s *story) { s.life("a", 0); s.volumeGone("a") }},
		"a volume goes under its users": {tell: func(s *story) {
			s.life("a", 0)
			s.used("a", 2)
			s.volumeGone("a")
		}, want: []string{"it is deleted while 2 virtual machines use lab/a, whose artifact names it"}},
		"a claim is marked under its user": {tell: func(s *story) {
			s.life("a", 0)
			s.used("a", 1)
			s.going("persistentvolumeclaims", "a")
		}, want: []string{"it is deleted while 1 virtual machines use"}},
		"a mark is told of once": {tell: func(s *story) {
			s.life("a", 0)
			s.used("a", 1)
			s.going("datavolumes", "a")
			s.volumeGone("a")
		}, want: []string{"it is deleted while 1 virtual machines use"}},
		"a snapshot goes under its user": {tell: func(s *story) {
			s.life("a", 0)
			s.used("a", 1)
			s.remove("volumesnapshots", "lab", childOf(s.existing("a")))
		}, want: []string{"whose artifact names it"}},
		"a volume goes that status names no longer": {tell: func(s *story) {
			s.life("a", 0)
			s.used("a", 1)
			s.image("a", func(i *otv1alpha1.VMDiskImage) { i.Status.Artifact.DataVolume = "" })
			s.volumeGone("a")
		}},
		"the image itself goes": {tell: func(s *story) {
			s.life("a", 0)
			s.used("a", 3)
			s.remove("vmdiskimages", "lab", "a")
		}, want: []string{"it goes while 3 virtual machines use it"}},
	})
}

func TestNoOrphans(t *testing.T) {
	runStories(t, NoOrphans, map[string]storyTest{
		"nothing is deleted": {tell: func(s *story) { s.life("a", 0) }},
		"a child is left":    {tell: func(s *story) { s.image("a"); s.volume("a", 1); s.remove("vmdiskimages", "lab", "a") }, want: []string{"datavolumes lab/a-"}},
		"a child that is being deleted": {tell: func(s *story) {
			s.image("a")
			s.volume("a", 1)
			s.going("datavolumes", "a")
		}, want: []string{"its deletion has not come to an end"}},
		"an object with the label of an image that is gone": {tell: func(s *story) {
			s.image("a")
			s.put("persistentvolumeclaims", &corev1.PersistentVolumeClaim{ObjectMeta: labelled("stray", "a")})
			s.remove("vmdiskimages", "lab", "a")
		}, want: []string{"its label names an image that is gone"}},
		"a bystander with that label": {tell: func(s *story) {
			s.image("a")
			meta := labelled("stray", "a")
			meta.Annotations = map[string]string{AnnotationBystander: "true"}
			s.put("persistentvolumeclaims", &corev1.PersistentVolumeClaim{ObjectMeta: meta})
			s.remove("vmdiskimages", "lab", "a")
		}},
		"a slot of an image that is gone": {tell: func(s *story) {
			s.image("a")
			s.slot(0, "a")
			s.remove("vmdiskimages", "lab", "a")
		}, want: []string{"disk-sync-slot-0 is held by lab/a"}},
	})
}

func labelled(name, image string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{otv1alpha1.LabelImage: string(uid(image))}}
}

func TestUnderway(t *testing.T) {
	runStories(t, Underway, map[string]storyTest{
		"all is done": {tell: func(s *story) { s.life("a", 0) }},
		"used and not protected": {tell: func(s *story) {
			s.life("a", 0)
			s.used("a", 1)
		}, want: []string{"has 1 users, and its protection is false"}},
		"protected and not used": {tell: func(s *story) {
			s.life("a", 0)
			s.image("a", func(i *otv1alpha1.VMDiskImage) { i.Finalizers = []string{otv1alpha1.FinalizerProtection} })
		}, want: []string{"has 0 users, and its protection is true"}},
		"about to be pruned": {tell: func(s *story) {
			s.life("a", 0)
			s.image("a", func(i *otv1alpha1.VMDiskImage) { i.Status.ExpiresAt = new(metav1.NewTime(s.now.Add(time.Second))) })
		}, want: []string{"is about to be pruned"}},
		"pruned some day": {tell: func(s *story) {
			s.life("a", 0)
			s.image("a", func(i *otv1alpha1.VMDiskImage) { i.Status.ExpiresAt = new(metav1.NewTime(s.now.Add(time.Hour))) })
		}},
		"a former volume is still there": {tell: func(s *story) {
			s.life("a", 0)
			s.image("a", func(i *otv1alpha1.VMDiskImage) { i.Status.Artifact.DataVolume = "" })
		}, want: []string{"is a former child of a", "is a former child of a"}},
	})
}

func TestHandsOff(t *testing.T) {
	s := newStory()
	s.life("a", 0)
	own := s.last[history.Key{Resource: "datavolumes", Namespace: "lab", Name: childOf(s.existing("a"))}].GetUID()
	for name, test := range map[string]struct {
		write Write
		want  string
	}{
		"an image's own volume":           {write: Write{Verb: "delete", Resource: "datavolumes", Namespace: "lab", UID: own}},
		"an image's status":               {write: Write{Verb: "patch", Resource: "vmdiskimages", Subresource: "status", Namespace: "lab", UID: uid("a")}},
		"a slot":                          {write: Write{Verb: "update", Resource: "leases", Namespace: operator, Name: "disk-sync-slot-3"}},
		"a child":                         {write: Write{Verb: "create", Resource: "volumesnapshots", Namespace: "lab"}},
		"whatever volume of that name":    {write: Write{Verb: "delete", Resource: "datavolumes", Namespace: "lab"}, want: "whatever object of that name"},
		"somebody else's volume":          {write: Write{Verb: "delete", Resource: "datavolumes", Namespace: "lab", UID: "foreign"}, want: "is nobody's of ours"},
		"a claim":                         {write: Write{Verb: "delete", Resource: "persistentvolumeclaims", Namespace: "lab", UID: own}, want: "it has no such objects"},
		"a Lease of somebody else":        {write: Write{Verb: "update", Resource: "leases", Namespace: "lab", Name: "theirs"}, want: "it is no slot"},
		"an object of a kind of its own":  {write: Write{Verb: "create", Resource: "secrets", Namespace: "lab"}, want: "it makes no such objects"},
		"all snapshots of the namespace":  {write: Write{Verb: "deletecollection", Resource: "volumesnapshots", Namespace: "lab"}, want: "whatever object"},
		"the policy, which is the user's": {write: Write{Verb: "update", Resource: "configmaps", Namespace: operator, Name: otv1alpha1.PolicyConfigMapName}, want: "it has no such objects"},
	} {
		t.Run(name, func(t *testing.T) {
			got := HandsOff(strict(), s.events, []Write{test.write})
			if test.want == "" {
				assert.Empty(t, got)
				return
			}
			assert.Len(t, got, 1)
			assert.Contains(t, got[0].String(), test.want)
		})
	}
}

func TestForeign(t *testing.T) {
	written := []metav1.ManagedFieldsEntry{{Manager: "disk-sync-operator-protection"}}
	runStories(t, Foreign, map[string]storyTest{
		"what others write": {tell: func(s *story) {
			s.put("secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "keys"}})
		}},
		"an image": {tell: func(s *story) { s.image("a", func(i *otv1alpha1.VMDiskImage) { i.ManagedFields = written }) }},
		"an object that no image controls": {tell: func(s *story) {
			s.image("a")
			s.put("secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "keys", ManagedFields: written}})
		}, want: []string{"the operator has written it"}},
		"a bystander that changes, and goes": {tell: func(s *story) {
			s.image("a")
			meta := metav1.ObjectMeta{Namespace: "lab", Name: "stray", Annotations: map[string]string{AnnotationBystander: "true"}}
			s.put("persistentvolumeclaims", &corev1.PersistentVolumeClaim{ObjectMeta: meta})
			meta.Labels = map[string]string{"touched": "yes"}
			s.put("persistentvolumeclaims", &corev1.PersistentVolumeClaim{ObjectMeta: meta})
			s.remove("persistentvolumeclaims", "lab", "stray")
		}, want: []string{"it is nobody's business, and changes", "it is nobody's business, and is deleted"}},
	})
}

func TestTheWholeLife(t *testing.T) {
	again := func(s *story) { // an update, or a sync after a loss: another revision beside the artifact
		s.image("a", func(i *otv1alpha1.VMDiskImage) { i.Spec.URL = "http://elsewhere/disk" })
		s.queued("a", 90)
		s.slot(0, "a")
		s.syncing("a", 1)
	}
	runStories(t, Limit, map[string]storyTest{
		"CDI imports once more into a claim that was deleted": {tell: func(s *story) {
			s.limit(1)
			s.life("a", 0)
			s.volumePhase("a", cdiv1.ImportInProgress) // by itself, without a slot
			s.life("b", 0)
		}},
	})
	runStories(t, NoLoss, map[string]storyTest{
		"and nobody stops it": {tell: func(s *story) {
			s.life("a", 0)
			s.volumePhase("a", cdiv1.ImportInProgress)
		}, want: []string{`is "ImportInProgress" at the end`}},
	})
	runStories(t, Truth, map[string]storyTest{
		"an update beside the artifact": {tell: func(s *story) { s.life("a", 0); again(s) }},
		"a snapshot that is made again": {tell: func(s *story) {
			s.life("a", 0)
			s.image("a", s.condition("SnapshotReady", "False", otv1alpha1.ReasonSnapshotting), s.condition("Ready", "False", otv1alpha1.ReasonArtifactLost))
			s.succeeded("a")
		}},
		"a volume that is not kept": {tell: func(s *story) {
			s.life("a", 0)
			s.image("a", func(i *otv1alpha1.VMDiskImage) { i.Status.Artifact.DataVolume = "" })
		}},
	})
	runStories(t, ReadyAtEnd, map[string]storyTest{
		"its artifact is there": {tell: func(s *story) { s.life("a", 0) }},
		"its snapshot is lost, and it says nothing": {tell: func(s *story) {
			s.life("a", 0)
			s.remove("volumesnapshots", "lab", childOf(s.existing("a")))
		}, want: []string{"it is ready without a snapshot"}},
	})
	runStories(t, AttemptsInStatus, map[string]storyTest{
		"they count anew for another revision": {tell: func(s *story) {
			s.life("a", 0)
			s.image("a", func(i *otv1alpha1.VMDiskImage) { i.Spec.URL = "http://elsewhere/disk" })
			s.image("a", s.condition("Synced", "False", otv1alpha1.ReasonQueued), func(i *otv1alpha1.VMDiskImage) { i.Status.Attempts = 0 })
			s.syncing("a", 1)
			s.volume("a", 1)
		}},
		"and again when the spec goes back": {tell: func(s *story) {
			s.life("a", 0)
			s.image("a", func(i *otv1alpha1.VMDiskImage) { i.Spec.URL = "http://elsewhere/disk" })
			s.image("a", s.condition("Synced", "False", otv1alpha1.ReasonQueued), func(i *otv1alpha1.VMDiskImage) { i.Status.Attempts = 0 })
			s.image("a", func(i *otv1alpha1.VMDiskImage) { i.Spec.URL = "" })
			s.image("a", s.condition("Synced", "True", otv1alpha1.ReasonSynced))
		}},
	})
}
