package controller

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var disks = schema.GroupResource{Group: "cdi.kubevirt.io", Resource: "datavolumes"}

func forbidden(text string) error { return apierrors.NewForbidden(disks, "web", errors.New(text)) }

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want v1alpha1.VirtualMachineReason // empty: trouble that passes
	}{
		"nothing":                    {nil, ""},
		"over quota":                 {forbidden("exceeded quota: small, requested: count/datavolumes=1"), v1alpha1.ReasonQuotaExceeded},
		"no right":                   {forbidden(`User "x" cannot create resource "datavolumes" in API group "cdi.kubevirt.io" in the namespace "lab"`), v1alpha1.ReasonNotAuthorized},
		"no right to clone":          {forbidden("User x has insufficient permissions in clone source namespace farm"), v1alpha1.ReasonNotAuthorized},
		"refused by a policy":        {forbidden("ValidatingAdmissionPolicy 'p' denied the request: no"), v1alpha1.ReasonRefused},
		"invalid":                    {apierrors.NewInvalid(schema.GroupKind{Kind: "VirtualMachine"}, "web", nil), v1alpha1.ReasonRefused},
		"bad":                        {apierrors.NewBadRequest("quantities must match"), v1alpha1.ReasonRefused},
		"wrapped":                    {fmt.Errorf("apply: %w", apierrors.NewBadRequest("no")), v1alpha1.ReasonRefused},
		"a name that is taken":       {fmt.Errorf("create: %w", &refused{v1alpha1.ReasonNameTaken, "taken"}), v1alpha1.ReasonNameTaken},
		"the webhook is away":        {apierrors.NewInternalError(errors.New(`failed calling webhook "virtualmachine-validator.kubevirt.io"`)), ""},
		"the API server is busy":     {apierrors.NewTooManyRequests("later", 1), ""},
		"somebody else was faster":   {apierrors.NewConflict(disks, "web", errors.New("changed")), ""},
		"the connection was lost":    {errors.New("connection refused"), ""},
		"nobody knows what went out": {apierrors.NewTimeoutError("slow", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := refusalOf(c.err)
			if c.want == "" {
				assert.Nil(t, got)
				return
			}
			require.NotNil(t, got)
			assert.Equal(t, c.want, got.Reason)
			assert.NotEmpty(t, got.Message)
		})
	}
}

func TestWhatIsTriedAgainAndWhen(t *testing.T) {
	conflict, gone := apierrors.NewConflict(disks, "web", errors.New("changed")), apierrors.NewNotFound(disks, "web")
	result, err := conflictIsLater(errors.Join(nil, fmt.Errorf("write: %w", conflict)))
	require.NoError(t, err)
	assert.Positive(t, result.RequeueAfter)
	result, err = conflictIsLater(gone)
	require.NoError(t, err)
	assert.Positive(t, result.RequeueAfter, "a kind that is not served any more comes back")
	broken := errors.New("broken")
	_, err = conflictIsLater(broken)
	require.ErrorIs(t, err, broken, "the queue backs off")
	_, err = conflictIsLater(nil)
	require.NoError(t, err)
}
