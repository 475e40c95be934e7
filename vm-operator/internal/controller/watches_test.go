package controller

import (
	"testing"

	"github.com/pelotech/open-terrain/apis/apitest"
	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// Which changes of an image wake its users: hundreds may wait for one.
func TestWhatAVirtualMachineSeesOfItsImage(t *testing.T) {
	artifact := apitest.Status(func(st *v1alpha1.VMDiskImageStatus) { st.Artifact = &v1alpha1.Artifact{Revision: "r"} })
	queued := apitest.Status(func(st *v1alpha1.VMDiskImageStatus) { st.Phase = v1alpha1.PhaseQueued })
	for name, c := range map[string]struct {
		from []apitest.ImageMod
		mod  apitest.ImageMod
		want bool
	}{
		"progress":                {nil, apitest.Status(func(st *v1alpha1.VMDiskImageStatus) { st.Progress = "5%" }), false},
		"a message while syncing": {nil, apitest.Status(func(st *v1alpha1.VMDiskImageStatus) { st.Message = "m" }), false},
		"a message while queued":  {[]apitest.ImageMod{queued}, apitest.Status(func(st *v1alpha1.VMDiskImageStatus) { st.Message = "m" }), true},
		"the phase":               {nil, queued, true},
		"the artifact":            {nil, artifact, true},
		"the spec":                {nil, func(i *v1alpha1.VMDiskImage) { i.Generation++ }, true},
		"its deletion":            {nil, apitest.Deleted(metav1.Now()), true},
		"the finalizer":           {nil, func(i *v1alpha1.VMDiskImage) { i.Finalizers = []string{v1alpha1.FinalizerProtection} }, true},
		"the first user":          {nil, apitest.Status(func(st *v1alpha1.VMDiskImageStatus) { st.References = &v1alpha1.References{Count: 1} }), true},
		"another user": {
			[]apitest.ImageMod{apitest.Status(func(st *v1alpha1.VMDiskImageStatus) { st.References = &v1alpha1.References{Count: 1} })},
			apitest.Status(func(st *v1alpha1.VMDiskImageStatus) { st.References = &v1alpha1.References{Count: 2} }), false,
		},
		"another image of that name": {nil, func(i *v1alpha1.VMDiskImage) { i.UID = "another" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := apitest.Image("a", c.from...)
			after := before.DeepCopy()
			c.mod(after)
			got := changed(viewOfImage).Update(event.TypedUpdateEvent[*v1alpha1.VMDiskImage]{ObjectOld: before, ObjectNew: after})
			assert.Equal(t, c.want, got)
		})
	}
}

func TestWhatWakesTheClaims(t *testing.T) {
	before := apitest.Image("a")
	after := before.DeepCopy()
	after.Status.Progress = "5%"
	update := event.TypedUpdateEvent[*v1alpha1.VMDiskImage]{ObjectOld: before, ObjectNew: after}
	assert.False(t, changedUse.Update(update))
	after.Status.References = &v1alpha1.References{Count: 7}
	assert.True(t, changedUse.Update(update), "somebody else may have written them")

	vm, later := machine("a"), machine("a")
	later.Generation, later.DeletionTimestamp = 2, &metav1.Time{}
	assert.False(t, comesOrGoes.Update(event.TypedUpdateEvent[*v1alpha1.VirtualMachine]{ObjectOld: vm, ObjectNew: later}), "it exists until it is gone")
	later.UID = "another"
	assert.True(t, comesOrGoes.Update(event.TypedUpdateEvent[*v1alpha1.VirtualMachine]{ObjectOld: vm, ObjectNew: later}))
}

func TestWhatAVirtualMachineSeesOfItsDisk(t *testing.T) {
	disk := &cdiv1.DataVolume{}
	for name, c := range map[string]struct {
		mod  func(*cdiv1.DataVolume)
		want bool
	}{
		"progress":       {func(d *cdiv1.DataVolume) { d.Status.Progress = "5%" }, false},
		"the phase":      {func(d *cdiv1.DataVolume) { d.Status.Phase = cdiv1.Succeeded }, true},
		"its deletion":   {func(d *cdiv1.DataVolume) { d.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time} }, true},
		"its finalizers": {func(d *cdiv1.DataVolume) { d.Finalizers = []string{"f"} }, true},
		"its labels":     {func(d *cdiv1.DataVolume) { d.Labels = map[string]string{"l": "1"} }, true},
		"its owner":      {func(d *cdiv1.DataVolume) { d.OwnerReferences = []metav1.OwnerReference{{UID: "u"}} }, true},
		"a condition": {func(d *cdiv1.DataVolume) {
			d.Status.Conditions = []cdiv1.DataVolumeCondition{{Type: cdiv1.DataVolumeReady}}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			after := disk.DeepCopy()
			c.mod(after)
			assert.Equal(t, c.want, changedDisk.Update(event.TypedUpdateEvent[*cdiv1.DataVolume]{ObjectOld: disk, ObjectNew: after}))
		})
	}
}

