package controller

import (
	"errors"
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// refused is a change of a child that will not succeed as long as nobody changes something.
type refused struct {
	reason  v1alpha1.VirtualMachineReason
	message string
}

func (e *refused) Error() string { return e.message }

// refusalOf is what the API server, a webhook or a quota has against a child; nil for trouble that passes, such as a webhook
// that is away (a 500).
func refusalOf(err error) *plan.Refusal {
	var own *refused
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return &plan.Refusal{Reason: own.reason, Message: own.message}
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return &plan.Refusal{Reason: reasonOf(err.Error()), Message: plan.Steady(err.Error())}
	}
	return nil
}

// failureOf is what status says of a change that failed and is tried again. Of an object that has just changed, or gone, it
// says nothing: the next look is at hand.
func failureOf(err error) string {
	if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return ""
	}
	return plan.Steady(err.Error())
}

func reasonOf(message string) v1alpha1.VirtualMachineReason {
	switch {
	case strings.Contains(message, "exceeded quota"):
		return v1alpha1.ReasonQuotaExceeded
	case strings.Contains(message, "insufficient permissions"), strings.Contains(message, " cannot ") && strings.Contains(message, " resource "):
		return v1alpha1.ReasonNotAuthorized
	}
	return v1alpha1.ReasonRefused
}
