package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pelotech/open-terrain/e2e/sim"
	"github.com/pelotech/open-terrain/e2e/sim/cdi"
)

func TestADataVolumeIsRefusedWhereItsClaimIsThere(t *testing.T) {
	world(t, sim.Options{CDI: cdi.Options{Webhook: true}})
	ns := namespace(t)
	require.NoError(t, cl.Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "taken"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		dv := blank(ns, "taken")
		err := cl.Create(t.Context(), dv)
		if err == nil { // the API server has not heard of the webhook yet
			assert.NoError(c, cl.Delete(t.Context(), dv))
		}
		assert.ErrorContains(c, err, `admission webhook "datavolume-validate.cdi.kubevirt.io" denied the request:  DataVolume.Name Destination PVC `+ns+`/taken already exists`)
	}, patience, 100*time.Millisecond)
	dv := blank(ns, "free")
	require.NoError(t, cl.Create(t.Context(), dv))
	succeeded(t, dv)
}