func TestWhoseAChildIs(t *testing.T) {
	ours := metav1.NewControllerRef(machine("web"), v1alpha1.SchemeGroupVersion.WithKind("VirtualMachine"))
	kubevirts := metav1.OwnerReference{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine", Name: "other", Controller: new(true)}
	label := map[string]string{v1alpha1.LabelVirtualMachine: "labelled", v1alpha1.LabelVirtualMachineUID: "uid-labelled"}
	for name, c := range map[string]struct {
		meta metav1.ObjectMeta
		want string
		uid  types.UID
	}{
		"the owner's":                   {metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{*ours}, Labels: label}, "web", "uid-web"},
		"left behind by its owner":      {metav1.ObjectMeta{Labels: label}, "labelled", "uid-labelled"},
		"an instance, of KubeVirt's":    {metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{kubevirts}, Labels: label}, "labelled", "uid-labelled"},
		"nobody's":                      {metav1.ObjectMeta{}, "", ""},
		"KubeVirt's, not made for ours": {metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{kubevirts}}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			disk := &cdiv1.DataVolume{ObjectMeta: c.meta}
			disk.Namespace = "lab"
			key, ok := vmOf(disk)
			assert.Equal(t, c.want != "", ok)
			assert.Equal(t, c.want, key.Name)
			assert.Equal(t, c.uid, madeFor(disk))
			assert.Len(t, madeForVM(t.Context(), disk), len(vmOfDisk(disk)))
		})
	}
}

func TestCachesKeepNoMoreThanIsNeeded(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}}
	claim.Status.Phase = corev1.ClaimBound
	stripped, err := stripClaim(claim)
	require.NoError(t, err)
	assert.Equal(t, &corev1.PersistentVolumeClaim{Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}, stripped)

	instance := &unstructured.Unstructured{Object: map[string]any{
		"kind": "VirtualMachineInstance", "metadata": map[string]any{"name": "web", "managedFields": []any{}}, "spec": map[string]any{"a": "b"},
		"status": map[string]any{"phase": "Running", "interfaces": []any{}, "conditions": []any{}},
	}}
	stripped, err = stripInstance(instance)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"kind": "VirtualMachineInstance", "metadata": map[string]any{"name": "web"}, "status": map[string]any{"phase": "Running", "interfaces": []any{}},
	}, stripped.(*unstructured.Unstructured).Object)

	machine := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "web"}, "spec": map[string]any{"a": "b"},
		"status": map[string]any{"printableStatus": "Running", "volumeSnapshotStatuses": []any{}},
	}}
	stripped, err = stripMachine(machine)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"metadata": map[string]any{"name": "web"}, "spec": map[string]any{"a": "b"}, "status": map[string]any{"printableStatus": "Running"},
	}, stripped.(*unstructured.Unstructured).Object)

	options, err := CacheOptions()
	require.NoError(t, err)
	for object, of := range options.ByObject {
		if _, is := object.(*corev1.Namespace); !is {
			assert.NotNil(t, of.Label, "%T: only what is labelled as ours is seen", object)
		}
	}
}

func TestMemoIsOfOneVirtualMachine(t *testing.T) {
	var m memo[int]
	vm := machine("web")
	_, ok := m.of(vm)
	assert.False(t, ok)
	m.note(vm, 7)
	item, ok := m.of(vm)
	assert.True(t, ok)
	assert.Equal(t, 7, item)
	reborn := machine("web")
	reborn.UID = "another"
	_, ok = m.of(reborn)
	assert.False(t, ok)
	m.forget(types.NamespacedName{Namespace: vm.Namespace, Name: vm.Name})
	_, ok = m.of(vm)
	assert.False(t, ok)
}

func TestWhatIsNotLookedAt(t *testing.T) {
	disk := &cdiv1.DataVolume{}
	made := notOurMaking(hasPhase)
	assert.False(t, made.Create(event.TypedCreateEvent[*cdiv1.DataVolume]{Object: disk}), "it has just been made")
	assert.True(t, made.Create(event.TypedCreateEvent[*cdiv1.DataVolume]{Object: disk, IsInInitialList: true}))
	disk.Status.Phase = cdiv1.Pending
	assert.True(t, made.Create(event.TypedCreateEvent[*cdiv1.DataVolume]{Object: disk}))
	assert.True(t, made.Update(event.TypedUpdateEvent[*cdiv1.DataVolume]{ObjectOld: disk, ObjectNew: disk}))

	version := func(rv, phase string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "web", "resourceVersion": rv}, "status": map[string]any{"phase": phase},
		}}
	}
	update := event.TypedUpdateEvent[*unstructured.Unstructured]{ObjectOld: version("1", "Running"), ObjectNew: version("2", "Running")}
	assert.False(t, changedContent.Update(update), "what changed is not kept")
	assert.Equal(t, "2", update.ObjectNew.GetResourceVersion(), "the cache's object is only read")
	update.ObjectNew = version("2", "Failed")
	assert.True(t, changedContent.Update(update))
}
