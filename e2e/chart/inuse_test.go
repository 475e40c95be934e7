package chart

import (
	"context"
	"testing"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	ac "github.com/pelotech/open-terrain/apis/ot/v1alpha1/applyconfiguration/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const patience = 60 * time.Second

// TestInUseProtection tries the policy on an API server with the real garbage collector and namespace controller.
func TestInUseProtection(t *testing.T) {
	cluster, err := harness.Start(t.Context(), harness.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	c, err := cluster.Client("chart-test")
	require.NoError(t, err)
	require.NoError(t, Install(t.Context(), c, WithoutOperator))
	awaitInUseProtection(t, c)

	for name, check := range map[string]func(*testing.T, *harness.Cluster, client.Client){
		"kubectl says who uses the image, and what to do":                refusalIsTold,
		"an image that nobody uses goes":                                 unusedGoes,
		"a deletion of all leaves the used one":                          collectionLeavesTheUsedOne,
		"a namespace waits for its used images":                          namespaceWaits,
		"the garbage collector comes back when the image is released":    collectorComesBack,
		"a claim wins over a deletion that was decided on before":        claimWins,
		"a claim of an image that is gone, or being deleted, is refused": deletionWins,
	} {
		t.Run(name, func(t *testing.T) { check(t, cluster, c) })
	}
}

// awaitInUseProtection tries until the policy answers: the API server takes a moment to see a new one.
func awaitInUseProtection(t *testing.T, c client.Client) {
	t.Helper()
	image := newImage(t, c, metav1.NamespaceDefault, "probe")
	require.NoError(t, claim(t, c, image, 1))
	require.Eventually(t, func() bool {
		return apierrors.IsForbidden(c.Delete(context.Background(), image, client.DryRunAll))
	}, activeTimeout, activePoll)
	require.NoError(t, claim(t, c, image, 0))
	require.NoError(t, c.Delete(t.Context(), image))
}

func newImage(t *testing.T, c client.Client, namespace, name string, owners ...metav1.OwnerReference) *otv1alpha1.VMDiskImage {
	t.Helper()
	image := &otv1alpha1.VMDiskImage{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: owners},
		Spec:       otv1alpha1.VMDiskImageSpec{SourceType: otv1alpha1.SourceBlank, DiskSize: resource.MustParse("1Gi")},
	}
	require.NoError(t, c.Create(t.Context(), image))
	return image
}

func newNamespace(t *testing.T, c client.Client) *corev1.Namespace {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "in-use-"}}
	require.NoError(t, c.Create(t.Context(), namespace))
	return namespace
}

// claim writes the references as whoever uses an image has to: under a field manager of its own, and bound to the object
// that was looked at.
func claim(t *testing.T, c client.Client, image *otv1alpha1.VMDiskImage, count int32, sample ...string) error {
	t.Helper()
	references := ac.References().WithCount(count).WithSample(sample...).WithLastReferencedAt(metav1.Now())
	apply := ac.VMDiskImage(image.Name, image.Namespace).WithUID(image.UID).WithResourceVersion(image.ResourceVersion).
		WithStatus(ac.VMDiskImageStatus().WithReferences(references))
	err := c.Status().Apply(t.Context(), apply, client.FieldOwner("vm-operator"), client.ForceOwnership)
	if err == nil {
		image.ResourceVersion = *apply.ResourceVersion
	}
	return err
}

func isGone(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	require.Eventually(t, func() bool {
		return apierrors.IsNotFound(c.Get(context.Background(), client.ObjectKeyFromObject(object), object))
	}, patience, activePoll, "%T %s goes", object, object.GetName())
}

func isThere(t *testing.T, c client.Client, image *otv1alpha1.VMDiskImage) {
	t.Helper()
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(image), image))
	assert.Nil(t, image.DeletionTimestamp)
}

func refusalIsTold(t *testing.T, cluster *harness.Cluster, c client.Client) {
	namespace := newNamespace(t, c).Name
	image := newImage(t, c, namespace, "used")
	for _, test := range []struct {
		count  int32
		sample []string
		want   string
	}{
		{3, []string{"lab/web", "lab/db"}, "pelotech.ot/in-use: 3 virtual machines use this image (lab/web, lab/db, ...); delete them, or give them another image, first"},
		{2, []string{"lab/web", "lab/db"}, "pelotech.ot/in-use: 2 virtual machines use this image (lab/web, lab/db); "},
		{1, nil, "pelotech.ot/in-use: 1 virtual machine uses this image; delete"},
	} {
		require.NoError(t, claim(t, c, image, test.count, test.sample...))
		out, err := cluster.Kubectl(t.Context(), "", "delete", "vmdi/used", "-n", namespace)
		require.Error(t, err)
		assert.Contains(t, out+err.Error(), test.want)
		assert.Contains(t, out+err.Error(), `vmdiskimages.pelotech.ot "used" is forbidden`)
	}
	for _, args := range [][]string{{"--force", "--grace-period=0"}, {"--cascade=foreground"}, {"--cascade=orphan"}} {
		_, err := cluster.Kubectl(t.Context(), "", append([]string{"delete", "vmdi/used", "-n", namespace}, args...)...)
		assert.Error(t, err, "%v", args)
	}
	isThere(t, c, image)
}

