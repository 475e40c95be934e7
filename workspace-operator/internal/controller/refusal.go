package controller

import (
	"errors"
	"strings"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/workspace-operator/internal/plan"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// refused is a change of a child that will not succeed as long as nobody changes something.
type refused struct {
	reason  v1alpha1.WorkspaceReason
	message string
}

func (e *refused) Error() string { return e.message }

// refusalOf is what the API server, a webhook or a quota has against a child; nil for trouble that passes, such as a webhook
// that is away (a 500), or a namespace that is on its way out.
func refusalOf(err error) *plan.Refusal {
	var own *refused
	switch {
	case err == nil, isTerminating(err):
		return nil
	case errors.As(err, &own):
		return &plan.Refusal{Reason: own.reason, Message: own.message}
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return &plan.Refusal{Reason: reasonOf(err.Error()), Message: plan.Steady(err.Error())}
	}
	return nil
}

// isTerminating says that nothing can be made in the namespace any more.
func isTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

func reasonOf(message string) v1alpha1.WorkspaceReason {
	switch {
	case strings.Contains(message, "exceeded quota"):
		return v1alpha1.WorkspaceQuotaExceeded
	case strings.Contains(message, " cannot ") && strings.Contains(message, " resource "):
		return v1alpha1.WorkspaceForbidden
	}
	return v1alpha1.WorkspaceRejected
}
