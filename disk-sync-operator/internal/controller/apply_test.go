package controller

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestARefusalIsWhatPatienceDoesNotCure(t *testing.T) {
	dv := schema.GroupResource{Group: "cdi.kubevirt.io", Resource: "datavolumes"}
	terminating := apierrors.NewForbidden(dv, "x", errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	cases := map[string]struct {
		err  error
		want bool
	}{
		"a webhook that refuses":    {apierrors.NewBadRequest("admission webhook denied the request: Invalid source URL"), true},
		"a quota":                   {apierrors.NewForbidden(dv, "x", errors.New("exceeded quota: q")), true},
		"a value that is not valid": {apierrors.NewInvalid(schema.GroupKind{}, "x", nil), true},
		"a name that is taken":      {&refused{"a DataVolume x exists"}, true},
		"success":                   {nil, false},
		"a namespace that is going": {terminating, true},
		"a slot that the API server does not see with us": {
			apierrors.NewForbidden(dv, "x", errors.New("ValidatingAdmissionPolicy 'o-slot-fence' denied request: pelotech.ot/slot-fence: disk-sync-slot-0 is held by nobody, not by a/b/c")), false,
		},
		"a conflict":                     {apierrors.NewConflict(dv, "x", errors.New("changed")), false},
		"an API server that is too busy": {apierrors.NewTooManyRequests("later", 1), false},
		"an API server in trouble":       {apierrors.NewInternalError(errors.New("etcd")), false},
		"a broken connection":            {errors.New("EOF"), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, refusalOf(c.err) != "")
		})
	}
}

func TestReadyNamesWhatToInstallAndRecoversByItself(t *testing.T) {
	var versions []schema.GroupVersion
	for _, need := range needs {
		versions = append(versions, schema.GroupVersion{Group: need.kind.Group, Version: "v1"})
	}
	mapper := meta.NewDefaultRESTMapper(versions)
	check := Ready(mapper)
	request := &http.Request{}
	assert.ErrorContains(t, check(request), "install the Containerized Data Importer (CDI)")
	mapper.Add(schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1", Kind: "DataVolume"}, meta.RESTScopeNamespace)
	assert.ErrorContains(t, check(request), "VolumeSnapshot.snapshot.storage.k8s.io: install the CSI external-snapshotter")
	for _, need := range needs {
		mapper.Add(need.kind.WithVersion("v1"), meta.RESTScopeNamespace)
	}
	assert.NoError(t, check(request))
}
