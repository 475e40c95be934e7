package lab

import (
	"context"
	"slices"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/history"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const dataSync = "data"

// Collections are the stories of DataSyncs, which make images of their own.
func Collections() []Story {
	one, two := otv1alpha1.DataSyncImageName(dataSync, "one"), otv1alpha1.DataSyncImageName(dataSync, "two")
	both := map[string]End{one: {Phase: otv1alpha1.PhaseSucceeded, Attempts: 1}, two: {Phase: otv1alpha1.PhaseSucceeded, Attempts: 1}}
	first := map[string]End{one: {Phase: otv1alpha1.PhaseSucceeded, Attempts: 1}, two: {}}
	made := []Step{Collect("one", "two"), awaitCollection(otv1alpha1.DataSyncSucceeded)}
	after := func(steps ...Step) []Step { return append(slices.Clip(made), steps...) }
	return []Story{
		{Name: "datasync", Steps: made, Ends: both},
		{Name: "datasync-entry-removed", Steps: after(Collect("one"), AwaitGone("vmdiskimages", two)), Ends: first},
		{
			Name: "datasync-entry-removed-in-use", Ends: first,
			Steps: after(
				Use(two, 1), AwaitProtected(two, true), Collect("one"), awaitBlocked(),
				Use(two, 0), AwaitGone("vmdiskimages", two),
			),
		},
		{
			Name: "datasync-deleted", Ends: map[string]End{one: {}, two: {}},
			Steps: after(act("delete the DataSync", func(ctx context.Context, s *Scene) error {
				return s.Client.Delete(ctx, s.collection())
			}), AwaitAbsent(one), AwaitAbsent(two)),
		},
	}
}

func (s *Scene) collection(entries ...string) *otv1alpha1.DataSync {
	size := resource.MustParse("1Gi")
	sync := &otv1alpha1.DataSync{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: dataSync}, Spec: otv1alpha1.DataSyncSpec{WorkspaceID: "lab"},
	}
	for _, entry := range entries {
		sync.Spec.VMs = append(sync.Spec.VMs, otv1alpha1.DataSyncVM{Name: entry, URL: nowhere + entry, SourceType: otv1alpha1.SourceHTTP, DiskSize: &size})
	}
	return sync
}

// Collect these entries in the story's DataSync, and no others.
func Collect(entries ...string) Step {
	return act("collect", func(ctx context.Context, s *Scene) error {
		want, is := s.collection(entries...), &otv1alpha1.DataSync{}
		err := s.Client.Get(ctx, client.ObjectKeyFromObject(want), is)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err != nil {
			return s.Client.Create(ctx, want)
		}
		before := is.DeepCopy()
		is.Spec = want.Spec
		return s.Client.Patch(ctx, is, client.MergeFrom(before))
	})
}

func awaitDataSync(what string, is func(*otv1alpha1.DataSync) bool) Step {
	return Step{Name: "await the DataSync " + what, Do: func(ctx context.Context, s *Scene) error {
		return s.await(ctx, func(e history.Event) bool {
			sync, ok := history.As[*otv1alpha1.DataSync](e)
			return ok && sync.Status.ObservedGeneration == sync.Generation && is(sync)
		})
	}}
}

func awaitCollection(phase otv1alpha1.DataSyncPhase) Step {
	return awaitDataSync(string(phase), func(sync *otv1alpha1.DataSync) bool { return sync.Status.Phase == phase })
}

func awaitBlocked() Step {
	return awaitDataSync("blocked", func(sync *otv1alpha1.DataSync) bool {
		for _, c := range sync.Status.Conditions {
			if c.Type == otv1alpha1.ConditionDeletionBlocked {
				return c.Status == metav1.ConditionTrue
			}
		}
		return false
	})
}
