package arm

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/bench/trace"
	"github.com/pelotech/open-terrain/e2e/chart"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/pelotech/open-terrain/e2e/sim/cdi"
	"github.com/pelotech/open-terrain/e2e/sim/snapshotter"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// images are brought from creation to Succeeded.
type images struct{}

const snapshotClass = "bench"

func (images) furnish(ctx context.Context, l *Lab) error {
	if err := chart.Install(ctx, l.client, chart.WithoutOperator, fmt.Sprintf(`policy={"concurrency":%d}`, l.Load.Slots)); err != nil {
		return err
	}
	return l.client.Create(ctx, &snapshotv1.VolumeSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{Name: snapshotClass}, Driver: "bench.example.com", DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
	})
}

func (images) simulate(ctx context.Context, l *Lab) error {
	importer, err := cdi.Start(ctx, l.cluster.Config, cdi.Options{Workers: simulatorWorkers, Instant: &cdi.Instant{Duration: l.Load.Import}})
	if err != nil {
		return err
	}
	l.done = append(l.done, importer.Wait)
	shots, err := snapshotter.Start(ctx, l.cluster.Config, snapshotter.Options{Workers: simulatorWorkers, Instant: true})
	if err != nil {
		return err
	}
	l.done = append(l.done, shots.Wait)
	return nil
}

func (images) prepare(context.Context, *Lab, string, int) error { return nil }

func (images) object(_ *Lab, prefix string, i int) client.Object {
	return &otv1alpha1.VMDiskImage{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace(i), Name: fmt.Sprintf("%s-%05d", prefix, i)},
		Spec:       imageSpec(),
	}
}

func imageSpec() otv1alpha1.VMDiskImageSpec {
	return otv1alpha1.VMDiskImageSpec{
		URL: "https://images.example.com/labs/disk.qcow2", SourceType: otv1alpha1.SourceHTTP,
		DiskSize: resource.MustParse("24Gi"), SnapshotClass: snapshotClass,
	}
}

func (images) path() string { return "apis/pelotech.ot/v1alpha1/vmdiskimages" }

func (images) each() int { return 1 }

func (images) list() client.ObjectList { return &otv1alpha1.VMDiskImageList{} }

func (images) done() string { return `"phase":"Succeeded"` }

func (images) isDone(prefix string, object client.Object) bool {
	image, is := object.(*otv1alpha1.VMDiskImage)
	return is && strings.HasPrefix(image.Name, prefix) && image.Status.Phase == otv1alpha1.PhaseSucceeded
}

func (images) floor(l *Lab) (string, []string) {
	return l.Tools.Floor, append([]string{"--limit=" + strconv.Itoa(l.Load.Slots)}, l.Tools.FloorArgs...)
}

func (images) ignored() []string {
	return []string{"events", "persistentvolumeclaims", "volumesnapshots", "volumesnapshotcontents"}
}

func (images) judge(_ *Lab, run *Run, events []history.Event) {
	run.Trace = trace.Judge(events)
	run.Void = run.Trace.Violations(run.Load.Images, run.Load.Slots, run.Arm.bounded()...)
}

// bounded are the levels that the limit holds for. The floor has no slots, and saves the write that ends phase Syncing
// when the download is complete: only its downloads can be judged.
func (n Name) bounded() []trace.Level {
	if n == Floor {
		return []trace.Level{trace.Download}
	}
	return trace.Levels()
}
