package cdi_test

import (
	"regexp"
	"slices"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pelotech/open-terrain/e2e/sim/cdi"
)

const restoreSize = 142270792

// snapshot makes one that is ready, of a claim that nobody asks for.
func snapshot(t *testing.T, ns, name string) *snapshotv1.VolumeSnapshot {
	t.Helper()
	claim := "imported"
	s := &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &claim}},
	}
	require.NoError(t, cl.Create(t.Context(), s))
	content, yes := "snapcontent-"+name, true
	s.Status = &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: &content, ReadyToUse: &yes, RestoreSize: resource.NewQuantity(restoreSize, resource.BinarySI)}
	require.NoError(t, cl.Status().Update(t.Context(), s))
	return s
}

func cloneOf(ns, name string, source cdiv1.DataVolumeSource, size string) *cdiv1.DataVolume {
	dv := &cdiv1.DataVolume{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       cdiv1.DataVolumeSpec{Source: &source, Storage: &cdiv1.StorageSpec{}},
	}
	if size != "" {
		dv.Spec.Storage.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	}
	return dv
}

func fromSnapshot(ns, name string) cdiv1.DataVolumeSource {
	return cdiv1.DataVolumeSource{Snapshot: &cdiv1.DataVolumeSourceSnapshot{Namespace: ns, Name: name}}
}

var phaseRegex = regexp.MustCompile(`^phase="(\w*)"`)

// phases of a transcript, each once.
func phases(lines []string) []string {
	var all []string
	for _, l := range lines {
		all = append(all, phaseRegex.FindStringSubmatch(l)[1])
	}
	return slices.Compact(all)
}

func TestClonesGoThroughThePhasesOfTheRealCDI(t *testing.T) {
	here, there := namespace(t), namespace(t)
	snapshot(t, here, "snap")
	imported := httpVolume(here, "imported", "", onlyOnce)
	imported.Spec.Source = &cdiv1.DataVolumeSource{Blank: &cdiv1.DataVolumeBlankImage{}}
	follow(t, imported, bound)
	for name, tc := range map[string]struct {
		namespace, size string
		source          cdiv1.DataVolumeSource
		want            []string
		claim           int64
	}{
		"in the same namespace": {
			here, "142270792", fromSnapshot(here, "snap"),
			[]string{"CloneScheduled", "CloneFromSnapshotSourceInProgress", "PrepClaimInProgress", "RebindInProgress", "Succeeded"}, restoreSize + 1,
		},
		"in another namespace and larger": {
			there, "256Mi", fromSnapshot(here, "snap"),
			[]string{"Pending", "CloneScheduled", "CloneFromSnapshotSourceInProgress", "PrepClaimInProgress", "Succeeded"}, 256 << 20,
		},
		"in another namespace with the size of the snapshot": {
			there, "", fromSnapshot(here, "snap"),
			[]string{"Pending", "CloneScheduled", "CloneFromSnapshotSourceInProgress", "Succeeded"}, restoreSize,
		},
		"of a claim in another namespace": {
			there, "", cdiv1.DataVolumeSource{PVC: &cdiv1.DataVolumeSourcePVC{Namespace: here, Name: "imported"}},
			[]string{"Pending", "CloneScheduled", "SnapshotForSmartCloneInProgress", "CloneFromSnapshotSourceInProgress", "Succeeded"}, restoreSize,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines, dv := follow(t, cloneOf(tc.namespace, dashes(name)[3:], tc.source, tc.size), bound)
			assert.Equal(t, tc.want, phases(lines))
			assert.Equal(t, "Clone Complete", condition(dv, cdiv1.DataVolumeRunning).Message)
			assert.Equal(t, corev1.ConditionTrue, condition(dv, cdiv1.DataVolumeReady).Status)
			assert.Contains(t, lines[len(lines)-2], `Running=True "Populator is running" "" | Ready=False "TransferRunning"`)
			var claim corev1.PersistentVolumeClaim
			require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(dv), &claim))
			assert.True(t, metav1.IsControlledBy(&claim, dv))
			assert.GreaterOrEqual(t, claim.Spec.Resources.Requests.Storage().Value(), tc.claim)
		})
	}
}

func TestClonesWaitForASourceThatFits(t *testing.T) {
	ns, source := namespace(t), namespace(t)
	snapshot(t, source, "snap")
	reason := func(reason string) func(*cdiv1.DataVolume) bool {
		return func(dv *cdiv1.DataVolume) bool {
			return condition(dv, cdiv1.DataVolumeReady).Reason == reason && condition(dv, cdiv1.DataVolumeBound).Reason == reason
		}
	}
	_, small := follow(t, cloneOf(ns, "small", fromSnapshot(source, "snap"), "32Mi"), reason("CloneValidationFailed"))
	assert.Equal(t, cdiv1.Pending, small.Status.Phase)
	assert.Equal(t, "The clone doesn't meet the validation requirements: target resources requests storage size is smaller than the source 33554432 < 142270792",
		condition(small, cdiv1.DataVolumeReady).Message)

	_, early := follow(t, cloneOf(ns, "early", fromSnapshot(source, "nosuch"), ""), reason("CloneWithoutSource"))
	assert.Equal(t, cdiv1.Pending, early.Status.Phase)
	assert.Equal(t, "The source snapshot nosuch doesn't exist", condition(early, cdiv1.DataVolumeReady).Message)
	assert.Empty(t, claims(t, ns))
	snapshot(t, source, "nosuch")
	watch(t, early, bound)
}

func TestACloneIsHeldAndNeedsItsSource(t *testing.T) {
	ns := namespace(t)
	snap := snapshot(t, ns, "snap")
	for _, name := range []string{"held", "deleted"} {
		behave.set(name, cdi.Behaviour{StopAt: cdiv1.CloneFromSnapshotSourceInProgress})
	}
	inProgress := func(dv *cdiv1.DataVolume) bool { return dv.Status.Phase == cdiv1.CloneFromSnapshotSourceInProgress }
	_, held := follow(t, cloneOf(ns, "held", fromSnapshot(ns, "snap"), ""), inProgress)
	_, deleted := follow(t, cloneOf(ns, "deleted", fromSnapshot(ns, "snap"), ""), inProgress)
	restores := func() (n int) {
		for _, claim := range claims(t, ns) {
			if claim.Spec.DataSource != nil && claim.Spec.DataSource.Kind == "VolumeSnapshot" && claim.Spec.DataSource.Name == "snap" {
				assert.Equal(t, corev1.ClaimPending, claim.Status.Phase)
				n++
			}
		}
		return n
	}
	assert.Equal(t, 2, restores())
	require.NoError(t, cl.Delete(t.Context(), deleted))
	assert.Eventually(t, func() bool { return restores() == 1 }, patience, 10*time.Millisecond, "a clone that is deleted leaves nothing behind")

	require.NoError(t, cl.Delete(t.Context(), snap))
	behave.set("held", cdi.Behaviour{})
	_, held = watch(t, held, func(dv *cdiv1.DataVolume) bool { return condition(dv, cdiv1.DataVolumeRunning).Reason == "Error" })
	assert.Equal(t, cdiv1.CloneFromSnapshotSourceInProgress, held.Status.Phase, "another snapshot of that name is not what was to be cloned")
}