func unusedGoes(t *testing.T, cluster *harness.Cluster, c client.Client) {
	namespace := newNamespace(t, c).Name
	image := newImage(t, c, namespace, "never-used")
	assert.Nil(t, image.Status.References)
	_, err := cluster.Kubectl(t.Context(), "", "delete", "vmdi/never-used", "-n", namespace)
	require.NoError(t, err)

	image = newImage(t, c, namespace, "released")
	require.NoError(t, claim(t, c, image, 1, "lab/web"))
	require.Error(t, c.Delete(t.Context(), image))
	require.NoError(t, claim(t, c, image, 0))
	require.NoError(t, c.Delete(t.Context(), image))
}

func collectionLeavesTheUsedOne(t *testing.T, _ *harness.Cluster, c client.Client) {
	namespace := newNamespace(t, c).Name
	used, other := newImage(t, c, namespace, "used"), newImage(t, c, namespace, "an-other")
	require.NoError(t, claim(t, c, used, 1, "lab/web"))
	err := c.DeleteAllOf(t.Context(), &otv1alpha1.VMDiskImage{}, client.InNamespace(namespace))
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
	isThere(t, c, used)
	isGone(t, c, other) // it comes before the used one
}

// namespaceWaits and is not stuck for good.
func namespaceWaits(t *testing.T, _ *harness.Cluster, c client.Client) {
	namespace := newNamespace(t, c)
	image := newImage(t, c, namespace.Name, "used")
	require.NoError(t, claim(t, c, image, 1, "lab/web"))
	require.NoError(t, c.Delete(t.Context(), namespace))
	require.EventuallyWithT(t, func(ct *assert.CollectT) {
		require.NoError(ct, c.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace))
		var failure string
		for _, condition := range namespace.Status.Conditions {
			if condition.Type == corev1.NamespaceDeletionContentFailure {
				failure = condition.Message
			}
		}
		assert.Contains(ct, failure, "1 virtual machine uses this image (lab/web)")
	}, patience, activePoll)
	isThere(t, c, image)
	require.NoError(t, claim(t, c, image, 0))
	isGone(t, c, namespace)
}

// collectorComesBack deletes the image of an owner that is gone, as a DataSync's, when it is no longer used.
func collectorComesBack(t *testing.T, _ *harness.Cluster, c client.Client) {
	namespace := newNamespace(t, c).Name
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "owner"}}
	require.NoError(t, c.Create(t.Context(), owner))
	reference := *metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	used, unused := newImage(t, c, namespace, "used", reference), newImage(t, c, namespace, "unused", reference)
	require.NoError(t, claim(t, c, used, 1, "lab/web"))
	require.NoError(t, c.Delete(t.Context(), owner))
	isGone(t, c, unused)
	time.Sleep(500 * time.Millisecond) // the collector tries, and is refused, some times
	isThere(t, c, used)
	require.NoError(t, claim(t, c, used, 0))
	isGone(t, c, used)
}

// claimWins: the pruner's deletion names the version that it was decided on.
func claimWins(t *testing.T, _ *harness.Cluster, c client.Client) {
	image := newImage(t, c, newNamespace(t, c).Name, "contested")
	decided := image.DeepCopy()
	require.NoError(t, claim(t, c, image, 1, "lab/web"))
	require.NoError(t, claim(t, c, image, 0)) // so that it is not the policy that refuses
	err := c.Delete(t.Context(), decided, client.Preconditions{UID: &decided.UID, ResourceVersion: &decided.ResourceVersion})
	assert.True(t, apierrors.IsConflict(err), "%v", err)
	isThere(t, c, image)
}

func deletionWins(t *testing.T, _ *harness.Cluster, c client.Client) {
	namespace := newNamespace(t, c).Name
	gone := newImage(t, c, namespace, "contested")
	require.NoError(t, c.Delete(t.Context(), gone, client.Preconditions{UID: &gone.UID, ResourceVersion: &gone.ResourceVersion}))
	err := claim(t, c, gone, 1, "lab/web")
	assert.True(t, apierrors.IsNotFound(err) || apierrors.IsConflict(err), "%v", err)

	again := newImage(t, c, namespace, "contested")
	require.NotEqual(t, gone.UID, again.UID)
	assert.True(t, apierrors.IsConflict(claim(t, c, gone, 1, "lab/web")), "another image of that name is not meant")

	going := newImage(t, c, namespace, "going")
	going.Finalizers = []string{"example.com/hold"}
	require.NoError(t, c.Update(t.Context(), going))
	require.NoError(t, c.Delete(t.Context(), going.DeepCopy()))
	assert.True(t, apierrors.IsConflict(claim(t, c, going, 1, "lab/web")), "of the version from before the deletion")
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(going), going))
	going.Finalizers = nil
	require.NoError(t, c.Update(t.Context(), going))
}
